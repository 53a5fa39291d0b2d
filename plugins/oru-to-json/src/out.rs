//! Where the document is written: one buffer, kept from message to message.
//!
//! Written for the sandbox: bytes go in eight or more at a time as plain loads and stores, since copying
//! a short text there by a call costs more than the text; what is written too much is written over. A member ends in a comma, and whoever closes
//! an object or array takes the last one back, so nobody has to know whether he is first.
//! What has grown large is handed on in between.

use std::io::Write;

use portway_sdk::{Body, BodyWriter, Problem, ResultExt};

/// Bytes in the buffer above which they are handed on, where the document may be cut.
const FLUSH_BYTES: usize = 256 * 1024;
/// A buffer larger than this is not kept.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A key with its quotes and colon, ready to be copied in three words. The quote of a string stands
/// behind them and counts where one follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    bytes: [u8; 24],
    length: u8,
}

impl Key {
    /// Names of at most 20 letters.
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
        bytes[at + 3] = b'"';
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

    /// Makes room for so many bytes and more.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, count: usize) {
        let grown = (self.at + count).max(self.bytes.len() * 2).max(8192);
        self.bytes.resize(grown, 0);
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

    /// Where the next bytes go.
    #[inline]
    fn slot<const SIZE: usize>(&mut self) -> Option<&mut [u8; SIZE]> {
        if self.bytes.len() < self.at.saturating_add(SIZE) {
            self.grow(SIZE);
        }
        self.bytes.get_mut(self.at..)?.first_chunk_mut()
    }

    /// So many bytes of an array, all of which is copied.
    #[inline]
    pub(crate) fn push_array<const SIZE: usize>(&mut self, bytes: [u8; SIZE], count: usize) {
        if let Some(slot) = self.slot() {
            *slot = bytes;
            self.at += count;
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        self.push_array([byte], 1);
    }

    #[inline]
    pub(crate) fn push_key(&mut self, key: &Key) {
        self.push_array(key.bytes, usize::from(key.length));
    }

    /// A key, and the quote that begins its string.
    #[inline]
    pub(crate) fn push_key_and_quote(&mut self, key: &Key) {
        self.push_array(key.bytes, usize::from(key.length) + 1);
    }

    /// A key and its string, which needs no escape: the first `count` of sixteen bytes.
    #[inline]
    pub(crate) fn push_short_member(&mut self, key: &Key, text: &[u8; 16], count: usize) {
        let text_at = usize::from(key.length & 31) + 1;
        let end = text_at + (count & 31);
        let Some(slot) = self.slot::<72>() else { return };
        if let Some(place) = slot.first_chunk_mut() {
            *place = key.bytes;
        }
        if let Some(place) = slot.get_mut(text_at..text_at + 16) {
            place.copy_from_slice(text);
        }
        if let Some(place) = slot.get_mut(end..end + 2) {
            place.copy_from_slice(b"\",");
        }
        self.at += end + 2;
    }

    /// Any bytes as they are.
    pub(crate) fn push_all(&mut self, bytes: &[u8]) {
        if self.bytes.len() < self.at + bytes.len() {
            self.grow(bytes.len());
        }
        if let Some(slot) = self.bytes.get_mut(self.at..self.at + bytes.len()) {
            slot.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    /// Ends an object or array with its bracket, and the member that it is with a comma.
    #[inline]
    pub(crate) fn close(&mut self, bracket: u8) {
        let last = self.at.checked_sub(1).and_then(|last| self.bytes.get(last));
        if last == Some(&b',') {
            self.at -= 1;
        }
        self.push_array([bracket, b','], 2);
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
