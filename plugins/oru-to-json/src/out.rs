//! Where the document is written: one buffer, kept from message to message.
//!
//! Written for the sandbox: bytes go in eight at a time as plain loads and stores, since copying a
//! short text there by a call costs more than the text. A member ends in a comma, and whoever closes
//! an object or array takes the last one back, so nobody has to know whether he is first.
//! What has grown large is handed on in between.

use std::io::Write;

use portway_sdk::{Body, BodyWriter, Problem, ResultExt};

/// Bytes in the buffer above which they are handed on, where the document may be cut.
const FLUSH_BYTES: usize = 256 * 1024;
/// A buffer larger than this is not kept.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A key with its quotes and colon, ready to be copied in three words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    bytes: [u8; 24],
    length: u8,
}

impl Key {
    /// Names of at most 21 letters.
    pub(crate) const fn new(name: &str) -> Key {
        let name = name.as_bytes();
        let mut bytes = [0; 24];
        bytes[0] = b'"';
        let mut at = 0;
        while at < name.len() {
            bytes[at + 1] = name[at];
            at += 1;
        }
        bytes[at + 1] = b'"';
        bytes[at + 2] = b':';
        Key { bytes, length: at as u8 + 3 }
    }
}

/// The buffer and what was handed on.
#[derive(Debug, Default)]
pub(crate) struct Out {
    bytes: Vec<u8>,
    at: usize,
    handed_on: Option<BodyWriter>,
    handed_on_bytes: usize,
    /// Why handing on did not work; told at the end.
    failed: Option<Problem>,
}

impl Out {
    /// Forgets the message before.
    pub(crate) fn start(&mut self) {
        self.at = 0;
        self.handed_on = None;
        self.handed_on_bytes = 0;
        self.failed = None;
        if self.bytes.len() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }

    /// The document.
    pub(crate) fn finish(&mut self) -> Result<Body, Problem> {
        if let Some(problem) = self.failed.take() {
            return Err(problem);
        }
        let written = self.bytes.get(..self.at).unwrap_or(&[]);
        let Some(mut body) = self.handed_on.take() else { return Ok(Body::Inline(written.to_vec())) };
        body.write_all(written).retry("blobs")?;
        body.finish().retry("blobs")
    }

    /// Hands on what is there, if it is much, except for the last byte, which may be a comma.
    #[inline]
    pub(crate) fn hand_on(&mut self) {
        if self.at >= FLUSH_BYTES {
            self.hand_on_now();
        }
    }

    #[cold]
    fn hand_on_now(&mut self) {
        let Some((last, before)) = self.bytes.get(..self.at).and_then(<[u8]>::split_last) else { return };
        let last = *last;
        let written = self.handed_on.get_or_insert_with(BodyWriter::new).write_all(before).retry("blobs");
        if let Err(problem) = written {
            self.failed.get_or_insert(problem);
        }
        self.handed_on_bytes += before.len();
        self.at = 0;
        self.push(last);
    }

    /// Makes sure that so many bytes fit, and a few words more.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) {
        let wanted = self.at + count + 64;
        if wanted > self.bytes.len() {
            let grown = wanted.max(self.bytes.len() * 2).max(4096);
            self.bytes.resize(grown, 0);
        }
    }

    /// How much was written.
    #[inline]
    pub(crate) fn written(&self) -> usize {
        self.handed_on_bytes + self.at
    }

    /// Takes back what was written since; at most what is not handed on.
    pub(crate) fn rewind(&mut self, written: usize) {
        self.at = written.saturating_sub(self.handed_on_bytes).min(self.at);
    }

    /// One byte; there is room for it.
    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.at) {
            *slot = byte;
            self.at += 1;
        }
    }

    /// The first `count` of eight bytes; there is room for all.
    #[inline]
    pub(crate) fn push_word(&mut self, word: u64, count: usize) {
        if let Some(slot) = self.bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut::<8>) {
            *slot = word.to_le_bytes();
            self.at += count;
        }
    }

    #[inline]
    pub(crate) fn push_key(&mut self, key: &Key) {
        if let Some(slot) = self.bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut::<24>) {
            *slot = key.bytes;
            self.at += usize::from(key.length);
        }
    }

    /// Any bytes as they are.
    pub(crate) fn push_all(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        if let Some(slot) = self.bytes.get_mut(self.at..self.at + bytes.len()) {
            slot.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    /// Ends an object or array with its bracket, and the member that it is with a comma.
    #[inline]
    pub(crate) fn close(&mut self, bracket: u8) {
        self.reserve(2);
        let last = self.at.checked_sub(1).and_then(|last| self.bytes.get(last));
        if last == Some(&b',') {
            self.at -= 1;
        }
        self.push(bracket);
        self.push(b',');
    }

    /// Takes back the last comma, at the end of the document.
    pub(crate) fn drop_comma(&mut self) {
        self.at = self.at.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_members_only() {
        let mut out = Out::default();
        out.start();
        out.reserve(1);
        out.push(b'{');
        out.push_key(&Key::new("a"));
        out.push(b'[');
        out.close(b']');
        out.push_key(&Key::new("b"));
        out.push_all(b"1,");
        out.close(b'}');
        out.drop_comma();
        let Ok(Body::Inline(bytes)) = out.finish() else { panic!("a short document is inline") };
        assert_eq!(bytes, br#"{"a":[],"b":1}"#);
    }

    #[test]
    fn a_large_document_is_handed_on_whole() {
        let mut out = Out::default();
        out.start();
        let mut expected = Vec::new();
        for _ in 0..100 {
            out.push_all(&[b'x'; 9_999]);
            out.push_all(b",");
            expected.extend_from_slice(&[b'x'; 9_999]);
            expected.push(b',');
            out.hand_on();
            assert!(out.bytes.len() < 2 * FLUSH_BYTES);
        }
        out.close(b']');
        out.drop_comma();
        expected.pop();
        expected.push(b']');
        assert_eq!(out.finish().unwrap().into_bytes().unwrap(), expected);
    }
}
