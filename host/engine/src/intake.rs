//! What waits to be stored, by source, and who waits for the answer.
//!
//! Leaves to others: how much may wait (`gate`), when a batch is formed (`committer`).

use std::collections::VecDeque;
use std::vec;

use bytes::Bytes;
use portway_model::{Draft, Timestamp};

use crate::event::{Edit, Submission, Ticket, Unit};
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
    /// All seats of the waiter get their fates from one transaction.
    is_whole: bool,
}

/// What is left of a submission.
#[derive(Debug)]
struct Waiting {
    next: Seat,
    received_at: Timestamp,
    drafts: vec::IntoIter<Draft>,
    cursor: Option<Bytes>,
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

/// A cursor whose turn it is.
#[derive(Debug)]
pub(crate) struct TakenCursor {
    pub seat: Seat,
    pub source: usize,
    pub cursor: Bytes,
}

/// What a batch takes.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub drafts: Vec<Taken>,
    pub cursors: Vec<TakenCursor>,
    bytes: usize,
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

    pub fn push(&mut self, source: usize, ticket: Ticket, submission: Submission) {
        let Submission { received_at, drafts, unit, edit, permit, .. } = submission;
        let (is_whole, cursor) = match unit {
            Unit::Each => (false, None),
            Unit::Whole => (true, None),
            Unit::WithCursor(cursor) => (true, Some(cursor)),
        };
        let messages = drafts.len();
        let expected = messages + usize::from(cursor.is_some());
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
        let next = Seat { waiter: number, index: 0, is_whole };
        queue.push_back(Waiting { next, received_at, drafts: drafts.into_iter(), cursor, edit });
        self.waiting += messages;
        self.submissions += 1;
    }

    /// Takes drafts in turns until the room is used up; at least one submission or draft if any
    /// waits. A submission that is stored as a whole is taken as a whole, or waits for the next
    /// batch, whose first it is.
    pub fn take(&mut self, room: Room) -> Share {
        let mut share = Share::default();
        while let Some(source) = self.turns.pop_front() {
            let until = (share.drafts.len() + TURN_MESSAGES).min(room.messages.max(1));
            let bytes_until = (share.bytes + TURN_BYTES).min(room.bytes);
            let Some(queue) = self.sources.get_mut(source) else { continue };
            let mut is_kept_out = false;
            while share.has_room(until, bytes_until)
                && let Some(front) = queue.front_mut()
            {
                is_kept_out = front.next.is_whole && !share.fits(front, room);
                if is_kept_out {
                    break;
                }
                share.take_from(source, front);
                if front.is_empty() {
                    queue.pop_front();
                    self.submissions -= 1;
                }
            }
            if is_kept_out {
                self.turns.push_front(source);
                break;
            }
            if !queue.is_empty() {
                self.turns.push_back(source);
            }
            if share.drafts.len() >= room.messages || share.bytes >= room.bytes {
                break;
            }
        }
        self.waiting -= share.drafts.len();
        share
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
        let sources = 0..self.sources.len();
        sources.flat_map(|source| self.refuse_source(source, fate)).collect()
    }

    /// The same for everything of one source.
    pub fn refuse_source(&mut self, source: usize, fate: &Fate) -> Vec<(Ticket, Vec<Fate>)> {
        let Some(queue) = self.sources.get_mut(source).map(std::mem::take) else { return Vec::new() };
        self.turns.retain(|turn| *turn != source);
        let mut answers = Vec::new();
        for mut waiting in queue {
            self.waiting -= waiting.drafts.len();
            self.submissions -= 1;
            for _ in 0..waiting.drafts.len() + usize::from(waiting.cursor.is_some()) {
                answers.extend(self.answer(waiting.next, fate.clone()));
                waiting.next.index += 1;
            }
        }
        answers
    }

    /// There are so many sources now; never fewer than before.
    pub fn grow(&mut self, sources: usize) {
        let sources = sources.max(self.sources.len());
        self.sources.resize_with(sources, VecDeque::new);
    }
}

impl Seat {
    #[cfg(test)]
    pub fn new(waiter: usize, index: usize, is_whole: bool) -> Self {
        Seat { waiter, index, is_whole }
    }

    #[cfg(test)]
    pub fn waiter(&self) -> usize {
        self.waiter
    }

    /// Both get their fates from one transaction.
    pub fn is_one_with(&self, other: &Seat) -> bool {
        self.is_whole && self.waiter == other.waiter
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.drafts.len() == 0 && self.cursor.is_none()
    }

    fn take_seat(&mut self) -> Seat {
        let seat = self.next;
        self.next.index += 1;
        seat
    }
}

impl Share {
    fn is_empty(&self) -> bool {
        self.drafts.is_empty() && self.cursors.is_empty()
    }

    fn has_room(&self, messages: usize, bytes: usize) -> bool {
        self.is_empty() || (self.drafts.len() < messages && self.bytes < bytes)
    }

    fn fits(&self, waiting: &Waiting, room: Room) -> bool {
        let bytes: usize = waiting.drafts.as_slice().iter().map(|draft| draft.body.len()).sum();
        let fits =
            self.drafts.len() + waiting.drafts.len() <= room.messages && self.bytes + bytes <= room.bytes;
        fits || self.is_empty()
    }

