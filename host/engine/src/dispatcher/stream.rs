//! A sequence of pending deliveries: what of it is in memory, and how far the store was read.
//!
//! Everything pending up to `known` is in the queue, in hand or done; what lies behind it is
//! read when its turn comes. A commit is a hint: it is kept only if nothing before it is missing.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use portway_model::{AttemptNo, MessageId, Round, Timestamp};
use portway_store::Pending;

use super::budget::Carried;
use crate::event::ReadId;

/// A pending delivery in memory.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    pub message: MessageId,
    pub round: Round,
    pub attempts: AttemptNo,
    pub body_bytes: u64,
    pub due_at: Option<Timestamp>,
    /// How often it was recorded as about to be tried; 0: not by this process.
    pub recorded: u32,
    /// An operator changed it while it was in hand: what comes of it does not count.
    pub is_void: bool,
    /// The message itself, if it is still in memory since its commit.
    pub carried: Option<Arc<Carried>>,
}

/// Whether there is room in memory for a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    No,
}

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    queue: VecDeque<Hint>,
    known: MessageId,
    /// The last message a commit told of.
    stored_to: MessageId,
    /// The store may hold more behind `known` than commits told of.
    more: bool,
    /// The last message that ever left the queue for a run.
    taken_to: MessageId,
    read: Option<ReadId>,
    /// `stored_to` when the read was asked for: a short page covers at least this.
    asked_to: MessageId,
}

