//! The messages of a body, as spans of it.

use std::borrow::Cow;

use portway_records::json::Document;
use portway_records::{Broken, Record, Splitter};
use portway_sdk::{Body, blobs};

use crate::settings::{Require, Rules};

/// Bytes of an element that a pointer is followed in.
pub const POINTER_BYTES_MAX: u64 = 1 << 20;

/// Why a body gives no messages.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    Broken(Broken),
    TooMany,
    /// The host cannot give the bytes.
    Body(blobs::Error),
}

/// The elements of a body.
pub struct Elements<'a> {
    body: &'a Body,
    /// What was read last of a large body.
    chunk: Cow<'a, [u8]>,
    /// Where that begins.
    start: u64,
}

impl<'a> Elements<'a> {
    /// Of a whole body.
    pub fn of(body: &'a Body) -> Elements<'a> {
        let chunk = match body {
            Body::Inline(bytes) => Cow::Borrowed(bytes.as_slice()),
            Body::Blob(_) => Cow::Borrowed(&[][..]),
        };
        Elements { body, chunk, start: 0 }
    }

    /// Finds each, and hands it over with its bytes as far as pointers are followed.
    pub fn each(
        &mut self,
        rules: &Rules,
        wants_bytes: bool,
        mut take: impl FnMut(Record, &[u8]),
    ) -> Result<(), Wrong> {
        let Some(format) = rules.format else {
            // An empty body that is allowed need not be anything.
            if rules.require == Require::Json && !self.body.is_empty() {
                self.check(rules)?;
            }
            let whole = Record { start: 0, len: self.body.len() };
            let bytes = if wants_bytes { self.bytes(whole)? } else { Cow::Borrowed(&[][..]) };
            take(whole, &bytes);
            return Ok(());
        };
        let mut splitter = Splitter::new(format, rules.limits);
        let (mut used, mut count) = (0, 0_usize);
        let mut is_last = self.end() == self.body.len();
        loop {
            let rest = self.chunk.get(used..).unwrap_or_default();
            let step = splitter.cut(rest, is_last).map_err(Wrong::Broken)?;
            used += step.used;
            if let Some(record) = step.record {
                count += 1;
                if count > rules.elements_max {
                    return Err(Wrong::TooMany);
                }
                let bytes = if wants_bytes { self.bytes(record)? } else { Cow::Borrowed(&[][..]) };
                take(record, &bytes);
            } else if is_last {
                return Ok(());
            } else {
                self.read_on(used)?;
                used = 0;
                is_last = self.end() == self.body.len();
            }
        }
    }

    fn check(&mut self, rules: &Rules) -> Result<(), Wrong> {
        let broken =
            |(at, text): (u64, &str)| Wrong::Broken(Broken { code: "invalid-json", at, text: text.into() });
        let mut document = Document::new(rules.limits.depth_max);
        document.check(&self.chunk).map_err(broken)?;
        while self.end() < self.body.len() {
            self.read_on(self.chunk.len())?;
            document.check(&self.chunk).map_err(broken)?;
        }
        document.finish().map_err(broken)
    }

    fn end(&self) -> u64 {
        self.start + self.chunk.len() as u64
    }

    /// The next chunk, behind what is not used of the last one.
    fn read_on(&mut self, used: usize) -> Result<(), Wrong> {
        let Body::Blob(blob) = self.body else { return Ok(()) };
        let more = blob.read(self.end(), blobs::CHUNK_BYTES).map_err(Wrong::Body)?;
        if more.is_empty() {
            return Err(Wrong::Body(blobs::Error::OutOfRange));
        }
        let mut chunk = self.chunk.get(used..).unwrap_or_default().to_vec();
        self.start += used as u64;
        chunk.extend_from_slice(&more);
        self.chunk = Cow::Owned(chunk);
        Ok(())
    }

    /// The bytes of an element, or their start.
    fn bytes(&self, record: Record) -> Result<Cow<'_, [u8]>, Wrong> {
        let len = record.len.min(POINTER_BYTES_MAX);
        let held = record.start.checked_sub(self.start).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.chunk.get(from..from.checked_add(usize::try_from(len).ok()?)?)
        });
        match (held, self.body) {
            (Some(bytes), _) => Ok(Cow::Borrowed(bytes)),
            (None, Body::Blob(blob)) => {
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                blob.read(record.start, len).map(Cow::Owned).map_err(Wrong::Body)
            }
            (None, Body::Inline(_)) => Ok(Cow::Borrowed(&[])),
        }
    }
}
