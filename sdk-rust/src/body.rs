//! Bodies: the bytes of a message or an answer, in the plugin or in the host.

use std::borrow::Cow;
use std::io;

use crate::blobs::{Blob, BlobWriter};
use crate::{Problem, blobs};

/// The longest body that travels as plain bytes; a longer one is a blob.
pub const INLINE_BYTES_MAX: usize = 256 * 1024;

/// The bytes of a message or an answer.
#[derive(Debug)]
pub enum Body {
    /// In the plugin's memory.
    Inline(Vec<u8>),
    /// In the host, read in chunks.
    Blob(Blob),
}

impl Body {
    /// In bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Inline(bytes) => bytes.len() as u64,
            Body::Blob(blob) => blob.size(),
        }
    }

    /// True where there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes; those of a blob are copied into the plugin's memory.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, blobs::Error> {
        match self {
            Body::Inline(bytes) => Ok(Cow::Borrowed(bytes)),
            Body::Blob(blob) => blob.read_all().map(Cow::Owned),
        }
    }

    /// All bytes, as a vector.
    pub fn into_bytes(self) -> Result<Vec<u8>, blobs::Error> {
        match self {
            Body::Inline(bytes) => Ok(bytes),
            Body::Blob(blob) => blob.read_all(),
        }
    }

    /// All bytes as UTF-8; other bytes quarantine the message.
    pub fn text(&self) -> Result<Cow<'_, str>, Problem> {
        let not_text =
            |at: usize| Problem::quarantine("not-utf-8", format!("the body is not UTF-8 at byte {at}"));
        match self.bytes()? {
            Cow::Borrowed(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|error| not_text(error.valid_up_to()))?;
                Ok(Cow::Borrowed(text))
            }
            Cow::Owned(bytes) => {
                let text =
                    String::from_utf8(bytes).map_err(|error| not_text(error.utf8_error().valid_up_to()))?;
                Ok(Cow::Owned(text))
            }
        }
    }

    /// Reads from the start, a chunk at a time.
    pub fn reader(&self) -> BodyReader<'_> {
        self.reader_at(0)
    }

    /// Reads from an offset, a chunk at a time; nothing where it is behind the end.
    pub fn reader_at(&self, offset: u64) -> BodyReader<'_> {
        BodyReader { body: self, offset: offset.min(self.len()), chunk: Vec::new(), used: 0 }
    }

    /// The same body as it may travel: a long one is handed to the host as a blob.
    pub fn into_portable(self) -> Result<Body, blobs::Error> {
        match self {
            Body::Inline(bytes) if bytes.len() > INLINE_BYTES_MAX => Blob::from_bytes(&bytes).map(Body::Blob),
            body => Ok(body),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Body::Inline(bytes)
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        Body::Inline(bytes.to_vec())
    }
}

impl<const LEN: usize> From<&[u8; LEN]> for Body {
    fn from(bytes: &[u8; LEN]) -> Self {
        Body::Inline(bytes.to_vec())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Body::Inline(text.into_bytes())
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Body::Inline(text.as_bytes().to_vec())
    }
}

impl From<Blob> for Body {
    fn from(blob: Blob) -> Self {
        Body::Blob(blob)
    }
}

/// Reads a body without holding more than one chunk of a blob.
#[derive(Debug)]
pub struct BodyReader<'a> {
    body: &'a Body,
    /// Of the blob's next chunk, or of the next inline byte.
    offset: u64,
    chunk: Vec<u8>,
    used: usize,
}

impl io::Read for BodyReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = match self.body {
            Body::Inline(bytes) => {
                let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
                bytes.get(start..).unwrap_or_default()
            }
            Body::Blob(blob) => {
                if self.used == self.chunk.len() {
                    self.chunk = blob.read(self.offset, blobs::CHUNK_BYTES).map_err(io::Error::other)?;
                    self.offset += self.chunk.len() as u64;
                    self.used = 0;
                }
                self.chunk.get(self.used..).unwrap_or_default()
            }
        };
        let count = available.len().min(into.len());
        for (to, from) in into.iter_mut().zip(available) {
            *to = *from;
        }
        match self.body {
            Body::Inline(_) => self.offset += count as u64,
            Body::Blob(_) => self.used += count,
        }
        Ok(count)
    }
}

/// Makes a body of any length: short ones stay inline, long ones go to the host as they
/// are written.
#[derive(Debug, Default)]
pub struct BodyWriter {
    waiting: Vec<u8>,
    blob: Option<BlobWriter>,
}

impl BodyWriter {
    /// Nothing written yet.
    pub fn new() -> Self {
        BodyWriter::default()
    }

    /// The body.
    pub fn finish(mut self) -> Result<Body, blobs::Error> {
        match self.blob.take() {
            None => Ok(Body::Inline(self.waiting)),
            Some(mut blob) => {
                blob.write(&self.waiting)?;
                blob.finish().map(Body::Blob)
            }
        }
    }
}

impl io::Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() > INLINE_BYTES_MAX {
            let blob = self.blob.get_or_insert_with(BlobWriter::new);
            blob.write(&self.waiting).map_err(io::Error::other)?;
            self.waiting.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn written(len: usize) -> Body {
        let mut writer = BodyWriter::new();
        for chunk in vec![7_u8; len].chunks(10_000) {
            writer.write_all(chunk).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn a_long_body_becomes_a_blob_by_itself() {
        assert!(matches!(written(INLINE_BYTES_MAX), Body::Inline(_)));
        let long = written(3 * INLINE_BYTES_MAX + 1);
        assert!(matches!(long, Body::Blob(_)));
        assert_eq!(long.len(), 3 * INLINE_BYTES_MAX as u64 + 1);
        let portable = Body::from(vec![1; INLINE_BYTES_MAX + 1]).into_portable().unwrap();
        assert!(matches!(portable, Body::Blob(_)));
    }

    #[test]
    fn a_reader_gives_every_byte_of_both_kinds() {
        for len in [0, 1, INLINE_BYTES_MAX, 2 * INLINE_BYTES_MAX + 5] {
            let mut all = Vec::new();
            written(len).reader().read_to_end(&mut all).unwrap();
            assert_eq!(all, vec![7; len]);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_with_their_place() {
        let problem = Body::from(b"ab\xFF").text().unwrap_err();
        assert_eq!(problem, Problem::quarantine("not-utf-8", "the body is not UTF-8 at byte 2"));
    }
}
