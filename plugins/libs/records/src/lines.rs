//! Lines: a record ends at a line feed, with or without a carriage return before it.
//!
//! Neither belongs to the record. Empty lines are none.

use memchr::memchr;

use crate::{Broken, Limits, Mark, Opening, Record, Step, opening, too_large};

/// Finds lines.
#[derive(Clone, Debug)]
pub struct Lines {
    limits: Limits,
    at: u64,
    start: u64,
    /// The last byte that was looked at is a carriage return.
    ends_in_cr: bool,
}

impl Lines {
    pub(crate) fn resume(limits: Limits, mark: Mark) -> Lines {
        Lines { limits, at: mark.at, start: mark.at, ends_in_cr: false }
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
            let Some(found) = memchr(b'\n', rest) else {
                self.take(rest);
                if self.at - self.start > self.limits.record_bytes_max.saturating_add(1) {
                    return Err(too_large(self.start, self.limits));
                }
                let record = if is_last { self.end(0)? } else { None };
                return Ok(Step { used: bytes.len(), record });
            };
            self.take(rest.get(..found).unwrap_or_default());
            self.at += 1;
            used += found + 1;
            if let Some(record) = self.end(1)? {
                return Ok(Step { used, record: Some(record) });
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.ends_in_cr = *last == b'\r';
            self.at += bytes.len() as u64;
        }
    }

    /// The record that ends here, in front of a line end of so many bytes.
    fn end(&mut self, line_end: u64) -> Result<Option<Record>, Broken> {
        let start = std::mem::replace(&mut self.start, self.at);
        let cr = u64::from(std::mem::take(&mut self.ends_in_cr));
        let len = (self.at - line_end - start).saturating_sub(cr);
        if len > self.limits.record_bytes_max {
            return Err(too_large(start, self.limits));
        }
        Ok((len > 0).then_some(Record { start, len }))
    }
}
