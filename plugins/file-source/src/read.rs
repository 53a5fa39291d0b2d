//! Takes records out of one file, through one buffer of fixed size.
//!
//! Records that do not fit the buffer are cut out of the file by the host. That the file is
//! at its end is believed only when it is unchanged: a last line may still be growing.

use std::borrow::Cow;

use portway_records::{Broken, Format, Mark, Record, Splitter};
use portway_sdk::blobs::BlobWriter;
use portway_sdk::{Content, INLINE_BYTES_MAX, Trouble, blobs, files};
use sha2::{Digest, Sha256};

use crate::cursor::{Begun, first};
use crate::settings::{Header, Rules};

/// What is held of a file.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// The longest header of CSV.
const HEADER_BYTES_MAX: u64 = 64 * 1024;
/// Bytes at the start of a file and before its next record that a proof is made of.
const PROOF_BYTES: u64 = 4 * 1024;

/// Why reading ends before the file does.
#[derive(Debug)]
pub enum Halt {
    /// The file cannot be read; it fails.
    Failed { code: &'static str, text: String },
    /// It is not what it was when it was opened.
    Changed,
    /// The folder is away.
    Trouble(Trouble),
}

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Record(Record),
    End,
}

/// The place in a file. It outlives a call, the open file does not.
#[derive(Debug)]
pub struct Reading {
    splitter: Splitter,
    size: u64,
    /// Goes in front of each record.
    header: Vec<u8>,
    buffer: Vec<u8>,
    /// Where the buffer's first byte stands in the file.
    start: u64,
    /// Bytes of the buffer that the splitter is done with.
    used: usize,
    is_last: bool,
    /// Found and not taken, with the place behind it.
    found: Option<(Record, Mark)>,
    /// Behind the last record that was taken.
    mark: Mark,
}

impl Reading {
    /// At the start of a file, or behind the records that are stored.
    pub fn open(rules: &Rules, format: Format, file: &files::File, begun: &Begun) -> Result<Reading, Halt> {
        let (header, behind) = match rules.header {
            None => (Vec::new(), 0),
            Some(_) => header_of(rules, format, file, begun.file.size)?,
        };
        let mut mark = Mark { at: begun.at, phase: begun.phase, counts: begun.counts };
        if mark.at == 0 {
            mark.at = behind;
        }
        Ok(Reading {
            splitter: Splitter::resume(format, rules.limits, mark),
            size: begun.file.size,
            header: if rules.header == Some(Header::WithEach) { header } else { Vec::new() },
            buffer: Vec::new(),
            start: mark.at,
            used: 0,
            is_last: false,
            found: None,
            mark,
        })
    }

    /// The next record, which stays the next until it is taken. `is_unchanged` is asked at
    /// the end of the file.
    pub fn next(
        &mut self,
        file: &files::File,
        is_unchanged: impl Fn() -> Result<bool, Halt>,
    ) -> Result<Next, Halt> {
        if let Some((record, _)) = self.found {
            return Ok(Next::Record(record));
        }
        loop {
            let rest = self.buffer.get(self.used..).unwrap_or_default();
            let step = self.splitter.cut(rest, self.is_last).map_err(Halt::from)?;
            self.used += step.used;
            if let Some(record) = step.record {
                self.found = Some((record, self.splitter.mark()));
                return Ok(Next::Record(record));
            }
            if self.is_last {
                return Ok(Next::End);
            }
            if self.end() >= self.size {
                if !is_unchanged()? {
                    return Err(Halt::Changed);
                }
                self.is_last = true;
            } else {
                self.fill(file)?;
            }
        }
    }

    /// Bytes of the message that a record becomes.
    pub fn message_len(&self, record: Record) -> u64 {
        self.header.len() as u64 + record.len
    }

    /// The message of a record, which is done with then.
    pub fn take(&mut self, file: &files::File, record: Record) -> Result<Content, Halt> {
        let content = self.content(file, record)?;
        if let Some((_, mark)) = self.found.take() {
            self.mark = mark;
        }
        Ok(content)
    }

