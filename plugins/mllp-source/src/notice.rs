//! Notices: what an operator is told about input that was tolerated or left out.
//!
//! Bytes are shown in hexadecimal so that a wrong framing can be seen, and masked so that nothing
//! about a patient can: the first four say which protocol it is, behind them letters, digits and
//! everything beyond ASCII are two asterisks.

use std::fmt::Write;

use portway_sdk::log;

/// Bytes shown.
pub(crate) const SHOWN_BYTES: usize = 64;
const CLEAR_BYTES: usize = 4;

/// What was said on this connection already; each of these once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    filler: bool,
    junk: bool,
    mark_before: bool,
    mark_inside: bool,
    key: bool,
}

/// A UTF-8 byte order mark.
pub(crate) const MARK: &[u8] = b"\xEF\xBB\xBF";

impl Said {
    /// Zeros, blanks or line ends between frames.
    pub(crate) fn filler(&mut self, offset: u64) {
        if !std::mem::replace(&mut self.filler, true) {
            log::notice(
                "bytes-between-frames",
                format!("zeros, blanks or line ends between frames, first at byte {offset}"),
            );
        }
    }

    /// Other bytes outside a frame.
    pub(crate) fn junk(&mut self, offset: u64, start: &[u8]) {
        if start == MARK {
            if !std::mem::replace(&mut self.mark_before, true) {
                log::notice(
                    "mark-before-frame",
                    format!("a byte order mark before a start byte, at byte {offset}"),
                );
            }
            return;
        }
        if !std::mem::replace(&mut self.junk, true) {
            log::notice(
                "bytes-before-start",
                format!("bytes without a start byte (0x0B) at byte {offset}: {}", masked(start)),
            );
        }
    }

    /// A byte order mark inside a frame, before its header.
    pub(crate) fn mark_inside(&mut self, offset: u64) {
        if !std::mem::replace(&mut self.mark_inside, true) {
            log::notice(
                "mark-inside-frame",
                format!("a byte order mark before the header of the frame at byte {offset}"),
            );
        }
    }

    /// A key path that points behind what is looked at.
    pub(crate) fn key_out_of_reach(&mut self, path: &portway_hl7::Path, bytes_max: usize) {
        if !std::mem::replace(&mut self.key, true) {
            log::notice(
                "key-out-of-reach",
                format!("`{path}` was not found in the first {bytes_max} bytes of a message; it has no key"),
            );
        }
    }
}

/// A frame that ends in FS without CR; counted each time.
pub(crate) fn end_without_cr() {
    log::notice("end-without-cr", "a frame ends in 0x1C without 0x0D");
}

/// A frame that ends in FS LF; counted each time.
pub(crate) fn end_in_lf() {
    log::notice("end-in-lf", "a frame ends in 0x1C 0x0A instead of 0x1C 0x0D");
}

/// A start byte behind a start byte; counted each time.
pub(crate) fn start_repeated() {
    log::notice("start-byte-repeated", "a start byte (0x0B) follows a start byte");
}

/// The first bytes in hexadecimal, masked.
pub(crate) fn masked(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, &byte) in bytes.iter().take(SHOWN_BYTES).enumerate() {
        let separator = if index == 0 { "" } else { " " };
        let hidden = index >= CLEAR_BYTES && (byte.is_ascii_alphanumeric() || !byte.is_ascii());
        // Writing to a string cannot fail.
        let _ = if hidden { write!(text, "{separator}**") } else { write!(text, "{separator}{byte:02X}") };
    }
    if bytes.len() > SHOWN_BYTES {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_patient_is_called_is_not_shown() {
        assert_eq!(masked(b"MSH|^~A\xFF5\x1C\0"), "4D 53 48 7C 5E 7E ** ** ** 1C 00");
        assert!(masked(&[0; 65]).ends_with("00 ..."));
    }
}