impl Stream {
    /// Of which nothing is known: all of it is read.
    pub fn unread() -> Self {
        Stream { more: true, ..Stream::default() }
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn front(&self) -> Option<&Hint> {
        self.queue.front()
    }

    pub fn front_mut(&mut self) -> Option<&mut Hint> {
        self.queue.front_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Hint> {
        self.queue.iter()
    }

    pub fn known(&self) -> MessageId {
        self.known
    }

    /// The store has more of it than is in memory.
    pub fn is_behind(&self) -> bool {
        self.more || self.stored_to > self.known
    }

    pub fn is_reading(&self) -> bool {
        self.read.is_some()
    }

    /// A commit stored a delivery of it.
    pub fn hint(&mut self, hint: Hint, keep: Keep) {
        let message = hint.message;
        if !self.is_behind() && message > self.known && keep == Keep::Yes {
            self.known = message;
            self.queue.push_back(hint);
        }
        self.stored_to = self.stored_to.max(message);
    }

    /// Something changed in the store that no hint tells of.
    pub fn expect_more(&mut self) {
        self.more = true;
    }

    pub fn asked(&mut self, read: ReadId) {
        self.read = Some(read);
        self.asked_to = self.stored_to;
    }

    /// The answer of the read in hand is out of date: it is asked for again.
    pub fn cancel_read(&mut self) {
        if self.read.take().is_some() {
            self.more = true;
        }
    }

    /// Whether this read is still waited for; it is not any more afterwards.
    pub fn answered(&mut self, read: ReadId) -> bool {
        let expected = self.read == Some(read);
        if expected {
            self.read = None;
        }
        expected
    }

    /// Takes in a page that was read behind `known`. Rows from `below` on are left in the store.
    pub fn page(&mut self, rows: Vec<Pending>, limit: u32, below: MessageId) {
        let is_short = rows.len() < limit as usize;
        let mut cut = false;
        for row in rows {
            if row.message >= below {
                cut = true;
                break;
            }
            if row.message > self.known {
                self.known = row.message;
                self.queue.push_back(Hint::from(row));
            }
        }
        if cut {
            self.known = self.known.max(MessageId(below.0.saturating_sub(1)));
        } else if is_short {
            self.known = self.known.max(self.asked_to);
        }
        self.more = cut || !is_short;
    }

    /// The next deliveries, for a run.
    pub fn take(&mut self, count: usize) -> Vec<Hint> {
        let taken: Vec<Hint> = self.queue.drain(..count.min(self.queue.len())).collect();
        self.taken_to = taken.iter().map(|hint| hint.message).fold(self.taken_to, MessageId::max);
        taken
    }

    /// Puts back what a run did not finish, in its order, before everything else.
    pub fn put_back(&mut self, hints: Vec<Hint>) {
        for hint in hints.into_iter().rev() {
            self.queue.push_front(hint);
        }
    }

    /// Takes a delivery out of memory, as it was before a round.
    pub fn remove(&mut self, message: MessageId, before: Round) {
        self.queue.retain(|hint| !hint.is_of(message, before));
    }

    /// A delivery waits for its time no longer.
    pub fn hurry(&mut self, message: MessageId) {
        self.queue.iter_mut().filter(|hint| hint.message == message).for_each(|hint| hint.due_at = None);
    }

    /// A delivery at or before `known` is pending again: everything from it on is read again.
    /// Only right if nothing from it on was sent or is in hand.
    pub fn rewind(&mut self, message: MessageId) {
        self.more = true;
        self.read = None;
        if self.known >= message {
            self.queue.retain(|hint| hint.message < message);
            self.known = MessageId(message.0.saturating_sub(1));
            self.taken_to = self.taken_to.min(self.known);
        }
    }

    /// Leaves what is behind the first `keep` to the store; never what a run had in hand.
    pub fn trim(&mut self, keep: usize) {
        let before = self.queue.len();
        while self.queue.len() > keep && self.queue.back().is_some_and(|hint| hint.message > self.taken_to) {
            self.queue.pop_back();
        }
        if self.queue.len() < before {
            let last = self.queue.back().map_or(MessageId::ZERO, |hint| hint.message);
            self.known = self.taken_to.max(last);
            self.more = true;
            // A page in hand begins behind what was dropped.
            self.read = None;
        }
    }

    /// Keeps no bodies.
    pub fn strip(&mut self) {
        self.queue.iter_mut().for_each(|hint| hint.carried = None);
    }
}

impl Hint {
    /// It was recorded, by this process or by one that ended since: it is tried by itself.
    pub fn goes_alone(&self, were_in_hand: &BTreeSet<MessageId>) -> bool {
        self.recorded > 0 || were_in_hand.contains(&self.message)
    }

    /// Whether it is a delivery as it was before a round.
    pub fn is_of(&self, message: MessageId, before: Round) -> bool {
        self.message == message && self.round < before
    }
}

impl From<Pending> for Hint {
    fn from(row: Pending) -> Self {
        Hint {
            message: row.message,
            round: row.round,
            attempts: row.attempts,
            body_bytes: row.body_bytes,
            due_at: row.due_at,
            recorded: 0,
            is_void: false,
            carried: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use portway_model::Lane;
    use proptest::prelude::*;

    use super::*;

    const ALL: MessageId = MessageId(u64::MAX);

    fn hint(message: u64) -> Hint {
        Hint::from(row(message))
    }

    fn row(message: u64) -> Pending {
        Pending {
            message: MessageId(message),
            lane: Lane::FIRST,
            round: Round(0),
            attempts: AttemptNo(0),
            due_at: None,
            body_bytes: 1,
        }
    }

    fn rows(messages: &[u64]) -> Vec<Pending> {
        messages.iter().copied().map(row).collect()
    }

    fn ids(stream: &Stream) -> Vec<u64> {
        stream.iter().map(|hint| hint.message.0).collect()
    }

    #[test]
    fn a_hint_is_kept_only_if_nothing_before_it_is_missing() {
        let mut stream = Stream::default();
        stream.hint(hint(3), Keep::Yes);
        stream.hint(hint(5), Keep::No);
        stream.hint(hint(6), Keep::Yes);
        assert_eq!((ids(&stream), stream.is_behind()), (vec![3], true));
        stream.asked(ReadId(1));
        stream.page(rows(&[5, 6]), 10, ALL);
        assert_eq!((ids(&stream), stream.is_behind()), (vec![3, 5, 6], false));
    }

    #[test]
    fn a_short_page_ends_being_behind_unless_a_hint_came_meanwhile() {
        let mut stream = Stream::unread();
        stream.asked(ReadId(1));
        stream.hint(hint(9), Keep::Yes);
        stream.page(rows(&[4]), 10, ALL);
        assert!(stream.is_behind());
        stream.asked(ReadId(2));
        // 9 was dismissed meanwhile: it never shows, and is not waited for.
        stream.page(rows(&[]), 10, ALL);
        assert!(!stream.is_behind());
        stream.hint(hint(10), Keep::Yes);
        assert_eq!(ids(&stream), [4, 10]);
    }

    #[test]
    fn a_hint_that_a_page_already_brought_is_ignored() {
        let mut stream = Stream::unread();
        stream.asked(ReadId(1));
        stream.page(rows(&[4, 5]), 10, ALL);
        stream.hint(hint(5), Keep::Yes);
        assert_eq!((ids(&stream), stream.is_behind()), (vec![4, 5], false));
    }

    #[test]
    fn trimming_never_forgets_what_was_in_hand() {
        let mut stream = Stream::unread();
        stream.asked(ReadId(1));
        stream.page(rows(&[1, 2, 3, 4]), 10, ALL);
        let taken = stream.take(2);
        stream.put_back(taken);
        stream.trim(0);
        assert_eq!((ids(&stream), stream.known(), stream.is_behind()), (vec![1, 2], MessageId(2), true));
    }

    #[test]
    fn a_cut_page_knows_nothing_from_the_cut_on() {
        let mut stream = Stream::unread();
        stream.asked(ReadId(1));
        stream.page(rows(&[2, 7, 9]), 10, MessageId(7));
        assert_eq!((ids(&stream), stream.known(), stream.is_behind()), (vec![2], MessageId(6), true));
    }

    #[test]
    fn a_rewind_reads_again_from_the_delivery_on() {
        let mut stream = Stream::unread();
        stream.asked(ReadId(1));
        stream.page(rows(&[2, 7, 9]), 10, ALL);
        stream.rewind(MessageId(7));
        assert_eq!((ids(&stream), stream.known(), stream.is_behind()), (vec![2], MessageId(6), true));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Store(Keep),
        Ask,
        Answer,
        Take(usize),
        PutBack,
        Trim(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let keep = prop_oneof![Just(Keep::Yes), Just(Keep::No)];
        let step = prop_oneof![
            3 => keep.prop_map(Step::Store),
            2 => Just(Step::Ask),
            2 => Just(Step::Answer),
            2 => (1_usize..4).prop_map(Step::Take),
            1 => Just(Step::PutBack),
            1 => (0_usize..3).prop_map(Step::Trim),
        ];
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        /// Whatever is hinted, read, dropped and put back: each delivery is taken once, in order.
        #[test]
        fn nothing_falls_between_memory_and_store(steps in steps()) {
            const LIMIT: usize = 3;
            let mut stream = Stream::unread();
            let (mut stored, mut done) = (0_u64, Vec::new());
            let mut page: Option<Vec<u64>> = None;
            let mut in_hand: Vec<Hint> = Vec::new();
            let read = |after: MessageId, stored: u64| (after.0 + 1..=stored).take(LIMIT).collect::<Vec<_>>();
            let drain = (0..40).flat_map(|_| [Step::Ask, Step::Answer, Step::Take(9)]);
            for step in steps.into_iter().chain(drain) {
                match step {
                    Step::Store(keep) => {
                        stored += 1;
                        stream.hint(hint(stored), keep);
                    }
                    Step::Ask if stream.is_behind() && !stream.is_reading() => {
                        stream.asked(ReadId(1));
                        page = Some(read(stream.known(), stored));
                    }
                    Step::Answer => {
                        if let Some(found) = page.take() && stream.answered(ReadId(1)) {
                            stream.page(rows(&found), LIMIT as u32, ALL);
                        }
                    }
                    Step::Take(count) => {
                        done.extend(in_hand.drain(..).map(|hint| hint.message.0));
                        in_hand = stream.take(count);
                    }
                    Step::PutBack => stream.put_back(std::mem::take(&mut in_hand)),
                    Step::Trim(keep) => stream.trim(keep),
                    Step::Ask => {}
                }
            }
            done.extend(in_hand.drain(..).map(|hint| hint.message.0));
            prop_assert_eq!(&done, &(1..=stored).collect::<Vec<_>>());
            prop_assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), done.len());
        }
    }
}
