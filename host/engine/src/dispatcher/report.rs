//! Reads a report: which of its verdicts count, and what each means for its delivery.
//!
//! A report that is not as agreed is never believed beyond the point where it goes wrong: the
//! rest counts as not tried. That may send a message twice, and loses none.

use portway_model::{
    AttemptNo, DestinationId, Draft, Epoch, Failure, Guarantee, MessageId, Next, RetryPolicy, SavedOutput,
    StateWrite, Timestamp, code,
};
use portway_store::{Attempted, DeliveryResult, NewMessage, Origin, OriginKind, Settled};

use super::stream::Hint;
use crate::layout::Layout;
use crate::ports::{MessageState, Routed, Verdict};

/// How the verdicts of a run are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub ordered: bool,
    pub hold_on_quarantine: bool,
    pub guarantee: Guarantee,
}

/// One verdict for each message, and what was wrong with the report.
#[derive(Debug)]
pub(crate) struct Reading {
    pub verdicts: Vec<Verdict>,
    pub lie: Option<&'static str>,
}

/// What a report has to keep of its messages.
pub(crate) struct ReportedKept {
    pub state: Vec<MessageState>,
    pub outputs: Vec<Option<Box<SavedOutput>>>,
}

/// What is kept of one message. Of most nothing is.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub state: Vec<StateWrite>,
    /// What the sender was given.
    pub output: Option<Box<SavedOutput>>,
}

impl ReportedKept {
    /// Takes out what belongs to one message.
    pub fn take(&mut self, index: usize) -> Kept {
        let of_message = self.state.iter_mut().find(|one| one.index as usize == index);
        Kept {
            state: of_message.map(|one| std::mem::take(&mut one.writes)).unwrap_or_default(),
            output: self.outputs.get_mut(index).and_then(Option::take),
        }
    }
}

/// Makes the verdicts those that count.
pub(crate) fn read(mut verdicts: Vec<Verdict>, count: usize, rules: Rules) -> Reading {
    let mut lie = None;
    if verdicts.len() > count {
        // Which verdict belongs to which message cannot be known.
        verdicts.clear();
        lie = Some("more verdicts than messages");
    } else if verdicts.len() < count {
        lie = Some("fewer verdicts than messages");
    }
    // What a lie leaves open was not tried, or where it may not be sent twice, perhaps was.
    let unsaid = || match rules.guarantee {
        Guarantee::AtLeastOnce => Verdict::Untried,
        Guarantee::AtMostOnce => Verdict::in_doubt("the report on it is wrong"),
    };
    verdicts.resize(count, unsaid());
    if rules.ordered {
        let mut ended = false;
        for verdict in &mut verdicts {
            if ended && !matches!(verdict, Verdict::Untried) {
                *verdict = unsaid();
                lie = Some("a verdict behind one that ends an ordered run");
            }
            ended |= ends_ordered(verdict, rules);
        }
    }
    if lie.is_some() && rules.guarantee == Guarantee::AtMostOnce {
        // Who is wrong about one message may be wrong about another: nothing is sent again.
        let again = verdicts.iter_mut().filter(|verdict| is_again(verdict));
        again.for_each(|verdict| *verdict = unsaid());
    }
    Reading { verdicts, lie }
}

/// Whether a message goes again after this.
fn is_again(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Retry(_) | Verdict::Untried | Verdict::Runaway(_) => true,
        Verdict::Sent(_) | Verdict::Route(_) | Verdict::Filtered(_) | Verdict::Quarantine(_) => false,
    }
}

fn ends_ordered(verdict: &Verdict, rules: Rules) -> bool {
    match verdict {
        Verdict::Sent(_) | Verdict::Route(_) | Verdict::Filtered(_) => false,
        Verdict::Quarantine(_) => rules.hold_on_quarantine,
        Verdict::Retry(_) | Verdict::Untried | Verdict::Runaway(_) => true,
    }
}

/// What a verdict means for its delivery.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// It is done, with this result.
    Done(Settled),
    /// It is tried again at `due_at`; `attempts` is what it has now.
    Later {
        due_at: Timestamp,
        attempts: AttemptNo,
        failure: Failure,
    },
    /// It is not sent at all, for this reason.
    Dropped(String),
    Untried,
}

/// What is needed to read a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub layout: &'a Layout,
    pub policy: &'a RetryPolicy,
    /// The destination's own time.
    pub now: Timestamp,
    /// A random number from 0 to 1.
    pub chance: f64,
    /// Runaways in a row, this one included.
    pub runaways: u32,
}

impl Reader<'_> {
    pub fn meaning(&self, hint: &Hint, verdict: Verdict) -> Meaning {
        let attempts = hint.attempts.next();
        match verdict {
            Verdict::Sent(answer) => Meaning::Done(Settled::Sent(answer)),
            Verdict::Route(routed) => Meaning::Done(self.route(hint.message, routed)),
            Verdict::Filtered(reason) => Meaning::Done(Settled::Filtered(reason)),
            Verdict::Quarantine(failure) => Meaning::Done(Settled::Quarantined(failure)),
            Verdict::Untried => Meaning::Untried,
            Verdict::Retry(later) => {
                match self.policy.after_failure(attempts, &later, self.now, self.chance) {
                    Next::Retry { at } => Meaning::Later { due_at: at, attempts, failure: later.failure },
                    Next::Quarantine(failure) => Meaning::Done(Settled::Quarantined(failure)),
                }
            }
            Verdict::Runaway(failure) => {
                let wait = self.policy.wait(AttemptNo(self.runaways), None, self.chance);
                Meaning::Later { due_at: self.now + wait, attempts: hint.attempts, failure }
            }
        }
    }

    fn route(&self, message: MessageId, routed: Vec<Routed>) -> Settled {
        let mut messages: Vec<NewMessage> = Vec::with_capacity(routed.len());
        for Routed { target, key, attributes, body } in routed {
            let draft = Draft { body, key, dedupe: None, occurred_at: None, attributes, doubt: None };
            let origin = Origin { message, kind: OriginKind::Route };
            match self.layout.routed(target, self.now, draft, origin) {
                Some(message) => messages.push(message),
                None => {
                    let text = format!("there is no interface {target} to route to");
                    return Settled::Quarantined(Failure::new(code::UNKNOWN_ROUTE, text));
                }
            }
        }
        Settled::Routed(messages)
    }
}

