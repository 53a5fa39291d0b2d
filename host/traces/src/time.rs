//! Wall time of moments that were taken with the monotonic clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One moment on both clocks. Taken anew for each piece of work: the wall clock may be set meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    at: Instant,
    wall: Duration,
}

impl Anchor {
    pub fn now() -> Anchor {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Anchor { at: Instant::now(), wall }
    }

    /// Nanoseconds since 1970.
    pub fn ns(&self) -> u64 {
        whole(self.wall)
    }

    /// The same of a moment near it.
    pub fn ns_of(&self, moment: Instant) -> u64 {
        match moment.checked_duration_since(self.at) {
            Some(after) => whole(self.wall.saturating_add(after)),
            None => whole(self.wall.saturating_sub(self.at.duration_since(moment))),
        }
    }
}

fn whole(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_before_and_after_keep_their_distance() {
        let anchor = Anchor::now();
        let second = Duration::from_secs(1);
        assert_eq!(anchor.ns_of(anchor.at + second) - anchor.ns(), 1_000_000_000);
        assert_eq!(anchor.ns_of(anchor.at), anchor.ns());
        if let Some(before) = anchor.at.checked_sub(second) {
            assert_eq!(anchor.ns() - anchor.ns_of(before), 1_000_000_000);
        }
    }
}
