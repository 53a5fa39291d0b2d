//! What was acknowledged, or what arrived: files of lines `KEY SEQUENCE`.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// Which sequence numbers of each key there are, in order.
#[derive(Default)]
pub(super) struct Ledger {
    by_key: HashMap<String, Vec<u64>>,
    pub(super) repeated: u64,
    pub(super) out_of_order: u64,
}

impl Ledger {
    /// Of one file or several that have no key in common.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Ledger> {
        let mut ledger = Ledger::default();
        for path in paths {
            let text = fs::read_to_string(path).with_context(|| format!("no ledger {}", path.display()))?;
            for line in text.lines() {
                let bad = || format!("bad line `{line}` in {}", path.display());
                let (key, sequence) = line.split_once(' ').with_context(bad)?;
                ledger.add(key, sequence.parse().with_context(bad)?);
            }
        }
        Ok(ledger)
    }

    /// A number seen before is a repeat; a new one below the highest is out of order.
    fn add(&mut self, key: &str, sequence: u64) {
        let seen = self.by_key.entry(key.to_owned()).or_default();
        match seen.binary_search(&sequence) {
            Ok(_) => self.repeated += 1,
            Err(at) => {
                self.out_of_order += u64::from(at != seen.len());
                seen.insert(at, sequence);
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }

    /// What is here and not there, in order.
    pub(super) fn missing_in(&self, arrived: &Ledger) -> Vec<String> {
        let mut missing = Vec::new();
        for (key, sequences) in &self.by_key {
            let there = arrived.by_key.get(key);
            let is_there = |sequence: &&u64| there.is_some_and(|there| there.binary_search(sequence).is_ok());
            let lost = sequences.iter().filter(|sequence| !is_there(sequence));
            missing.extend(lost.map(|sequence| (key, *sequence)));
        }
        missing.sort();
        missing.into_iter().map(|(key, sequence)| format!("{key}-{sequence}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(pairs: &[(&str, u64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (key, sequence) in pairs {
            ledger.add(key, *sequence);
        }
        ledger
    }

    #[test]
    fn repeats_are_no_disorder_and_a_late_number_is() {
        let arrived = ledger(&[("a", 1), ("a", 2), ("b", 1), ("a", 2), ("a", 3), ("b", 3), ("b", 2)]);
        assert_eq!((arrived.repeated, arrived.out_of_order, arrived.count()), (1, 1, 6));
    }

    #[test]
    fn what_did_not_arrive_is_missing() {
        let acknowledged = ledger(&[("a", 1), ("a", 2), ("c", 1)]);
        assert_eq!(acknowledged.missing_in(&ledger(&[("a", 2)])), ["a-1", "c-1"]);
    }
}
