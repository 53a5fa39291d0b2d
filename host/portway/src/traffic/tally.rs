//! What arrived: for each key in order, twice, or not at all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use portway_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::latency::{Latency, LatencyReport};
use super::message::{Identity, Seen};

/// Counts messages as they arrive, from any number of tasks.
#[derive(Debug, Default)]
pub struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    keys: HashMap<String, KeyTally>,
    latency: Latency,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    received: u64,
    distinct: u64,
    duplicates: u64,
    late: u64,
    unknown: u64,
    turned_away: u64,
}

#[derive(Debug, Default)]
struct KeyTally {
    /// The highest sequence number so far.
    highest: u64,
    /// What was skipped below it: first and last of each stretch.
    gaps: BTreeMap<u64, u64>,
}

/// The figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TallyReport {
    /// Messages that arrived and were taken, repeated ones included.
    pub received: u64,
    /// Different ones of them.
    pub distinct: u64,
    /// Arrived again.
    pub duplicates: u64,
    /// Arrived after a later one of their key: order was broken.
    pub late: u64,
    /// Skipped so far.
    pub missing: u64,
    /// Not of our traffic.
    pub unknown: u64,
    /// Answered with an error on purpose.
    pub turned_away: u64,
    pub keys: u64,
    /// The first skipped, at most ten, as `KEY-SEQUENCE`.
    pub missing_first: Vec<String>,
    /// From MSH-7 to the receipt here; only where both clocks are one.
    pub latency: LatencyReport,
}

impl TallyReport {
    /// Nothing skipped and nothing out of order. Duplicates are allowed after a crash.
    pub fn is_good(&self) -> bool {
        self.late == 0 && self.missing == 0
    }
}

impl Tally {
    /// Counts a message that was taken.
    pub fn record(&self, seen: Option<&Seen>, now: Timestamp) {
        let mut inner = self.lock();
        inner.counts.received += 1;
        let Some(seen) = seen else {
            inner.counts.unknown += 1;
            return;
        };
        if let Some(sent_at) = seen.sent_at {
            inner.latency.record(now.since(sent_at));
        }
        inner.record(&seen.identity);
    }

    /// Counts a message that was answered with an error on purpose.
    pub fn record_turned_away(&self) {
        self.lock().counts.turned_away += 1;
    }

    /// Different messages so far.
    pub fn distinct(&self) -> u64 {
        self.lock().counts.distinct
    }

    pub fn report(&self) -> TallyReport {
        let inner = self.lock();
        let Counts { received, distinct, duplicates, late, unknown, turned_away } = inner.counts;
        let gaps = || inner.keys.iter().flat_map(|(key, tally)| tally.gaps.iter().map(move |gap| (key, gap)));
        let mut first: Vec<_> = gaps().map(|(key, (first, _))| (key, *first)).collect();
        first.sort();
        TallyReport {
            received,
            distinct,
            duplicates,
            late,
            missing: gaps().map(|(_, (first, last))| last - first + 1).sum(),
            unknown,
            turned_away,
            keys: inner.keys.len() as u64,
            missing_first: first.iter().take(10).map(|(key, sequence)| format!("{key}-{sequence}")).collect(),
            latency: inner.latency.report(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // Counting cannot panic halfway.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    fn record(&mut self, identity: &Identity) {
        let Identity { key, sequence } = identity;
        let sequence = *sequence;
        if !self.keys.contains_key(key) {
            self.keys.insert(key.clone(), KeyTally::default());
        }
        let Some(tally) = self.keys.get_mut(key) else { return };
        if sequence > tally.highest {
            if sequence > tally.highest + 1 {
                tally.gaps.insert(tally.highest + 1, sequence - 1);
            }
            tally.highest = sequence;
            self.counts.distinct += 1;
        } else if tally.fill(sequence) {
            self.counts.late += 1;
            self.counts.distinct += 1;
        } else {
            self.counts.duplicates += 1;
        }
    }
}

impl KeyTally {
    /// Whether the number was in a gap; it is not any more.
    fn fill(&mut self, sequence: u64) -> bool {
        let Some((first, last)) =
            self.gaps.range(..=sequence).next_back().map(|(first, last)| (*first, *last))
        else {
            return false;
        };
        if sequence > last {
            return false;
        }
        self.gaps.remove(&first);
        if first < sequence {
            self.gaps.insert(first, sequence - 1);
        }
        if sequence < last {
            self.gaps.insert(sequence + 1, last);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sequences: &[u64]) -> (u64, u64, u64, u64) {
        let tally = Tally::default();
        for sequence in sequences {
            let identity = Identity { key: "PWa".into(), sequence: *sequence };
            tally.record(Some(&Seen { identity, sent_at: None }), Timestamp(0));
        }
        let report = tally.report();
        (report.distinct, report.duplicates, report.late, report.missing)
    }

    #[test]
    fn order_gaps_and_repeats_are_told_apart() {
        assert_eq!(check(&[1, 2, 3]), (3, 0, 0, 0));
        assert_eq!(check(&[1, 2, 3, 2, 3, 4]), (4, 2, 0, 0), "a run repeated after a crash");
        assert_eq!(check(&[2, 1]), (2, 0, 1, 0), "out of order");
        assert_eq!(check(&[1, 10]), (2, 0, 0, 8), "eight are missing");
        assert_eq!(check(&[1, 10, 5, 5, 9, 2]), (5, 1, 3, 5));
    }
}