/// The result of a delivery; none if nothing was tried. Of its state only what belongs to something that
/// was sent or filtered stays; what its sender was given stays whatever became of it.
pub(crate) fn result(
    (destination, epoch): (DestinationId, Epoch),
    hint: &Hint,
    (meaning, kept): (Meaning, Kept),
    attempted: Attempted,
) -> Option<DeliveryResult> {
    // What is dropped was never tried.
    let has_ended = matches!(meaning, Meaning::Done(_));
    let (attempts, settled, attempted) = match meaning {
        Meaning::Done(settled) => (hint.attempts.next(), settled, Some(attempted)),
        // A runaway uses up no attempt: there is no number to record it under.
        Meaning::Later { due_at, attempts, failure } => {
            let counted = attempts > hint.attempts;
            (attempts, Settled::Retry { due_at, failure }, Some(attempted).filter(|_| counted))
        }
        Meaning::Dropped(reason) => (hint.attempts, Settled::Filtered(reason), None),
        Meaning::Untried => return None,
    };
    Some(DeliveryResult {
        destination,
        epoch,
        message: hint.message,
        round: hint.round,
        attempts,
        attempted,
        state: if has_ended && settled.keeps_state() { kept.state } else { Vec::new() },
        output: kept.output,
        settled,
    })
}

#[cfg(test)]
mod tests {
    use portway_model::{Answer, Later};

    use super::*;

    const HOLD: Rules = Rules { ordered: true, hold_on_quarantine: true, guarantee: Guarantee::AtLeastOnce };
    const ORDERED: Rules =
        Rules { ordered: true, hold_on_quarantine: false, guarantee: Guarantee::AtLeastOnce };
    const APART: Rules =
        Rules { ordered: false, hold_on_quarantine: false, guarantee: Guarantee::AtLeastOnce };

    /// s: sent, q: quarantine, r: retry, u: untried, x: runaway.
    fn check(verdicts: &str, count: usize, rules: Rules) -> (String, bool) {
        let failure = || Failure::new("f", "");
        let parse = |letter| match letter {
            's' => Verdict::Sent(Answer::default()),
            'q' => Verdict::Quarantine(failure()),
            'r' => Verdict::Retry(Later { failure: failure(), after_ms: None }),
            'x' => Verdict::Runaway(failure()),
            _ => Verdict::Untried,
        };
        let reading = read(verdicts.chars().map(parse).collect(), count, rules);
        let show = |verdict: &Verdict| match verdict {
            Verdict::Sent(_) => 's',
            Verdict::Quarantine(_) => 'q',
            Verdict::Retry(_) => 'r',
            Verdict::Runaway(_) => 'x',
            Verdict::Untried | Verdict::Route(_) | Verdict::Filtered(_) => 'u',
        };
        (reading.verdicts.iter().map(show).collect(), reading.lie.is_some())
    }

    #[test]
    fn verdicts_count_up_to_the_one_that_ends_the_run() {
        let cases = [
            ("sqs", ORDERED, "sqs", false),
            ("squ", HOLD, "squ", false),
            ("sqs", HOLD, "squ", true),
            ("sru", ORDERED, "sru", false),
            ("srs", ORDERED, "sru", true),
            ("uss", ORDERED, "uuu", true),
            ("xsu", ORDERED, "xuu", true),
            ("rsq", APART, "rsq", false),
        ];
        for (verdicts, rules, expected, lie) in cases {
            assert_eq!(check(verdicts, 3, rules), (expected.into(), lie), "{verdicts}");
        }
    }

    #[test]
    fn what_a_lie_leaves_open_may_have_arrived_where_it_may_not_be_sent_twice() {
        let once = |rules| Rules { guarantee: Guarantee::AtMostOnce, ..rules };
        assert_eq!(check("su", 2, once(APART)), ("su".into(), false));
        assert_eq!(check("s", 3, once(APART)), ("sqq".into(), true));
        assert_eq!(check("ssss", 3, once(ORDERED)), ("qqq".into(), true));
        assert_eq!(check("rsu", 3, once(ORDERED)), ("qqq".into(), true));
        assert_eq!(check("uss", 3, once(HOLD)), ("qqq".into(), true));
        assert_eq!(check("rsu", 3, ORDERED), ("ruu".into(), true));
    }

    #[test]
    fn a_report_of_another_length_is_believed_as_far_as_it_can_be() {
        assert_eq!(check("s", 3, APART), ("suu".into(), true));
        assert_eq!(check("ssss", 3, APART), ("uuu".into(), true));
        assert_eq!(check("", 2, ORDERED), ("uu".into(), true));
    }
}
