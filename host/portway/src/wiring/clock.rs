//! The machine's clocks, for the engine.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portway_engine::ports::Clock;
use portway_model::Timestamp;

/// Wall time from the system, waits from a clock that never goes back.
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Before 1970 there is nothing to tell apart.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
