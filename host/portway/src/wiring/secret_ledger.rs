//! The record of which plugin used which secret: a file in the data folder, one line of JSON each.
//!
//! A line is on disk before the plugin has its answer; a use that cannot be written down does not
//! happen. Written are the first use since the start and every doubling of the count after it, so
//! that the record is never off by more than half and costs next to nothing. What is exact since
//! the start is in `status`. No value ever comes near this file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use portway_admin::views::Time;
use portway_engine::ports::Clock;
use serde::Serialize;

use super::clock::SystemClock;

/// A record that is larger makes room for a new one; the one before it is kept beside it.
const BYTES_MAX: u64 = 16 << 20;

/// The record's file; made with the first line.
pub struct SecretLedger {
    path: PathBuf,
    file: Mutex<Option<File>>,
    clock: SystemClock,
}

/// Who used what.
#[derive(Clone, Debug, Serialize)]
pub struct UseLine {
    pub at: Time,
    pub interface: String,
    /// Empty: the source.
    pub destination: String,
    pub plugin: String,
    /// SHA-256 of the component.
    pub digest: String,
    pub secret: String,
    /// `reveal` or `sign`.
    pub action: &'static str,
    /// So often since the start, this time included.
    pub uses: u64,
}

impl SecretLedger {
    /// The file's name in the data folder.
    pub const FILE: &str = "secret-uses.jsonl";

    pub fn in_folder(data_dir: &Path) -> Arc<SecretLedger> {
        let path = data_dir.join(Self::FILE);
        Arc::new(SecretLedger { path, file: Mutex::default(), clock: SystemClock::new() })
    }

    /// Writes a line and waits until it is on disk.
    pub fn record(&self, line: &UseLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match file.take() {
            Some(open) => open,
            None => self.open()?,
        };
        let mut open = if open.metadata()?.len() > BYTES_MAX { self.make_room()? } else { open };
        open.write_all(&text)?;
        open.sync_data()?;
        // After a failure the file is opened anew: the next use finds out whether it works again.
        *file = Some(open);
        Ok(())
    }

    pub fn now(&self) -> Time {
        Time(self.clock.now())
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    fn make_room(&self) -> io::Result<File> {
        std::fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
        self.open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(uses: u64) -> UseLine {
        UseLine {
            at: Time::default(),
            interface: "orders".into(),
            destination: "shop".into(),
            plugin: "signer".into(),
            digest: "ab".into(),
            secret: "KEY".into(),
            action: "sign",
            uses,
        }
    }

    #[test]
    fn lines_are_added_to_what_an_earlier_engine_wrote() {
        let dir = tempfile::tempdir().unwrap();
        SecretLedger::in_folder(dir.path()).record(&line(1)).unwrap();
        let ledger = SecretLedger::in_folder(dir.path());
        ledger.record(&line(1)).unwrap();
        ledger.record(&line(2)).unwrap();
        let text = std::fs::read_to_string(dir.path().join(SecretLedger::FILE)).unwrap();
        let uses: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(uses.iter().map(|line| line["uses"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 1, 2]);
        assert_eq!(uses[0]["secret"], "KEY");
        assert!(uses[0]["at"].is_string());
    }

    #[test]
    fn a_large_record_makes_room_and_stays_beside_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SecretLedger::FILE);
        let large = File::create(&path).unwrap();
        large.set_len(BYTES_MAX + 1).unwrap();
        SecretLedger::in_folder(dir.path()).record(&line(1)).unwrap();
        assert!(path.metadata().unwrap().len() < 1_000);
        assert!(dir.path().join("secret-uses.1.jsonl").metadata().unwrap().len() > BYTES_MAX);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let ledger = SecretLedger::in_folder(&data);
        ledger.record(&line(1)).unwrap_err();
        std::fs::create_dir(&data).unwrap();
        ledger.record(&line(1)).unwrap();
    }
}
