//! HL7 v2 in files: a message reaches from its `MSH` to the next segment that is not its
//! own, and the counts of batch and file are reconciled.
//!
//! Segments end in CR, LF or both. `FHS`, `BHS`, `BTS` and `FTS` belong to no message. A
//! batch or file that was opened must be closed, or the end is missing.

use memchr::memchr2;

use crate::{Broken, Limits, Mark, Opening, Record, Step, opening, too_large};

/// The longest `FHS`, `BHS`, `BTS` or `FTS`.
const ENVELOPE_BYTES_MAX: usize = 64 * 1024;

const IN_FILE: u8 = 1;
const IN_BATCH: u8 = 2;

/// Finds messages.
#[derive(Clone, Debug)]
pub struct Hl7 {
    limits: Limits,
    at: u64,
    /// Where the message in hand began.
    message: Option<u64>,
    at_line_start: bool,
    is_in_file: bool,
    is_in_batch: bool,
    /// Messages of the batch, messages of the file, batches of the file.
    batch_messages: u64,
    file_messages: u64,
    batches: u64,
}

impl Hl7 {
    pub(crate) fn resume(limits: Limits, mark: Mark) -> Hl7 {
        let [batch_messages, file_messages, batches] = mark.counts;
        Hl7 {
            limits,
            at: mark.at,
            message: None,
            at_line_start: true,
            is_in_file: mark.phase & IN_FILE != 0,
            is_in_batch: mark.phase & IN_BATCH != 0,
            batch_messages,
            file_messages,
            batches,
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        let phase = u8::from(self.is_in_file) * IN_FILE + u8::from(self.is_in_batch) * IN_BATCH;
        Mark { at: self.at, phase, counts: [self.batch_messages, self.file_messages, self.batches] }
    }

    pub(crate) fn begun(&self) -> u64 {
        self.message.unwrap_or(self.at)
    }

    pub(crate) fn cut(&mut self, bytes: &[u8], is_last: bool) -> Result<Step, Broken> {
        let first = self.at;
        let mut used = 0;
        if self.at == 0 {
            match opening(bytes, is_last)? {
                Opening::Unknown => return Ok(Step::default()),
                Opening::Skip(len) => used = len,
            }
        }
        loop {
            self.at = first + used as u64;
            self.check_length()?;
            let rest = bytes.get(used..).unwrap_or_default();
            if rest.is_empty() {
                let record = if is_last { self.finish()? } else { None };
                return Ok(Step { used, record });
            }
            let line = if self.at_line_start { self.line_start(rest, is_last)? } else { Line::Goes(0) };
            match line {
                Line::Goes(len) => used += len + self.skip(rest.get(len..).unwrap_or_default()),
                Line::Ends => {
                    let record = self.end()?;
                    return Ok(Step { used, record });
                }
                Line::Unknown => return Ok(Step { used, record: None }),
            }
        }
    }

    /// To behind the next segment's end, unless a segment begins here.
    fn skip(&mut self, rest: &[u8]) -> usize {
        if self.at_line_start {
            return 0;
        }
        match memchr2(b'\r', b'\n', rest) {
            Some(found) => {
                self.at_line_start = true;
                found + 1
            }
            None => rest.len(),
        }
    }

    fn line_start(&mut self, rest: &[u8], is_last: bool) -> Result<Line, Broken> {
        if matches!(rest.first(), Some(b'\r' | b'\n')) {
            return Ok(Line::Goes(1));
        }
        let Some(name) = rest.first_chunk::<3>().filter(|_| rest.len() > 3 || is_last) else {
            if !is_last {
                return Ok(Line::Unknown);
            }
            return self.other_segment();
        };
        match name {
            b"MSH" | b"FHS" | b"BHS" | b"BTS" | b"FTS" if self.message.is_some() => Ok(Line::Ends),
            b"MSH" => {
                self.message = Some(self.at);
                self.batch_messages += 1;
                self.file_messages += 1;
                self.at_line_start = false;
                Ok(Line::Goes(3))
            }
            b"FHS" | b"BHS" | b"BTS" | b"FTS" => self.envelope(*name, rest, is_last),
            _ => self.other_segment(),
        }
    }

    fn other_segment(&mut self) -> Result<Line, Broken> {
        if self.message.is_none() {
            let text = "a segment that is not `MSH` stands outside a message";
            return Err(Broken::new("not-hl7", self.at, text));
        }
        self.at_line_start = false;
        Ok(Line::Goes(1))
    }

    fn envelope(&mut self, name: [u8; 3], rest: &[u8], is_last: bool) -> Result<Line, Broken> {
        let len = match memchr2(b'\r', b'\n', rest) {
            Some(len) => len,
            None if is_last => rest.len(),
            None if rest.len() <= ENVELOPE_BYTES_MAX => return Ok(Line::Unknown),
            None => ENVELOPE_BYTES_MAX + 1,
        };
        if len > ENVELOPE_BYTES_MAX {
            let text = format!("the header or trailer of a batch is longer than {ENVELOPE_BYTES_MAX} bytes");
            return Err(Broken::new("not-hl7", self.at, text));
        }
        let count = first_field(rest.get(..len).unwrap_or_default());
        match &name {
            b"FHS" if self.is_in_file || self.is_in_batch => return Err(self.misplaced("FHS")),
            b"FHS" => {
                self.is_in_file = true;
                (self.batches, self.file_messages) = (0, 0);
            }
            b"BHS" if self.is_in_batch => return Err(self.misplaced("BHS")),
            b"BHS" => {
                self.is_in_batch = true;
                self.batches += 1;
                self.batch_messages = 0;
            }
            b"BTS" if !self.is_in_batch => return Err(self.misplaced("BTS")),
            b"BTS" => {
                self.is_in_batch = false;
                self.reconcile(count, self.batch_messages, "BTS-1", "messages")?;
            }
            _ if self.is_in_batch || !self.is_in_file => return Err(self.misplaced("FTS")),
            _ => {
                self.is_in_file = false;
                // A file without batches counts its messages, or itself as one batch.
                if self.batches > 0 {
                    self.reconcile(count, self.batches, "FTS-1", "batches")?;
                } else if count != Some(1) {
                    self.reconcile(count, self.file_messages, "FTS-1", "messages")?;
                }
            }
        }
        Ok(Line::Goes(len))
    }

    fn misplaced(&self, name: &str) -> Broken {
        let text = format!("`{name}` stands where it cannot: a header or trailer before it is missing");
        Broken::new("batch-order", self.at, text)
    }

    fn reconcile(&self, written: Option<u64>, counted: u64, field: &str, what: &str) -> Result<(), Broken> {
        match written {
            Some(written) if written != counted => {
                let text = format!("{field} says {written} {what}, but there are {counted}");
                Err(Broken::new("count-differs", self.at, text))
            }
            _ => Ok(()),
        }
    }

    fn check_length(&self) -> Result<(), Broken> {
        match self.message {
            Some(start) if self.at - start > self.limits.record_bytes_max => {
                Err(too_large(start, self.limits))
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<Option<Record>, Broken> {
        self.at_line_start = true;
        Ok(self.message.take().map(|start| Record { start, len: self.at - start }))
    }

    fn finish(&mut self) -> Result<Option<Record>, Broken> {
        if self.message.is_some() {
            return self.end();
        }
        let missing = match (self.is_in_batch, self.is_in_file) {
            (true, _) => "BTS",
            (_, true) => "FTS",
            _ => return Ok(None),
        };
        let text = format!("the input ends without the `{missing}` that its header asks for");
        Err(Broken::new("trailer-missing", self.at, text))
    }
}

/// What a place that may be a segment's start is.
enum Line {
    /// So many bytes, and on with the segment.
    Goes(usize),
    /// The message in hand ends before it.
    Ends,
    /// It takes more bytes to tell.
    Unknown,
}

/// The number in the first field of a trailer, where there is one.
fn first_field(segment: &[u8]) -> Option<u64> {
    let separator = segment.get(3)?;
    let field = segment.get(4..)?.split(|byte| byte == separator).next()?;
    let digits = field.trim_ascii();
    let digits = digits.get(..digits.iter().take_while(|byte| byte.is_ascii_digit()).count())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
