//! Where a body is written: small ones in memory, large ones to the host as they grow, and none beyond
//! a limit.
//!
//! Writing never fails; what went wrong is told at the end, so that writers need no `?` behind every
//! comma. Whoever writes in a long loop asks [`Output::is_over`].

use std::io::{self, Write};

use portway_sdk::{Body, BodyWriter, Problem, ResultExt};

/// Bytes that one message may become. A few bytes of a message can stand for many of a document, such
/// as the names of columns in each record.
pub const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// Where a body becomes large.
const CHUNK_BYTES: usize = 256 * 1024;

/// A body that is being written.
#[derive(Debug)]
pub struct Output {
    waiting: Vec<u8>,
    /// Bytes that can be written before there is something else to do.
    room: usize,
    /// Begun where the body is large.
    writer: Option<BodyWriter>,
    handed_on: usize,
    failed: Option<Problem>,
    bytes_max: usize,
    /// Bytes in memory above which they are handed on.
    chunk_bytes: usize,
}

impl Default for Output {
    fn default() -> Self {
        Output::new(OUTPUT_BYTES_MAX)
    }
}

impl Output {
    /// Nothing written yet, and so many bytes at most.
    pub fn new(bytes_max: usize) -> Output {
        Output::with_chunks(bytes_max, CHUNK_BYTES)
    }

    /// For a text that stays in memory.
    pub(crate) fn in_memory() -> Output {
        Output::with_chunks(usize::MAX, usize::MAX)
    }

    fn with_chunks(bytes_max: usize, chunk_bytes: usize) -> Output {
        let room = bytes_max.min(chunk_bytes);
        let waiting = Vec::new();
        Output { waiting, room, writer: None, handed_on: 0, failed: None, bytes_max, chunk_bytes }
    }

    /// What was written; for an output in memory.
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.waiting).unwrap_or_default()
    }

    /// Writes bytes as they are.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        match self.room.checked_sub(bytes.len()) {
            Some(room) => {
                self.room = room;
                self.waiting.extend_from_slice(bytes);
            }
            None => self.push_beyond_room(bytes),
        }
    }

    /// Writes one byte.
    #[inline]
    pub fn push_byte(&mut self, byte: u8) {
        match self.room.checked_sub(1) {
            Some(room) => {
                self.room = room;
                self.waiting.push(byte);
            }
            None => self.push_beyond_room(&[byte]),
        }
    }

    /// A string of bytes that stand in it as they are, which [`needs_escape`](crate::needs_escape) says.
    #[inline]
    pub fn push_clean_text(&mut self, bytes: &[u8]) {
        match self.room.checked_sub(bytes.len() + 2) {
            Some(room) => {
                self.room = room;
                self.waiting.reserve(bytes.len() + 2);
                self.waiting.push(b'"');
                self.waiting.extend_from_slice(bytes);
                self.waiting.push(b'"');
            }
            None => [b"\"", bytes, b"\""].into_iter().for_each(|part| self.push(part)),
        }
    }

    /// Nothing more is taken, and [`Output::finish`] will say why.
    pub fn is_over(&self) -> bool {
        self.failed.is_some()
    }

    /// The body.
    pub fn finish(mut self) -> Result<Body, Problem> {
        if let Some(problem) = self.failed.take() {
            return Err(problem);
        }
        let Some(mut writer) = self.writer.take() else { return Ok(Body::Inline(self.waiting)) };
        writer.write_all(&self.waiting).retry("blobs")?;
        writer.finish().retry("blobs")
    }

    #[cold]
    #[inline(never)]
    fn push_beyond_room(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let written = self.handed_on + self.waiting.len();
        if self.bytes_max - written < bytes.len() {
            let text = format!("the output would be larger than {} bytes", self.bytes_max);
            return self.fail(Problem::quarantine("too-large", text));
        }
        for part in bytes.chunks(self.chunk_bytes) {
            if self.waiting.len() + part.len() > self.chunk_bytes {
                self.hand_on();
            }
            self.waiting.extend_from_slice(part);
        }
        let left = self.bytes_max - written - bytes.len();
        self.room = if self.is_over() { 0 } else { left.min(self.chunk_bytes - self.waiting.len()) };
    }

    fn hand_on(&mut self) {
        let written = self.writer.get_or_insert_with(BodyWriter::new).write_all(&self.waiting);
        self.handed_on += self.waiting.len();
        self.waiting.clear();
        if let Err(problem) = written.retry("blobs") {
            self.fail(problem);
        }
    }

    fn fail(&mut self, problem: Problem) {
        self.failed.get_or_insert(problem);
        self.room = 0;
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes_max: usize, count: usize) -> Result<Body, Problem> {
        let mut output = Output::new(bytes_max);
        for _ in 0..count {
            output.push(b"0123456789");
        }
        output.finish()
    }

    #[test]
    fn every_byte_arrives_however_many_there_are() {
        for count in [0, 1, 30_000, 100_000] {
            let bytes = written(OUTPUT_BYTES_MAX, count).unwrap().into_bytes().unwrap();
            assert_eq!(bytes, b"0123456789".repeat(count));
        }
    }

    #[test]
    fn a_byte_beyond_the_limit_is_refused_with_a_sentence() {
        assert!(written(100, 10).is_ok());
        let problem = written(100, 11).unwrap_err();
        assert_eq!(problem, Problem::quarantine("too-large", "the output would be larger than 100 bytes"));
        let mut output = Output::new(5);
        output.push(b"123456");
        assert!(output.is_over());
        output.push(b"1");
        assert!(output.finish().is_err(), "what is left out is not forgotten");
    }
}
