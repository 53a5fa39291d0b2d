//! Deliveries without order: those of `order = "none"`, and resent ones.
//!
//! Two streams: those that were never put off are read by message, like a lane; the others by the
//! time they are due. What is put off is forgotten here and read when its time has come, so that
//! any number of waiting retries costs nothing.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use portway_model::{MessageId, Order, Round, Timestamp};
use portway_store::Pending;

use super::stream::{Hint, Stream};
use crate::completer::Origin;
use crate::event::ReadId;
use crate::time::Moment;

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    pub fresh: Stream,
    due: VecDeque<Hint>,
    /// Due deliveries that are in memory, in hand, or done and not yet written: the store still
    /// shows them as due.
    taken: BTreeSet<(MessageId, Round)>,
    /// Written while a read of due ones was in hand, whose page may be older.
    written: Vec<(MessageId, Round)>,
    read: Option<ReadId>,
    /// So many deliveries are taken from the page in hand.
    wanted: u32,
    /// The store has due ones that are not in memory.
    due_behind: bool,
    /// The next time one is due in the store.
    next_due: Option<Timestamp>,
    /// How far this destination's time is ahead: stored times were further away than any wait may be,
    /// so the clock must have been stepped back since.
    ahead: Duration,
    /// Results that are not written yet: what they put off is not in the store.
    unwritten: u32,
    /// As in a lane, for each of the two.
    pub careful: Careful,
    pub singly: u32,
    pub listed: bool,
    /// The first stream is read from its beginning, once nothing is in hand or unwritten.
    rewind: bool,
    last: Option<Origin>,
}

/// How many more are recorded before they are tried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Careful {
    pub fresh: u32,
    pub due: u32,
}

impl Apart {
    pub fn is_ready(&self) -> bool {
        !self.rewind && (!self.fresh.is_empty() || !self.due.is_empty())
    }

    /// Others stored deliveries. Where there is no order they are read by message, with any numbers: that
    /// begins again.
    pub fn read_again(&mut self, order: Order) {
        self.rewind |= order == Order::None;
        self.due_behind = true;
    }

    pub fn is_rewinding(&self) -> bool {
        self.rewind
    }

    /// Begins again from the first message, if it can by now: what is in hand would be taken twice.
    pub fn try_rewind(&mut self, is_free: bool) {
        if self.rewind && is_free && self.unwritten == 0 {
            self.rewind = false;
            self.fresh.rewind(MessageId(1));
        }
    }

