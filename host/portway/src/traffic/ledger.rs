//! A file of `KEY SEQUENCE` lines: what was acknowledged, or what arrived.
//!
//! Each line is handed to the system before the caller goes on, so that the end of this process
//! loses none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Mutex;

use super::message::Identity;

/// A ledger being written.
#[derive(Debug)]
pub struct Ledger {
    file: Mutex<File>,
}

impl Ledger {
    /// Adds to what is there.
    pub fn append(path: &Path) -> io::Result<Ledger> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Ledger { file: Mutex::new(file) })
    }

    pub fn write(&self, identity: &Identity) -> io::Result<()> {
        let line = format!("{} {}\n", identity.key, identity.sequence);
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// The entries of a ledger, in order.
pub fn read(path: &Path) -> io::Result<Vec<Identity>> {
    let mut entries = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let parsed = line.split_once(' ').and_then(|(key, sequence)| {
            Some(Identity { key: key.to_owned(), sequence: sequence.parse().ok()? })
        });
        // A line cut short by the end of its writer was not yet answered for.
        entries.extend(parsed);
    }
    Ok(entries)
}

/// What became of acknowledged messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Comparison {
    pub acknowledged: u64,
    pub received: u64,
    /// Acknowledged and never received: lost.
    pub lost: Vec<String>,
    pub duplicates: u64,
    /// First received after a later one of their key.
    pub out_of_order: u64,
    /// Received and never acknowledged: stored just before a crash, and sent again by nobody.
    pub unacknowledged: u64,
}

impl Comparison {
    pub fn is_good(&self) -> bool {
        self.lost.is_empty() && self.out_of_order == 0
    }
}

/// Compares what was acknowledged with what arrived, in its order.
pub fn compare(acknowledged: &[Identity], received: &[Identity]) -> Comparison {
    let sent: BTreeSet<&Identity> = acknowledged.iter().collect();
    let mut seen: BTreeSet<&Identity> = BTreeSet::new();
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut comparison = Comparison { acknowledged: sent.len() as u64, ..Comparison::default() };
    for identity in received {
        comparison.received += 1;
        if !seen.insert(identity) {
            comparison.duplicates += 1;
            continue;
        }
        let highest = highest.entry(&identity.key).or_default();
        if identity.sequence < *highest {
            comparison.out_of_order += 1;
        }
        *highest = identity.sequence.max(*highest);
        comparison.unacknowledged += u64::from(!sent.contains(identity));
    }
    let lost = sent.iter().filter(|identity| !seen.contains(**identity));
    comparison.lost = lost.map(|identity| format!("{}-{}", identity.key, identity.sequence)).collect();
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, u64)]) -> Vec<Identity> {
        pairs.iter().map(|(key, sequence)| Identity { key: (*key).into(), sequence: *sequence }).collect()
    }

    #[test]
    fn a_ledger_reads_back_and_a_torn_line_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let wanted = entries(&[("PWa", 1), ("PWb", 7)]);
        for entry in &wanted {
            Ledger::append(&path).unwrap().write(entry).unwrap();
        }
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"PWa").unwrap();
        assert_eq!(read(&path).unwrap(), wanted);
    }

    #[test]
    fn a_comparison_finds_what_is_lost_repeated_and_out_of_order() {
        let comparison = compare(
            &entries(&[("a", 1), ("a", 2), ("a", 3), ("b", 1)]),
            &entries(&[("a", 1), ("a", 3), ("a", 3), ("a", 2), ("a", 4)]),
        );
        assert_eq!(comparison.lost, ["b-1"]);
        let Comparison { duplicates, out_of_order, unacknowledged, .. } = comparison;
        assert_eq!((duplicates, out_of_order, unacknowledged), (1, 1, 1));
    }
}
