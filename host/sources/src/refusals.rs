//! What was refused, kept for the operator: the newest few of an interface.

use std::collections::VecDeque;
use std::fmt::Write;
use std::net::SocketAddr;

use bytes::Bytes;
use portway_model::{Failure, Timestamp};

/// Refusals that are kept.
const KEPT_MAX: usize = 64;
/// Bytes of each that are kept.
pub(crate) const BYTES_MAX: usize = 4 << 10;

/// Input that became no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub at: Timestamp,
    pub peer: SocketAddr,
    pub failure: Failure,
    /// The first bytes of what was in hand.
    pub bytes: Bytes,
}

/// The newest refusals; older ones make room.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    kept: VecDeque<Refusal>,
}

impl Refusals {
    pub(crate) fn add(&mut self, mut refusal: Refusal) {
        refusal.bytes = Bytes::copy_from_slice(refusal.bytes.get(..BYTES_MAX).unwrap_or(&refusal.bytes));
        if self.kept.len() >= KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(refusal);
    }

    /// Newest first.
    pub(crate) fn list(&self) -> Vec<Refusal> {
        self.kept.iter().rev().cloned().collect()
    }
}

impl Refusal {
    /// The bytes as text a terminal can be trusted with.
    pub fn shown(&self) -> String {
        let mut shown = String::with_capacity(self.bytes.len());
        for byte in &self.bytes {
            match byte {
                b'\\' => shown.push_str("\\\\"),
                b'\r' => shown.push_str("\\r"),
                b'\n' => shown.push_str("\\n"),
                b'\t' => shown.push_str("\\t"),
                b' '..=b'~' => shown.push(char::from(*byte)),
                // Writing to a string cannot fail.
                _ => drop(write!(shown, "\\x{byte:02x}")),
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> Refusal {
        Refusal {
            at: Timestamp(0),
            peer: ([127, 0, 0, 1], 1).into(),
            failure: Failure::new("code", "text"),
            bytes: Bytes::copy_from_slice(bytes),
        }
    }

    #[test]
    fn bytes_are_shown_escaped() {
        assert_eq!(refusal(b"\x0bMSH|^~\\&\r\n\t\x1b[2J\xff").shown(), r"\x0bMSH|^~\\&\r\n\t\x1b[2J\xff");
    }

    #[test]
    fn only_the_newest_are_kept_and_only_their_first_bytes() {
        let mut refusals = Refusals::default();
        for number in 0..=KEPT_MAX {
            refusals.add(refusal(&vec![number as u8; BYTES_MAX + number]));
        }
        let list = refusals.list();
        assert_eq!(
            (list.len(), list[0].bytes[0], list[KEPT_MAX - 1].bytes[0]),
            (KEPT_MAX, KEPT_MAX as u8, 1)
        );
        assert!(list.iter().all(|refusal| refusal.bytes.len() == BYTES_MAX));
    }
}
