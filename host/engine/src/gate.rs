//! The gate of the intake: how many bytes may wait to be committed, shared fairly.
//!
//! It stands before the engine's channel, so that nothing that waits is uncounted. A source
//! may take as much again as is still free: one hog gets half, two get a third each, and
//! there is always room for another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use portway_model::InterfaceId;

/// Counts bytes between `submit` and its answer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    bytes_max: usize,
    total: AtomicUsize,
    busy: AtomicU64,
    too_large: AtomicU64,
    sources: RwLock<Sources>,
}

type Sources = BTreeMap<InterfaceId, Arc<AtomicUsize>>;

/// Why nothing was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateError {
    /// Its share is used up: later.
    Busy,
    /// It would not fit if nothing else waited.
    TooLarge,
    /// There is no such interface.
    UnknownInterface,
}

/// Bytes that were let in; gives them back when dropped.
#[derive(Debug)]
pub struct Permit {
    counters: Arc<Counters>,
    source: Arc<AtomicUsize>,
    bytes: usize,
}

impl Gate {
    pub fn new(bytes_max: usize, interfaces: impl IntoIterator<Item = InterfaceId>) -> Self {
        let sources = interfaces.into_iter().map(|id| (id, Arc::default())).collect();
        Gate(Arc::new(Counters {
            bytes_max,
            total: AtomicUsize::new(0),
            busy: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
            sources: RwLock::new(sources),
        }))
    }

    /// From now on only these are let in. What is inside stays counted.
    pub(crate) fn keep(&self, interfaces: impl IntoIterator<Item = InterfaceId>) {
        let mut sources = self.0.sources.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *sources);
        *sources = interfaces.into_iter().map(|id| (id, before.remove(&id).unwrap_or_default())).collect();
    }

    /// Lets `bytes` of an interface in, or says why not.
    pub fn admit(&self, interface: InterfaceId, bytes: usize) -> Result<Permit, GateError> {
        let counters = &self.0;
        let source = self.source(interface).ok_or(GateError::UnknownInterface)?;
        if bytes > counters.bytes_max {
            counters.too_large.fetch_add(1, Ordering::Relaxed);
            return Err(GateError::TooLarge);
        }
        let total = counters.total.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let own = source.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let permit = Permit { counters: Arc::clone(counters), source, bytes };
        let free_before = counters.bytes_max.saturating_sub(total - bytes);
        let fits = total <= counters.bytes_max && own <= free_before;
        if fits {
            return Ok(permit);
        }
        // Dropping the permit takes the bytes back.
        counters.busy.fetch_add(1, Ordering::Relaxed);
        Err(GateError::Busy)
    }

    fn source(&self, interface: InterfaceId) -> Option<Arc<AtomicUsize>> {
        self.0.sources.read().unwrap_or_else(PoisonError::into_inner).get(&interface).cloned()
    }

    /// Submissions that were not let in: because too much waited, and because they were too large.
    pub fn refused(&self) -> (u64, u64) {
        (self.0.busy.load(Ordering::Relaxed), self.0.too_large.load(Ordering::Relaxed))
    }

    /// Bytes inside now.
    pub fn bytes(&self) -> usize {
        self.0.total.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.counters.total.fetch_sub(self.bytes, Ordering::Relaxed);
        self.source.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate::new(100, [InterfaceId(1), InterfaceId(2)])
    }

    #[test]
    fn one_source_gets_half_and_leaves_room_for_another() {
        let gate = gate();
        let first: Vec<_> = (0..10).map_while(|_| gate.admit(InterfaceId(1), 10).ok()).collect();
        assert_eq!(first.len(), 5);
        assert_eq!(gate.admit(InterfaceId(1), 10).err(), Some(GateError::Busy));
        assert!(gate.admit(InterfaceId(2), 10).is_ok());
    }

    #[test]
    fn what_is_answered_makes_room() {
        let gate = gate();
        let all = gate.admit(InterfaceId(1), 100).unwrap();
        assert_eq!(gate.admit(InterfaceId(2), 1).err(), Some(GateError::Busy));
        drop(all);
        assert_eq!(gate.bytes(), 0);
        assert!(gate.admit(InterfaceId(2), 1).is_ok());
    }

    #[test]
    fn an_interface_that_is_gone_is_not_let_in_and_what_was_inside_stays_counted() {
        let gate = gate();
        let inside = gate.admit(InterfaceId(1), 40).unwrap();
        gate.keep([InterfaceId(2), InterfaceId(3)]);
        assert_eq!(gate.admit(InterfaceId(1), 1).err(), Some(GateError::UnknownInterface));
        assert_eq!(gate.bytes(), 40);
        assert!(gate.admit(InterfaceId(3), 60).is_ok());
        gate.keep([InterfaceId(1)]);
        drop(inside);
        assert_eq!(gate.bytes(), 0);
        assert!(gate.admit(InterfaceId(1), 100).is_ok());
    }

    #[test]
    fn what_can_never_fit_is_told_apart_from_what_may_fit_later() {
        let gate = gate();
        assert_eq!(gate.admit(InterfaceId(1), 101).err(), Some(GateError::TooLarge));
        assert_eq!(gate.admit(InterfaceId(9), 1).err(), Some(GateError::UnknownInterface));
        assert_eq!(gate.refused(), (0, 1));
    }
}