    /// Behind the last record that was taken.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    fn content(&self, file: &files::File, record: Record) -> Result<Content, Halt> {
        let len = self.message_len(record);
        if len > INLINE_BYTES_MAX as u64 {
            let slice = file.slice(record.start, record.len).map_err(Halt::from)?;
            if self.header.is_empty() {
                return Ok(Content::Blob(slice));
            }
            let mut writer = BlobWriter::new();
            writer.write(&self.header)?;
            writer.copy(&slice, 0, record.len)?;
            return Ok(Content::Blob(writer.finish()?));
        }
        let bytes = self.bytes(file, record)?;
        if self.header.is_empty() {
            return Ok(Content::Inline(bytes.into_owned()));
        }
        let mut message = Vec::with_capacity(self.header.len() + bytes.len());
        message.extend_from_slice(&self.header);
        message.extend_from_slice(&bytes);
        Ok(Content::Inline(message))
    }

    /// From the buffer, or from the file where a record is longer than what was kept of it.
    fn bytes(&self, file: &files::File, record: Record) -> Result<Cow<'_, [u8]>, Halt> {
        let len = usize::try_from(record.len).unwrap_or(usize::MAX);
        let kept = record.start.checked_sub(self.start).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.buffer.get(from..from.checked_add(len)?)
        });
        if let Some(bytes) = kept {
            return Ok(Cow::Borrowed(bytes));
        }
        let bytes = read_exact(file, record.start, record.len)?;
        Ok(Cow::Owned(bytes))
    }

    fn end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Makes room, keeping the record in hand where it leaves some, and reads on.
    fn fill(&mut self, file: &files::File) -> Result<(), Halt> {
        let begun = self.splitter.begun().checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let fits = |from: &usize| *from <= self.used && self.buffer.len() - from < BUFFER_BYTES;
        let keep = begun.filter(fits).unwrap_or(self.used);
        self.buffer.drain(..keep);
        self.start += keep as u64;
        self.used -= keep;
        let left = self.size - self.end();
        let room = BUFFER_BYTES.saturating_sub(self.buffer.len()).max(1) as u64;
        let wanted = u32::try_from(room.min(left)).unwrap_or(u32::MAX);
        let bytes = file.read(self.end(), wanted).map_err(Halt::from)?;
        if bytes.is_empty() {
            return Err(Halt::Changed);
        }
        if self.buffer.is_empty() {
            self.buffer = bytes;
        } else {
            self.buffer.extend_from_slice(&bytes);
        }
        Ok(())
    }
}

/// The first record with its line end, and where it ends.
fn header_of(rules: &Rules, format: Format, file: &files::File, size: u64) -> Result<(Vec<u8>, u64), Halt> {
    let bytes = read_exact(file, 0, size.min(HEADER_BYTES_MAX + 1))?;
    let step =
        Splitter::new(format, rules.limits).cut(&bytes, bytes.len() as u64 == size).map_err(Halt::from)?;
    match step.record {
        Some(record) => {
            let start = usize::try_from(record.start).unwrap_or(usize::MAX);
            let header = bytes.get(start..step.used).unwrap_or_default();
            Ok((header.to_vec(), step.used as u64))
        }
        // Nothing but empty lines.
        None if bytes.len() as u64 == size => Ok((Vec::new(), size)),
        None => Err(Halt::Failed {
            code: "header-too-long",
            text: format!("the header is longer than {HEADER_BYTES_MAX} bytes"),
        }),
    }
}

/// A digest of the start of a file and of what stands before an offset.
pub fn proof(file: &files::File, at: u64) -> Result<[u8; 16], Halt> {
    let mut digest = Sha256::new();
    let head = at.min(PROOF_BYTES);
    digest.update(read_exact(file, 0, head)?);
    let tail = at.saturating_sub(PROOF_BYTES).max(head);
    digest.update(read_exact(file, tail, at - tail)?);
    Ok(first(digest))
}

/// Some of a file, at most what one read gives.
pub fn read_exact(file: &files::File, offset: u64, len: u64) -> Result<Vec<u8>, Halt> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let bytes = file.read(offset, u32::try_from(len).unwrap_or(u32::MAX)).map_err(Halt::from)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(Halt::Changed) }
}

impl From<files::Error> for Halt {
    fn from(error: files::Error) -> Halt {
        match error {
            files::Error::Unavailable(_) => {
                Halt::Trouble(Trouble::unavailable("inbox-unavailable", error.to_string()))
            }
            error => Halt::Failed { code: "unreadable", text: error.to_string() },
        }
    }
}

impl From<blobs::Error> for Halt {
    fn from(error: blobs::Error) -> Halt {
        Halt::Trouble(Trouble::unavailable("body", error.to_string()))
    }
}

impl From<Broken> for Halt {
    fn from(broken: Broken) -> Halt {
        Halt::Failed { code: broken.code, text: format!("{} (byte {})", broken.text, broken.at) }
    }
}
