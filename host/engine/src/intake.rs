//! What waits to be stored, by source, and who waits for the answer.
//!
//! Leaves to others: how much may wait (`gate`), when a batch is formed (`committer`).

use std::collections::VecDeque;
use std::vec;

use portway_model::{Draft, Timestamp};

use crate::event::{Edit, Submission, Ticket};
use crate::fate::Fate;
use crate::gate::Permit;

/// Messages a source gives before it is another's turn.
const TURN_MESSAGES: usize = 32;
/// Bytes a source gives before it is another's turn; one message may be more.
const TURN_BYTES: usize = 256 << 10;

/// See the file.
#[derive(Debug)]
pub(crate) struct Intake {
    sources: Vec<VecDeque<Waiting>>,
    /// Sources with something waiting, each once, in the order of their turns.
    turns: VecDeque<usize>,
    waiters: Vec<Option<Waiter>>,
    free: Vec<usize>,
    waiting: usize,
    submissions: usize,
}

/// Which message of which waiter a fate belongs to. They need not come in order: of a message whose
/// commit was lost nothing is known while later ones are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    waiter: usize,
    index: usize,
}

/// What is left of a submission.
#[derive(Debug)]
struct Waiting {
    next: Seat,
    received_at: Timestamp,
    drafts: vec::IntoIter<Draft>,
    edit: Option<Box<Edit>>,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    fates: Vec<Option<Fate>>,
    /// Fates that are not known yet.
    missing: usize,
    _permit: Permit,
}

/// A draft whose turn it is.
#[derive(Debug)]
pub(crate) struct Taken {
    pub seat: Seat,
    pub source: usize,
    pub received_at: Timestamp,
    pub draft: Draft,
    pub edit: Option<Box<Edit>>,
}

/// What a batch may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub messages: usize,
    pub bytes: usize,
}

impl Intake {
    pub fn new(sources: usize) -> Self {
        Intake {
            sources: std::iter::repeat_with(VecDeque::new).take(sources).collect(),
            turns: VecDeque::new(),
            waiters: Vec::new(),
            free: Vec::new(),
            waiting: 0,
            submissions: 0,
        }
    }

    /// Messages that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Submissions of which some message waits.
    pub fn submissions(&self) -> usize {
        self.submissions
    }

    /// Nobody waits for an answer.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.waiters.len()
    }

    pub fn push(&mut self, source: usize, submission: Submission) {
        let Submission { ticket, received_at, drafts, edit, permit, .. } = submission;
        let expected = drafts.len();
        let Some(queue) = self.sources.get_mut(source) else { return };
        let waiter = Waiter { ticket, fates: vec![None; expected], missing: expected, _permit: permit };
        let number = self.free.pop().unwrap_or_else(|| {
            self.waiters.push(None);
            self.waiters.len() - 1
        });
        if let Some(place) = self.waiters.get_mut(number) {
            *place = Some(waiter);
        }
        if queue.is_empty() {
            self.turns.push_back(source);
        }
        let next = Seat { waiter: number, index: 0 };
        queue.push_back(Waiting { next, received_at, drafts: drafts.into_iter(), edit });
        self.waiting += expected;
        self.submissions += 1;
    }

    /// Takes drafts in turns until the room is used up; at least one if any waits.
    pub fn take(&mut self, room: Room) -> Vec<Taken> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(source) = self.turns.pop_front() {
            let until = (taken.len() + TURN_MESSAGES).min(room.messages.max(1));
            let bytes_until = (bytes + TURN_BYTES).min(room.bytes);
            let Some(queue) = self.sources.get_mut(source) else { continue };
            while taken.len() < until && (taken.is_empty() || bytes < bytes_until) {
                let before = queue.len();
                let Some(next) = take_one(source, queue) else { break };
                self.submissions -= before - queue.len();
                bytes += next.draft.body.len();
                taken.push(next);
            }
            if !queue.is_empty() {
                self.turns.push_back(source);
            }
            if taken.len() >= room.messages || bytes >= room.bytes {
                break;
            }
        }
        self.waiting -= taken.len();
        taken
    }

    /// A fate; the whole answer if that was the last one.
    pub fn answer(&mut self, seat: Seat, fate: Fate) -> Option<(Ticket, Vec<Fate>)> {
        let place = self.waiters.get_mut(seat.waiter)?;
        let waiter = place.as_mut()?;
        let known = waiter.fates.get_mut(seat.index).filter(|known| known.is_none())?;
        *known = Some(fate);
        waiter.missing -= 1;
        if waiter.missing > 0 {
            return None;
        }
        let waiter = place.take()?;
        self.free.push(seat.waiter);
        Some((waiter.ticket, waiter.fates.into_iter().flatten().collect()))
    }

    /// Gives everything that still waits the same fate; the answers that are complete with it.
    pub fn refuse_all(&mut self, fate: &Fate) -> Vec<(Ticket, Vec<Fate>)> {
        let mut answers = Vec::new();
        self.turns.clear();
        let waiting: Vec<Waiting> = self.sources.iter_mut().flat_map(std::mem::take).collect();
        for mut waiting in waiting {
            for _ in waiting.drafts {
                answers.extend(self.answer(waiting.next, fate.clone()));
                waiting.next.index += 1;
            }
        }
        (self.waiting, self.submissions) = (0, 0);
        answers
    }
}