    /// Deliveries in memory.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.due.len()
    }

    /// Which of the two goes next: in turns where both have something.
    pub fn next_origin(&self) -> Origin {
        let due_first = self.last != Some(Origin::Due) || self.fresh.is_empty();
        if !self.due.is_empty() && due_first { Origin::Due } else { Origin::Queue }
    }

    /// Deliveries of an origin, in their order.
    pub fn iter(&self, origin: Origin) -> Box<dyn Iterator<Item = &Hint> + '_> {
        match origin {
            Origin::Queue => Box::new(self.fresh.iter()),
            Origin::Due => Box::new(self.due.iter()),
        }
    }

    pub fn careful(&mut self, origin: Origin) -> &mut u32 {
        match origin {
            Origin::Queue => &mut self.careful.fresh,
            Origin::Due => &mut self.careful.due,
        }
    }

    pub fn take(&mut self, origin: Origin, count: usize) -> Vec<Hint> {
        self.last = Some(origin);
        match origin {
            Origin::Queue => self.fresh.take(count),
            Origin::Due => self.due.drain(..count.min(self.due.len())).collect(),
        }
    }

    pub fn put_back(&mut self, origin: Origin, hints: Vec<Hint>) {
        match origin {
            Origin::Queue => self.fresh.put_back(hints),
            Origin::Due => hints.into_iter().rev().for_each(|hint| self.due.push_front(hint)),
        }
    }

    /// Takes a delivery, as it was before a round, out of memory and drops pages that may show it so.
    pub fn remove(&mut self, message: MessageId, before: Round) {
        self.fresh.remove(message, before);
        self.fresh.cancel_read();
        for hint in self.due.iter().filter(|hint| hint.is_of(message, before)) {
            self.taken.remove(&(message, hint.round));
        }
        self.due.retain(|hint| !hint.is_of(message, before));
        if self.read.take().is_some() {
            self.due_behind = true;
            self.forget_written();
        }
    }

    /// Leaves to the store what no run had in hand.
    pub fn trim(&mut self) {
        self.fresh.trim(0);
        self.fresh.strip();
        while let Some(hint) = self.due.pop_back() {
            self.taken.remove(&(hint.message, hint.round));
            self.due_behind = true;
        }
    }

    /// This destination's own time, in which its retries are stored.
    pub fn now(&self, at: &Moment) -> Timestamp {
        at.steady + self.ahead
    }

    /// Rows of a due page that are known already.
    pub fn excluded(&self) -> usize {
        self.taken.len() + self.written.len()
    }

    pub fn wants_due(&self) -> bool {
        self.due_behind && self.read.is_none() && self.due.is_empty()
    }

    pub fn asked(&mut self, read: ReadId, wanted: u32) {
        self.read = Some(read);
        self.wanted = wanted;
        self.due_behind = false;
    }

    /// Whether this read is still waited for; it is not any more afterwards.
    pub fn answered(&mut self, read: ReadId) -> bool {
        let expected = self.read == Some(read);
        if expected {
            self.read = None;
        }
        expected
    }

    /// Takes in due ones; says whether there may be more in the store.
    pub fn page(&mut self, rows: Vec<Pending>, limit: u32) -> MayBeMore {
        let mut is_full = rows.len() >= limit as usize;
        let mut left = self.wanted;
        for row in rows {
            let key = (row.message, row.round);
            if self.written.contains(&key) || self.taken.contains(&key) {
                continue;
            }
            if left == 0 {
                is_full = true;
                break;
            }
            left -= 1;
            self.taken.insert(key);
            self.due.push_back(Hint::from(row));
        }
        self.forget_written();
        self.due_behind |= is_full;
        if is_full { MayBeMore::Yes } else { MayBeMore::No }
    }

    /// A result was accepted.
    pub fn accepted(&mut self) {
        self.unwritten += 1;
    }

    /// A result was written: the store shows the delivery as it is.
    pub fn wrote(&mut self, message: MessageId, round: Round, origin: Origin) {
        self.unwritten = self.unwritten.saturating_sub(1);
        if origin == Origin::Due {
            self.leave(message, round);
        }
    }

    /// A due one is not in memory any more. An older page may still be on its way.
    pub fn leave(&mut self, message: MessageId, round: Round) {
        if self.read.is_some() {
            self.written.push((message, round));
        } else {
            self.taken.remove(&(message, round));
        }
    }

    /// Something is due at this time; when to look, if that is news.
    pub fn arm(&mut self, due_at: Timestamp, at: &Moment, longest: Duration) -> Option<Duration> {
        if due_at <= self.now(at) {
            self.due_behind = true;
            return None;
        }
        if self.next_due.is_some_and(|next| next <= due_at) {
            return None;
        }
        self.next_due = Some(due_at);
        Some(self.look_at(due_at, at, longest))
    }

    /// Looks whether something is due by now; when to look again, if not.
    pub fn wake(&mut self, at: &Moment, longest: Duration) -> Option<Duration> {
        let due_at = self.next_due?;
        if due_at <= self.now(at) {
            self.next_due = None;
            self.due_behind = true;
            return None;
        }
        Some(self.look_at(due_at, at, longest))
    }

    /// When it is due by the monotonic clock. What is further away than any wait may be is pulled
    /// near, unless something nearer is on its way to the store, which would come early.
    fn look_at(&mut self, due_at: Timestamp, at: &Moment, longest: Duration) -> Duration {
        let wait = due_at.since(self.now(at));
        if wait > longest && self.unwritten == 0 {
            self.ahead += wait - longest;
        }
        at.monotonic + wait.min(longest).max(Duration::from_millis(1))
    }

    /// Nothing is put off in the store.
    pub fn none_due(&mut self) {
        if self.next_due.is_none() && self.taken.is_empty() && self.unwritten == 0 {
            self.ahead = Duration::ZERO;
        }
    }

    fn forget_written(&mut self) {
        for key in self.written.drain(..) {
            self.taken.remove(&key);
        }
    }
}

