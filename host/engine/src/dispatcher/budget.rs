//! What may be in memory over all destinations: deliveries by count, bodies by bytes.
//!
//! Bodies have two halves: those kept since their commit, and those read for a run. So kept
//! ones, which may wait behind a blocked lane, never keep a run from starting. A message that does
//! not fit in what is free is read beyond the budget, one such message at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portway_model::Envelope;

use crate::settings::Limits;

/// Bodies in one run; a larger message runs alone.
pub(crate) const RUN_BYTES_MAX: usize = 4 << 20;
/// What a run may always read if it is free, however little that is of the whole.
const RUN_BYTES_MIN: usize = 64 << 10;

/// A message kept in memory since its commit, counted once for all its destinations.
#[derive(Debug)]
pub(crate) struct Carried {
    pub envelope: Envelope,
    bytes: usize,
    counter: Arc<AtomicUsize>,
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes that a run has read; given back with [`Budget::release`].
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Loan {
    bytes: usize,
    overdraft: bool,
}

/// See the file.
#[derive(Debug)]
pub(crate) struct Budget {
    waiting: usize,
    /// Room promised to reads in hand.
    reserved: usize,
    waiting_max: usize,
    carried: Arc<AtomicUsize>,
    half_bytes: usize,
    loaded: usize,
    overdraft: bool,
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        Budget {
            waiting: 0,
            reserved: 0,
            waiting_max: limits.waiting_max.max(1),
            carried: Arc::new(AtomicUsize::new(0)),
            half_bytes: (limits.waiting_bytes_max / 2).max(1),
            loaded: 0,
            overdraft: false,
        }
    }

    /// Keeps a committed message if there is room.
    pub fn carry(&self, envelope: Envelope) -> Option<Arc<Carried>> {
        let attributes = envelope.attributes.pairs().iter().map(|(name, value)| name.len() + value.len());
        let bytes = envelope.body.len() + size_of::<Carried>() + attributes.sum::<usize>();
        if self.carried.load(Ordering::Relaxed).saturating_add(bytes) > self.half_bytes {
            return None;
        }
        self.carried.fetch_add(bytes, Ordering::Relaxed);
        Some(Arc::new(Carried { envelope, bytes, counter: Arc::clone(&self.carried) }))
    }

    /// Deliveries in memory: from `before` to `after` in one queue.
    pub fn count(&mut self, before: usize, after: usize) {
        self.waiting = (self.waiting + after).saturating_sub(before);
    }

    pub fn reserve(&mut self, count: u32) {
        self.reserved += count as usize;
    }

    pub fn unreserve(&mut self, count: u32) {
        self.reserved = self.reserved.saturating_sub(count as usize);
    }

    /// How many more deliveries may be in memory.
    pub fn room(&self) -> usize {
        self.waiting_max.saturating_sub(self.waiting + self.reserved)
    }

    /// More than half is used: what cannot go on keeps only its head.
    pub fn is_tight(&self) -> bool {
        self.waiting + self.reserved > self.waiting_max / 2 || self.carried_bytes() > self.half_bytes / 2
    }

    /// What a run may read now.
    pub fn run_bytes(&self) -> usize {
        let free = self.half_bytes.saturating_sub(self.loaded);
        RUN_BYTES_MAX.min((free / 4).max(RUN_BYTES_MIN)).min(free)
    }

    /// Bytes for a run; `messages` tells whether one message asks, which may overdraw.
    pub fn borrow(&mut self, bytes: usize, messages: usize) -> Option<Loan> {
        if bytes <= self.half_bytes.saturating_sub(self.loaded) {
            self.loaded += bytes;
            return Some(Loan { bytes, overdraft: false });
        }
        if messages != 1 || self.overdraft {
            return None;
        }
        self.overdraft = true;
        Some(Loan { bytes, overdraft: true })
    }

    pub fn release(&mut self, loan: Loan) {
        if loan.overdraft {
            self.overdraft = false;
        } else {
            self.loaded = self.loaded.saturating_sub(loan.bytes);
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn carried_bytes(&self) -> usize {
        self.carried.load(Ordering::Relaxed)
    }

    pub fn loaded_bytes(&self) -> usize {
        self.loaded
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{AttemptNo, MessageId, Timestamp};

    use super::*;

    fn budget(waiting_bytes_max: usize) -> Budget {
        Budget::new(&Limits { waiting_bytes_max, waiting_max: 10, ..Limits::default() })
    }

    fn envelope(bytes: usize) -> Envelope {
        Envelope {
            id: MessageId(1),
            received_at: Timestamp(0),
            attempt: AttemptNo(1),
            key: None,
            attributes: Arc::default(),
            body: vec![0; bytes].into(),
        }
    }

    #[test]
    fn a_kept_message_counts_once_and_until_the_last_destination_is_done() {
        let budget = budget(4_000);
        let first = budget.carry(envelope(1_000)).unwrap();
        let second = Arc::clone(&first);
        let bytes = budget.carried_bytes();
        assert!(budget.carry(envelope(1_000)).is_none());
        drop(first);
        assert_eq!(budget.carried_bytes(), bytes);
        drop(second);
        assert_eq!(budget.carried_bytes(), 0);
    }

    #[test]
    fn one_message_at_a_time_may_be_larger_than_what_is_free() {
        let mut budget = budget(2_000);
        let small = budget.borrow(600, 3).unwrap();
        assert_eq!(budget.borrow(600, 2), None);
        let large = budget.borrow(1 << 20, 1).unwrap();
        assert_eq!(budget.borrow(600, 1), None, "the overdraft is taken");
        budget.release(large);
        assert!(budget.borrow(600, 1).is_some());
        budget.release(small);
        assert_eq!(budget.loaded_bytes(), 0);
    }

    #[test]
    fn a_promise_to_a_read_takes_room() {
        let mut budget = budget(2_000);
        budget.reserve(4);
        budget.count(0, 3);
        assert_eq!((budget.room(), budget.is_tight()), (3, true));
        budget.unreserve(4);
        budget.count(3, 1);
        assert_eq!((budget.room(), budget.is_tight()), (9, false));
    }
}
