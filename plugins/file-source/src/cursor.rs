//! The cursor: all that survives a restart, in at most 64 KiB.
//!
//! Files are remembered by marks: digests of path, identity, size and time, so that a file
//! that changes is another one. Every list has its limit, and the limits together stay
//! below what a cursor may have.

use portway_sdk::{Trouble, files::Entry};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The first byte. Another one is not read.
const VERSION: u8 = 1;
/// Files that are done with and may lie in the inbox still.
pub const PASSED_MAX: usize = 3_500;
/// Files that are not ready yet and whose rest is watched.
pub const WAITING_MAX: usize = 2_000;
/// Times at which they were first seen.
pub const WAITING_TIMES_MAX: usize = 250;
/// Files that were begun and go on when they rest again.
pub const BEGUN_MAX: usize = 8;
/// Bytes of names, of files begun and of files ended by one poll.
const BEGUN_BYTES_MAX: usize = 6 * 1024;
const ENDED_BYTES_MAX: usize = 12 * 1024;
/// What an entry needs beside its names.
const ENTRY_BYTES: usize = 96;

/// Names a file as it is now.
pub type FileMark = [u8; 8];

/// What must survive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub waiting: Vec<Waiting>,
    /// Files that are done with and stay in the inbox.
    pub passed: Vec<FileMark>,
    /// Files that are done with and leave the inbox.
    pub moved: Vec<FileMark>,
    pub begun: Vec<Begun>,
    pub ended: Vec<Ended>,
}

/// Files that were first seen as they are at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub since_ms: u64,
    /// The first bytes of their marks.
    pub files: Vec<[u8; 6]>,
}

/// A file of which records are stored, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    pub file: Known,
    /// The next record.
    pub at: u64,
    pub phase: u8,
    pub counts: [u64; 3],
    /// Records that are stored.
    pub records: u64,
    /// Of bytes before `at`: shows that the file is the same.
    pub proof: [u8; 16],
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Below the inbox.
    pub path: String,
    pub identity: String,
    pub size: u64,
    pub modified_ms: u64,
}

/// A file that is done with once the transaction with this cursor is committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub path: String,
    pub mark: FileMark,
    pub outcome: Outcome,
    /// Which file of the poll it was; receipts name it.
    pub ordinal: u32,
    /// When it ended, for a name that is taken.
    pub at_ms: u64,
}

/// What is to become of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Read,
    Failed,
}

impl Cursor {
    /// Reads one; an empty one is the first.
    pub fn decode(bytes: &[u8]) -> Result<Cursor, Trouble> {
        let Some((version, rest)) = bytes.split_first() else { return Ok(Cursor::default()) };
        let unknown = || {
            Trouble::misconfigured(
                "unknown-cursor",
                "the source's progress was written by another version of this plugin and cannot be read",
            )
        };
        if *version != VERSION {
            return Err(unknown());
        }
        postcard::from_bytes(rest).map_err(|_| unknown())
    }

    /// As it is stored.
    pub fn encode(&self) -> Result<Vec<u8>, Trouble> {
        postcard::to_extend(self, vec![VERSION])
            .map_err(|error| Trouble::misconfigured("unknown-cursor", error.to_string()))
    }

    /// Whether no more files can be remembered.
    pub fn is_full(&self) -> bool {
        self.passed.len() + self.moved.len() >= PASSED_MAX
    }

    /// Whether one more file may end in this poll.
    pub fn has_room_for_ended(&self, path: &str) -> bool {
        let used: usize = self.ended.iter().map(|ended| ended.path.len() + ENTRY_BYTES).sum();
        self.ended.is_empty() || used + path.len() + ENTRY_BYTES <= ENDED_BYTES_MAX
    }

    /// Whether one more file may be begun and not ended.
    pub fn has_room_for_begun(&self, file: &Known) -> bool {
        let size = |file: &Known| file.path.len() + file.identity.len() + ENTRY_BYTES;
        let used: usize = self.begun.iter().map(|begun| size(&begun.file)).sum();
        self.begun.is_empty() || (self.begun.len() < BEGUN_MAX && used + size(file) <= BEGUN_BYTES_MAX)
    }
}

impl Known {
    /// A file at a path, as a look at its folder shows it.
    pub fn of(path: String, entry: Entry) -> Known {
        Known { path, identity: entry.identity, size: entry.size, modified_ms: entry.modified_ms }
    }

    /// Whether a name still means this file, unchanged.
    pub fn is(&self, entry: &Entry) -> bool {
        self.identity == entry.identity && self.size == entry.size && self.modified_ms == entry.modified_ms
    }

    /// Its mark.
    pub fn mark(&self) -> FileMark {
        let mut digest = Sha256::new();
        for text in [&self.path, &self.identity] {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        digest.update(self.size.to_le_bytes());
        digest.update(self.modified_ms.to_le_bytes());
        first(digest)
    }
}

/// The first bytes of a digest.
pub(crate) fn first<const LEN: usize>(digest: Sha256) -> [u8; LEN] {
    let digest = digest.finalize();
    digest.first_chunk::<LEN>().copied().unwrap_or([0; LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(path_bytes: usize) -> Known {
        Known {
            path: "p".repeat(path_bytes),
            identity: "fd00-7ffffffff-17bc1e3f5a0c6d4e".into(),
            size: u64::MAX,
            modified_ms: u64::MAX,
        }
    }

    #[test]
    fn a_full_cursor_is_not_too_long() {
        for path_bytes in [1, 255, 4096] {
            let mut cursor = Cursor { passed: vec![[255; 8]; PASSED_MAX], ..Cursor::default() };
            let files = vec![[255; 6]; WAITING_MAX / WAITING_TIMES_MAX];
            cursor.waiting = vec![Waiting { since_ms: u64::MAX / 2, files }; WAITING_TIMES_MAX];
            while cursor.has_room_for_begun(&known(path_bytes)) {
                let (counts, proof) = ([u64::MAX; 3], [255; 16]);
                let file = known(path_bytes);
                cursor.begun.push(Begun { file, at: u64::MAX, phase: 255, counts, records: u64::MAX, proof });
            }
            while cursor.has_room_for_ended(&"p".repeat(path_bytes)) {
                let (mark, outcome) = ([255; 8], Outcome::Failed);
                let path = "p".repeat(path_bytes);
                cursor.ended.push(Ended { path, mark, outcome, ordinal: u32::MAX, at_ms: u64::MAX });
            }
            let bytes = cursor.encode().unwrap();
            assert!(bytes.len() <= 64 * 1024, "{} bytes with paths of {path_bytes}", bytes.len());
            assert_eq!(Cursor::decode(&bytes).unwrap(), cursor);
        }
    }

    #[test]
    fn a_cursor_of_another_version_stops_the_source() {
        assert_eq!(Cursor::decode(b""), Ok(Cursor::default()));
        assert!(matches!(Cursor::decode(&[VERSION + 1, 0, 0, 0, 0]), Err(Trouble::Misconfigured(_))));
        assert!(matches!(Cursor::decode(&[VERSION, 200]), Err(Trouble::Misconfigured(_))));
    }

    #[test]
    fn whatever_changes_makes_another_mark() {
        let file = known(3);
        let others = [
            Known { path: "q".into(), ..file.clone() },
            Known { identity: "1".into(), ..file.clone() },
            Known { size: 1, ..file.clone() },
            Known { modified_ms: 1, ..file.clone() },
        ];
        assert!(others.iter().all(|other| other.mark() != file.mark()));
        assert_eq!(file.mark(), known(3).mark());
    }
}