/// Whether a page was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayBeMore {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use portway_model::{AttemptNo, Lane};

    use super::*;

    fn row(message: u64, round: u32) -> Pending {
        Pending {
            message: MessageId(message),
            lane: Lane::APART,
            round: Round(round),
            attempts: AttemptNo(1),
            due_at: Some(Timestamp(1)),
            body_bytes: 1,
        }
    }

    fn at(wall: u64) -> Moment {
        let wall = Timestamp(wall);
        Moment { wall, steady: wall, monotonic: Duration::from_millis(wall.0) }
    }

    const LONGEST: Duration = Duration::from_secs(60);

    fn due(apart: &Apart) -> Vec<u64> {
        apart.iter(Origin::Due).map(|hint| hint.message.0).collect()
    }

    #[test]
    fn what_is_in_hand_or_unwritten_is_not_taken_twice() {
        let mut apart = Apart::default();
        apart.asked(ReadId(1), 10);
        apart.page(vec![row(1, 0), row(2, 0)], 10);
        apart.take(Origin::Due, 2);
        apart.asked(ReadId(2), 10);
        // Its result is written while an older page is on its way.
        apart.wrote(MessageId(1), Round(0), Origin::Due);
        apart.page(vec![row(1, 0), row(2, 0), row(3, 0)], 10);
        assert_eq!(due(&apart), [3]);
        assert_eq!(apart.excluded(), 2);
    }

    #[test]
    fn a_resent_one_goes_at_once_though_its_earlier_round_is_in_hand() {
        let mut apart = Apart { wanted: 10, ..Apart::default() };
        apart.page(vec![row(1, 0)], 10);
        apart.take(Origin::Due, 1);
        apart.page(vec![row(1, 1)], 10);
        assert_eq!(due(&apart), [1]);
    }

    #[test]
    fn a_time_beyond_the_longest_wait_is_pulled_near_and_others_stay_in_order() {
        let mut apart = Apart::default();
        let hour = Timestamp(3_600_000);
        let wake = apart.arm(hour, &at(0), LONGEST).unwrap();
        assert_eq!(wake, LONGEST);
        // A retry of now is stored in the same time: behind, not before all that waits.
        assert_eq!(apart.now(&at(0)), Timestamp(3_540_000));
        assert_eq!(apart.wake(&at(59_999), LONGEST), Some(Duration::from_millis(60_000)));
        assert_eq!(apart.wake(&at(60_000), LONGEST), None);
        assert!(apart.wants_due());
        apart.none_due();
        assert_eq!(apart.now(&at(0)), Timestamp(0));
    }

    #[test]
    fn a_page_gives_no_more_than_was_wanted() {
        let mut apart = Apart::default();
        apart.asked(ReadId(1), 2);
        assert_eq!(apart.page(vec![row(1, 0), row(2, 0), row(3, 0)], 10), MayBeMore::Yes);
        assert_eq!((due(&apart), apart.wants_due()), (vec![1, 2], false));
        apart.take(Origin::Due, 2);
        apart.answered(ReadId(1));
        assert!(apart.wants_due());
    }

    #[test]
    fn trimming_leaves_due_ones_to_the_store() {
        let mut apart = Apart { wanted: 10, ..Apart::default() };
        apart.page(vec![row(1, 0)], 10);
        apart.trim();
        assert_eq!((apart.len(), apart.excluded(), apart.wants_due()), (0, 0, true));
    }
}
