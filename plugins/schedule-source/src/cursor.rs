//! The cursor: the last run, and what was skipped since the last message.

use portway_sdk::Trouble;

const VERSION: u8 = 1;

/// What must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// When the last run was scheduled, whether it made a message or was skipped; at first
    /// when the source was opened.
    pub last_ms: u64,
    /// Runs that were skipped since the last message.
    pub skipped: u64,
}

impl Cursor {
    /// None: the very first poll.
    pub fn decode(bytes: &[u8]) -> Result<Option<Cursor>, Trouble> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let parsed = bytes.split_first().filter(|(version, _)| **version == VERSION).and_then(|(_, rest)| {
            let (last, rest) = rest.split_first_chunk::<8>()?;
            let skipped = <[u8; 8]>::try_from(rest).ok()?;
            Some(Cursor { last_ms: u64::from_le_bytes(*last), skipped: u64::from_le_bytes(skipped) })
        });
        parsed.map(Some).ok_or_else(|| {
            Trouble::misconfigured(
                "unknown-cursor",
                "the source's progress was written by another version of this plugin and cannot be read",
            )
        })
    }

    pub fn encode(self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.last_ms.to_le_bytes());
        bytes.extend(self.skipped.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_no_other_is_read() {
        let cursor = Cursor { last_ms: u64::MAX, skipped: 7 };
        let bytes = cursor.encode();
        assert_eq!(Cursor::decode(&bytes), Ok(Some(cursor)));
        assert_eq!(Cursor::decode(b""), Ok(None));
        for wrong in [&[2, 0][..], &bytes[..16], &[bytes.as_slice(), b"x"].concat()] {
            assert!(matches!(Cursor::decode(wrong), Err(Trouble::Misconfigured(_))));
        }
    }
}
