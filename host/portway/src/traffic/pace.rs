//! When the next message is due, at a steady rate over all connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Hands out times one interval apart. Who comes late sends at once: the rate is caught up with.
#[derive(Debug)]
pub(crate) struct Pace {
    start: Instant,
    /// Between two messages of the whole; none: as fast as answers come.
    interval: Option<Duration>,
    next: AtomicU64,
}

impl Pace {
    pub(crate) fn new(per_second: Option<f64>) -> Pace {
        let interval = per_second.filter(|rate| *rate > 0.0 && rate.is_finite());
        let interval = interval.map(|rate| Duration::from_secs_f64((1.0 / rate).min(86_400.0)));
        Pace { start: Instant::now(), interval, next: AtomicU64::new(0) }
    }

    pub(crate) async fn wait(&self) {
        if let Some(interval) = self.interval {
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            let nanos = interval.as_nanos().saturating_mul(u128::from(turn));
            let after = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            if let Some(at) = self.start.checked_add(after) {
                sleep_until(at).await;
            }
        }
    }
}
