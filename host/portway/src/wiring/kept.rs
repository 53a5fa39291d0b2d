//! What the plugins of a run keep, by message; and what follows for the messages behind one of
//! which nothing is kept.
//!
//! In an ordered run a message sees what the ones before it wrote. If one of those is quarantined
//! or tried again, what it wrote is dropped: whoever may have seen it goes again, untried.

use portway_engine::ports::{MessageState, Verdict};
use portway_runtime::Written;

use super::deliver::Step;

/// Adds what a call wrote. `indexes` are the places of its messages in the run.
pub(super) fn remember(kept: &mut Vec<MessageState>, indexes: &[usize], written: Vec<Written>) {
    for Written { index, writes } in written {
        let Some(place) = indexes.get(index as usize).and_then(|place| u32::try_from(*place).ok()) else {
            continue;
        };
        match kept.iter_mut().find(|one| one.index == place) {
            Some(one) => one.writes.extend(writes),
            None => kept.push(MessageState { index: place, writes }),
        }
    }
}

/// In an ordered run: what stands behind a message whose state is dropped goes again, but for what
/// has arrived.
pub(super) fn redo_behind_dropped(kept: &[MessageState], steps: &mut [Step]) {
    if kept.is_empty() {
        return;
    }
    let wrote = |index: usize| kept.iter().any(|one| one.index as usize == index);
    let is_dropped = |(index, step): (usize, &Step)| drops_state(step) && wrote(index);
    let first = steps.iter().enumerate().position(is_dropped);
    let behind = first.and_then(|first| steps.get_mut(first + 1..));
    let again = behind.into_iter().flatten().filter(|step| !has_arrived(step));
    again.for_each(|step| *step = Step::Done(Verdict::Untried));
}

fn has_arrived(step: &Step) -> bool {
    matches!(step, Step::Done(Verdict::Sent(_) | Verdict::Route(_)))
}

fn drops_state(step: &Step) -> bool {
    match step {
        Step::Ready(_) => false,
        Step::Done(verdict) => match verdict {
            Verdict::Sent(_) | Verdict::Route(_) | Verdict::Filtered(_) => false,
            Verdict::Quarantine(_) | Verdict::Retry(_) | Verdict::Untried | Verdict::Runaway(_) => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{Failure, StateWrite};

    use super::*;

    fn written(index: u32, key: &str) -> Written {
        Written { index, writes: vec![StateWrite { space: "s".into(), key: key.into(), value: None }] }
    }

    #[test]
    fn what_calls_write_is_kept_by_the_message_of_the_run() {
        let mut kept = Vec::new();
        remember(&mut kept, &[4, 7], vec![written(0, "a"), written(1, "b"), written(2, "lie")]);
        remember(&mut kept, &[7], vec![written(0, "c")]);
        let keys: Vec<_> = kept
            .iter()
            .map(|one| (one.index, one.writes.iter().map(|write| write.key.as_str()).collect::<String>()))
            .collect();
        assert_eq!(keys, [(4, "a".to_owned()), (7, "bc".to_owned())]);
    }

    #[test]
    fn only_what_stands_behind_dropped_state_goes_again() {
        let done = |verdict| Step::Done(verdict);
        let steps = || {
            [
                done(Verdict::Filtered("first".into())),
                done(Verdict::Quarantine(Failure::new("bad", ""))),
                Step::Ready(Vec::new()),
                done(Verdict::Filtered("last".into())),
            ]
        };
        let kept = |index| vec![MessageState { index, writes: Vec::new() }];
        let untried = |kept: &[MessageState]| {
            let mut steps = steps();
            redo_behind_dropped(kept, &mut steps);
            steps.iter().filter(|step| matches!(step, Step::Done(Verdict::Untried))).count()
        };
        assert_eq!(untried(&kept(1)), 2);
        assert_eq!(untried(&kept(0)), 0, "that one is kept");
        assert_eq!(untried(&[]), 0);
    }
}