fn take_one(source: usize, queue: &mut VecDeque<Waiting>) -> Option<Taken> {
    let front = queue.front_mut()?;
    let draft = front.drafts.next()?;
    let (received_at, edit) = (front.received_at, front.edit.take());
    let taken = Taken { seat: front.next, source, received_at, draft, edit };
    front.next.index += 1;
    if front.drafts.len() == 0 {
        queue.pop_front();
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use portway_model::{Attributes, InterfaceId};

    use super::*;
    use crate::gate::Gate;

    fn submission(gate: &Gate, ticket: u64, bodies: &[usize]) -> Submission {
        let draft = |bytes: &usize| Draft {
            body: vec![0; *bytes].into(),
            key: None,
            dedupe: None,
            occurred_at: None,
            attributes: Attributes::default(),
            doubt: None,
        };
        Submission {
            ticket: Ticket(ticket),
            interface: InterfaceId(1),
            received_at: Timestamp(0),
            came_at: std::time::Duration::ZERO,
            drafts: bodies.iter().map(draft).collect(),
            edit: None,
            permit: gate.admit(InterfaceId(1), 1).unwrap(),
        }
    }

    fn gate() -> Gate {
        Gate::new(1 << 30, [InterfaceId(1)])
    }

    const ALL: Room = Room { messages: 1_000, bytes: 1 << 30 };

    #[test]
    fn sources_take_turns() {
        let (gate, mut intake) = (gate(), Intake::new(2));
        intake.push(0, submission(&gate, 1, &[1; 100]));
        intake.push(1, submission(&gate, 2, &[1; 2]));
        let taken = intake.take(Room { messages: 40, ..ALL });
        assert_eq!(taken.iter().filter(|taken| taken.source == 1).count(), 2);
        assert_eq!((taken.len(), intake.waiting()), (40, 62));
        assert_eq!(intake.take(ALL).len(), 62);
    }

    #[test]
    fn a_batch_ends_when_its_bytes_are_used_up_but_takes_at_least_one() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, submission(&gate, 1, &[500, 10, 10]));
        assert_eq!(intake.take(Room { bytes: 100, ..ALL }).len(), 1);
        assert_eq!(intake.take(Room { bytes: 15, ..ALL }).len(), 2);
    }

    #[test]
    fn a_waiter_is_answered_once_with_all_fates_in_order() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, submission(&gate, 7, &[1, 1, 1]));
        let taken = intake.take(Room { messages: 1, ..ALL });
        assert_eq!(intake.answer(taken[0].seat, Fate::invalid("first")), None);
        let answers = intake.refuse_all(&Fate::stopped());
        let fates = vec![Fate::invalid("first"), Fate::stopped(), Fate::stopped()];
        assert_eq!(answers, [(Ticket(7), fates)]);
        assert!(intake.is_idle());
        assert_eq!(gate.bytes(), 0);
    }

    #[test]
    fn a_fate_that_is_known_late_keeps_its_place() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, submission(&gate, 7, &[1, 1]));
        let taken = intake.take(Room { messages: 1, ..ALL });
        assert!(intake.refuse_all(&Fate::stopped()).is_empty());
        let answer = intake.answer(taken[0].seat, Fate::invalid("first"));
        assert_eq!(answer, Some((Ticket(7), vec![Fate::invalid("first"), Fate::stopped()])));
    }
}
