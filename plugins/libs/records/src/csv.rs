//! CSV: a record ends at a line end that stands in no quoted field.
//!
//! A quote opens a field only as its first byte; inside, two quotes are one, and behind
//! the closing quote everything up to the delimiter is taken as it is. Whether the fields
//! fit the header is for whoever reads the record.

use memchr::{memchr, memchr2};

use crate::{Broken, Limits, Mark, Opening, Record, Step, opening, too_large};

/// Finds records of CSV.
#[derive(Clone, Debug)]
pub struct Csv {
    delimiter: u8,
    quote: Option<u8>,
    limits: Limits,
    at: u64,
    start: u64,
    quoting: Quoting,
    /// Where the quoted field began.
    quoted_at: u64,
    /// The last byte that was looked at.
    before: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoting {
    Outside,
    Inside,
    /// Behind a quote in a quoted field: the next byte says whether it closes the field.
    Closing,
}

impl Csv {
    pub(crate) fn resume(delimiter: u8, quote: Option<u8>, limits: Limits, mark: Mark) -> Csv {
        let (at, quoting) = (mark.at, Quoting::Outside);
        Csv { delimiter, quote, limits, at, start: at, quoting, quoted_at: at, before: b'\n' }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { at: self.at, ..Mark::default() }
    }

    pub(crate) fn begun(&self) -> u64 {
        self.start
    }

    pub(crate) fn cut(&mut self, bytes: &[u8], is_last: bool) -> Result<Step, Broken> {
        let mut used = 0;
        if self.at == 0 {
            match opening(bytes, is_last)? {
                Opening::Unknown => return Ok(Step::default()),
                Opening::Skip(len) => {
                    used = len;
                    self.at = len as u64;
                    self.start = self.at;
                }
            }
        }
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            if rest.is_empty() {
                let record = if is_last { self.finish()? } else { None };
                return Ok(Step { used, record });
            }
            let (len, is_end) = self.advance(rest);
            used += len;
            self.at += len as u64;
            if self.at - self.start > self.limits.record_bytes_max.saturating_add(2) {
                return Err(too_large(self.start, self.limits));
            }
            let last = self.before;
            if let Some(byte) = used.checked_sub(1).and_then(|index| bytes.get(index)) {
                self.before = *byte;
            }
            if is_end {
                // The byte in front of the line feed may have come with an earlier piece.
                let in_front = match len {
                    1 => last,
                    _ => rest.get(len - 2).copied().unwrap_or(last),
                };
                if let Some(record) = self.end(1, in_front)? {
                    return Ok(Step { used, record: Some(record) });
                }
            }
        }
    }

    /// How many bytes go together, and whether they end the record. None of them is empty.
    fn advance(&mut self, rest: &[u8]) -> (usize, bool) {
        match (self.quoting, self.quote) {
            (Quoting::Inside, Some(quote)) => match memchr(quote, rest) {
                Some(found) => {
                    self.quoting = Quoting::Closing;
                    (found + 1, false)
                }
                None => (rest.len(), false),
            },
            (Quoting::Closing, Some(quote)) if rest.first() == Some(&quote) => {
                self.quoting = Quoting::Inside;
                (1, false)
            }
            (_, Some(quote)) => {
                self.quoting = Quoting::Outside;
                let Some(found) = memchr2(b'\n', quote, rest) else { return (rest.len(), false) };
                if rest.get(found) == Some(&b'\n') && quote != b'\n' {
                    return (found + 1, true);
                }
                let before = found.checked_sub(1).and_then(|index| rest.get(index)).unwrap_or(&self.before);
                let position = self.at + found as u64;
                if position == self.start || *before == self.delimiter {
                    self.quoting = Quoting::Inside;
                    self.quoted_at = position;
                }
                (found + 1, false)
            }
            (_, None) => memchr(b'\n', rest).map_or((rest.len(), false), |found| (found + 1, true)),
        }
    }

    /// The record that ends here, in front of a line end of so many bytes.
    fn end(&mut self, line_end: u64, in_front: u8) -> Result<Option<Record>, Broken> {
        let start = std::mem::replace(&mut self.start, self.at);
        let len = self.at - line_end - start;
        let len = len.saturating_sub(u64::from(in_front == b'\r'));
        if len > self.limits.record_bytes_max {
            return Err(too_large(start, self.limits));
        }
        Ok((len > 0).then_some(Record { start, len }))
    }

    fn finish(&mut self) -> Result<Option<Record>, Broken> {
        if self.quoting == Quoting::Inside {
            let text = "the quote of a field is never closed";
            return Err(Broken::new("quote-not-closed", self.quoted_at, text));
        }
        let in_front = if self.at > self.start { self.before } else { 0 };
        self.end(0, in_front)
    }
}