    /// One draft, or all that is stored as a whole.
    fn take_from(&mut self, source: usize, waiting: &mut Waiting) {
        let count = if waiting.next.is_whole { waiting.drafts.len() } else { 1 };
        for _ in 0..count {
            let Some(draft) = waiting.drafts.next() else { break };
            self.bytes += draft.body.len();
            let (seat, received_at) = (waiting.take_seat(), waiting.received_at);
            let edit = waiting.edit.take();
            self.drafts.push(Taken { seat, source, received_at, draft, edit });
        }
        if let Some(cursor) = waiting.cursor.take() {
            self.cursors.push(TakenCursor { seat: waiting.take_seat(), source, cursor });
        }
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{Attributes, InterfaceId};

    use super::*;
    use crate::gate::Gate;

    fn submission(gate: &Gate, bodies: &[usize], unit: Unit) -> Submission {
        let draft = |bytes: &usize| Draft {
            body: vec![0; *bytes].into(),
            key: None,
            dedupe: None,
            occurred_at: None,
            attributes: Attributes::default(),
            doubt: None,
        };
        Submission {
            interface: InterfaceId(1),
            received_at: Timestamp(0),
            came_at: std::time::Duration::ZERO,
            drafts: bodies.iter().map(draft).collect(),
            unit,
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
        intake.push(0, Ticket(1), submission(&gate, &[1; 100], Unit::Each));
        intake.push(1, Ticket(2), submission(&gate, &[1; 2], Unit::Each));
        let taken = intake.take(Room { messages: 40, ..ALL });
        assert_eq!(taken.drafts.iter().filter(|taken| taken.source == 1).count(), 2);
        assert_eq!((taken.drafts.len(), intake.waiting()), (40, 62));
        assert_eq!(intake.take(ALL).drafts.len(), 62);
    }

    #[test]
    fn a_batch_ends_when_its_bytes_are_used_up_but_takes_at_least_one() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, Ticket(1), submission(&gate, &[500, 10, 10], Unit::Each));
        assert_eq!(intake.take(Room { bytes: 100, ..ALL }).drafts.len(), 1);
        assert_eq!(intake.take(Room { bytes: 15, ..ALL }).drafts.len(), 2);
    }

    #[test]
    fn a_waiter_is_answered_once_with_all_fates_in_order() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, Ticket(7), submission(&gate, &[1, 1, 1], Unit::Each));
        let taken = intake.take(Room { messages: 1, ..ALL });
        assert_eq!(intake.answer(taken.drafts[0].seat, Fate::invalid("first")), None);
        let answers = intake.refuse_all(&Fate::stopped());
        let fates = vec![Fate::invalid("first"), Fate::stopped(), Fate::stopped()];
        assert_eq!(answers, [(Ticket(7), fates)]);
        assert!(intake.is_idle());
        assert_eq!(gate.bytes(), 0);
    }

    #[test]
    fn a_fate_that_is_known_late_keeps_its_place() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, Ticket(7), submission(&gate, &[1, 1], Unit::Each));
        let taken = intake.take(Room { messages: 1, ..ALL });
        assert!(intake.refuse_all(&Fate::stopped()).is_empty());
        let answer = intake.answer(taken.drafts[0].seat, Fate::invalid("first"));
        assert_eq!(answer, Some((Ticket(7), vec![Fate::invalid("first"), Fate::stopped()])));
    }

    fn seats(share: &Share) -> (Vec<usize>, Vec<usize>) {
        let drafts = share.drafts.iter().map(|taken| taken.seat.index).collect();
        (drafts, share.cursors.iter().map(|taken| taken.seat.index).collect())
    }

    #[test]
    fn a_whole_submission_is_never_divided_and_not_overtaken() {
        let (gate, mut intake) = (gate(), Intake::new(2));
        let cursor = || Unit::WithCursor(Bytes::from_static(b"c"));
        intake.push(0, Ticket(1), submission(&gate, &[1; 3], Unit::Each));
        intake.push(1, Ticket(2), submission(&gate, &[1; 40], cursor()));
        intake.push(0, Ticket(3), submission(&gate, &[1; 3], Unit::Each));
        let room = Room { messages: 20, ..ALL };
        assert_eq!(seats(&intake.take(room)), (vec![0, 1, 2, 0, 1, 2], vec![]));
        // It does not fit into an empty batch either: then it is taken alone.
        assert_eq!(seats(&intake.take(room)), ((0..40).collect(), vec![40]));
        assert_eq!((intake.waiting(), intake.submissions()), (0, 0));
    }

    #[test]
    fn a_cursor_alone_waits_and_is_answered() {
        let (gate, mut intake) = (gate(), Intake::new(1));
        intake.push(0, Ticket(1), submission(&gate, &[], Unit::WithCursor(Bytes::new())));
        assert_eq!((intake.waiting(), intake.submissions()), (0, 1));
        let share = intake.take(ALL);
        assert_eq!(seats(&share), (vec![], vec![0]));
        assert_eq!(intake.answer(share.cursors[0].seat, Fate::Kept), Some((Ticket(1), vec![Fate::Kept])));
        intake.push(0, Ticket(2), submission(&gate, &[1], Unit::WithCursor(Bytes::new())));
        assert_eq!(intake.refuse_all(&Fate::stopped()), [(Ticket(2), vec![Fate::stopped(); 2])]);
        assert!(intake.is_idle());
    }
}
