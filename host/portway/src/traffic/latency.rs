//! A histogram of durations: constant memory, within 2 % of the truth.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Buckets in each doubling.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Doublings: up to 2^41 µs, about 25 days.
const DOUBLINGS: usize = 36;

/// Durations so far.
#[derive(Clone, Debug)]
pub struct Latency {
    counts: Vec<u64>,
    count: u64,
    longest_us: u64,
}

/// The usual figures, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    pub count: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub longest_ms: f64,
}

impl Default for Latency {
    fn default() -> Self {
        Latency { counts: vec![0; DOUBLINGS * STEPS as usize], count: 0, longest_us: 0 }
    }
}

impl Latency {
    pub fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let last = self.counts.len().saturating_sub(1);
        if let Some(count) = self.counts.get_mut(bucket(micros).min(last)) {
            *count += 1;
        }
        self.count += 1;
        self.longest_us = self.longest_us.max(micros);
    }

    pub fn add(&mut self, other: &Latency) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.longest_us = self.longest_us.max(other.longest_us);
    }

    /// The duration that so many percent do not exceed.
    pub fn percentile(&self, percent: f64) -> Duration {
        let wanted = (self.count as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(upper_edge(at).min(self.longest_us));
            }
        }
        Duration::ZERO
    }

    pub fn report(&self) -> LatencyReport {
        let millis = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        LatencyReport {
            count: self.count,
            p50_ms: millis(self.percentile(50.0)),
            p99_ms: millis(self.percentile(99.0)),
            longest_ms: self.longest_us as f64 / 1_000.0,
        }
    }
}

/// Below [`STEPS`] one bucket a microsecond, then [`STEPS`] for each doubling.
fn bucket(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let doubling = 63 - micros.leading_zeros() - STEP_BITS;
    let step = (micros >> doubling) - STEPS;
    ((u64::from(doubling) + 1) * STEPS + step) as usize
}

fn upper_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let (doubling, step) = (bucket / STEPS - 1, bucket % STEPS);
    ((STEPS + step + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_within_two_percent_of_its_bucket() {
        for micros in (0..5_000).chain([9_999, 123_456, 7_654_321, 86_400_000_000]) {
            let edge = upper_edge(bucket(micros));
            assert!(edge >= micros && edge as f64 <= micros as f64 * 1.02 + 1.0, "{micros}: {edge}");
        }
    }

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut latency = Latency::default();
        (1..=1_000).for_each(|millis| latency.record(Duration::from_millis(millis)));
        let report = latency.report();
        assert!((report.p50_ms - 500.0).abs() < 10.0, "{report:?}");
        assert!((report.p99_ms - 990.0).abs() < 20.0, "{report:?}");
        assert_eq!((report.count, report.longest_ms), (1_000, 1_000.0));
        assert_eq!(Latency::default().report(), LatencyReport::default());
        latency.record(Duration::MAX);
    }
}
