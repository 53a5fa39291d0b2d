//! How long messages take from their receipt to their arrival, by destination.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use portway_admin::views;

/// Buckets for each doubling of the time, so that a quantile is within 19 percent.
const PER_DOUBLING: f64 = 4.0;
/// From under 1 ms to more than 18 hours.
const BUCKETS: usize = 108;

/// Counts by duration; shared between runs.
pub struct LatencyCounts([AtomicU64; BUCKETS]);

impl Default for LatencyCounts {
    fn default() -> Self {
        LatencyCounts(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl LatencyCounts {
    /// Messages that took `took` each.
    pub fn record(&self, took: Duration) {
        let millis = took.as_secs_f64() * 1_000.0;
        // Below 1 ms the logarithm is negative and the cast ends at 0.
        let bucket = (millis.log2() * PER_DOUBLING).ceil() as usize;
        if let Some(count) = self.0.get(bucket.min(BUCKETS - 1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn view(&self) -> views::DeliveryLatency {
        let counts: Vec<u64> = self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        views::DeliveryLatency {
            count: counts.iter().sum(),
            p50_ms: quantile_ms(&counts, 0.5),
            p99_ms: quantile_ms(&counts, 0.99),
        }
    }
}

/// The upper edge of the bucket that a quantile falls into.
fn quantile_ms(counts: &[u64], quantile: f64) -> f64 {
    let wanted = (counts.iter().sum::<u64>() as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    let found = counts.iter().position(|count| {
        seen += count;
        seen >= wanted && *count > 0
    });
    found.map_or(0.0, |bucket| ((bucket as f64 / PER_DOUBLING).exp2() * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_what_was_recorded() {
        let counts = LatencyCounts::default();
        for millis in 1..=100 {
            counts.record(Duration::from_millis(millis));
        }
        let view = counts.view();
        assert_eq!(view.count, 100);
        assert!((50.0..60.0).contains(&view.p50_ms), "{view:?}");
        assert!((99.0..119.0).contains(&view.p99_ms), "{view:?}");
        counts.record(Duration::ZERO);
        counts.record(Duration::MAX);
        assert_eq!(counts.view().count, 102);
    }
}
