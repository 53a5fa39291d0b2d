//! The bytes all connections of the engine may hold together.
//!
//! A connection's first bytes are free, so that small frames cost nothing to count and a full
//! budget stops nobody who sends them. Above that it waits for room, unread, and its peer with
//! it; if all room is held by frames that do not end, their time-out ends them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a connection that are not counted.
pub(crate) const FREE_BYTES: usize = 128 << 10;
/// Bytes of one permit.
const UNIT: usize = 4 << 10;

/// One an engine, shared by its drivers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget {
    units: Arc<Semaphore>,
    units_max: u32,
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Hold {
    budget: Budget,
    held: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// At least room for one connection's free bytes.
    pub fn new(bytes_max: usize) -> Budget {
        let units = bytes_max.div_ceil(UNIT).clamp(FREE_BYTES / UNIT, u32::MAX as usize >> 3);
        let units_max = u32::try_from(units).unwrap_or(u32::MAX >> 3);
        Budget { units: Arc::new(Semaphore::new(units)), units_max }
    }

    /// Bytes held above what is free.
    pub fn held(&self) -> usize {
        (self.units_max as usize).saturating_sub(self.units.available_permits()) * UNIT
    }

    pub(crate) fn hold(&self) -> Hold {
        Hold { budget: self.clone(), held: None }
    }
}

impl Hold {
    /// Holds room for so many bytes, no more; waits until there is room. May be dropped and
    /// called again.
    pub(crate) async fn resize(&mut self, bytes: usize) {
        let wanted = bytes.saturating_sub(FREE_BYTES).div_ceil(UNIT);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(self.budget.units_max);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if wanted == 0 {
            self.held = None;
            return;
        }
        let missing = (wanted as usize).saturating_sub(held);
        if let Some(excess) = held.checked_sub(wanted as usize).filter(|excess| *excess > 0) {
            drop(self.held.as_mut().and_then(|permit| permit.split(excess)));
        }
        if missing == 0 {
            return;
        }
        let units = self.budget.units.clone().acquire_many_owned(u32::try_from(missing).unwrap_or(u32::MAX));
        // Never closed; an error would only mean that nothing is counted.
        let Ok(units) = units.await else { return };
        match &mut self.held {
            Some(held) => held.merge(units),
            None => self.held = Some(units),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_first_bytes_are_free_and_the_rest_is_given_back() {
        let budget = Budget::new(1 << 20);
        let mut hold = budget.hold();
        hold.resize(FREE_BYTES).now_or_never().unwrap();
        assert_eq!(budget.held(), 0);
        hold.resize(FREE_BYTES + 1).now_or_never().unwrap();
        assert_eq!(budget.held(), UNIT);
        hold.resize(FREE_BYTES + 10 * UNIT).now_or_never().unwrap();
        hold.resize(FREE_BYTES + 4 * UNIT).now_or_never().unwrap();
        assert_eq!(budget.held(), 4 * UNIT);
        drop(hold);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn who_finds_no_room_waits_until_another_gives_back() {
        let budget = Budget::new(1 << 20);
        let (mut first, mut second) = (budget.hold(), budget.hold());
        first.resize(FREE_BYTES + (1 << 20)).now_or_never().unwrap();
        assert!(second.resize(FREE_BYTES + UNIT).now_or_never().is_none());
        assert!(second.resize(FREE_BYTES).now_or_never().is_some());
        first.resize(0).now_or_never().unwrap();
        assert!(second.resize(FREE_BYTES + UNIT).now_or_never().is_some());
    }

    #[test]
    fn more_than_there_is_takes_all_there_is() {
        let budget = Budget::new(1 << 20);
        budget.hold().resize(usize::MAX).now_or_never().unwrap();
    }
}
