//! JSON lines: each line is a record and must be one well-formed value.
//!
//! Blanks around a value are not its record's; empty lines are none.

use memchr::memchr;

use crate::json::{Scanner, is_blank};
use crate::{Broken, Limits, Mark, Opening, Record, Step, opening, too_large, within};

/// Finds values.
#[derive(Clone, Debug)]
pub struct Ndjson {
    limits: Limits,
    at: u64,
    place: Place,
    /// Where the value in hand began.
    value: u64,
    scanner: Scanner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    LineStart,
    Value,
    /// Behind a value, in front of its line end.
    Behind,
}

impl Ndjson {
    pub(crate) fn resume(limits: Limits, mark: Mark) -> Ndjson {
        let place = if mark.phase == 0 { Place::LineStart } else { Place::Behind };
        Ndjson { limits, at: mark.at, place, value: mark.at, scanner: Scanner::new(0) }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { at: self.at, phase: u8::from(self.place == Place::Behind), ..Mark::default() }
    }

    pub(crate) fn begun(&self) -> u64 {
        if self.place == Place::Value { self.value } else { self.at }
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
            let rest = bytes.get(used..).unwrap_or_default();
            let Some(&byte) = rest.first() else {
                let record = if is_last { self.end_of_line()? } else { None };
                return Ok(Step { used, record });
            };
            match self.place {
                Place::Value => {
                    let (len, is_line_end) = self.scan(rest)?;
                    used += len;
                    self.at = first + used as u64;
                    let record = if is_line_end { self.end_of_line()? } else { self.end_of_value() };
                    if record.is_some() {
                        return Ok(Step { used, record });
                    }
                }
                Place::Behind if byte == b'\n' => {
                    self.place = Place::LineStart;
                    used += 1;
                }
                _ if is_blank(byte) => used += 1,
                Place::LineStart => {
                    (self.place, self.value) = (Place::Value, self.at);
                    self.scanner = Scanner::new(self.limits.depth_max);
                }
                Place::Behind => return Err(self.broken(self.at, "expected the end of the line")),
            }
        }
    }

    /// To the value's end or the line's. A line end inside a value is never its byte.
    fn scan(&mut self, rest: &[u8]) -> Result<(usize, bool), Broken> {
        let line_end = memchr(b'\n', rest);
        let line = rest.get(..line_end.unwrap_or(rest.len())).unwrap_or_default();
        let piece = within(line, self.at - self.value, self.limits);
        let used =
            self.scanner.scan(piece).map_err(|fault| self.broken(self.at + fault.used as u64, fault.what))?;
        if self.at + used as u64 - self.value > self.limits.record_bytes_max {
            return Err(too_large(self.value, self.limits));
        }
        Ok((used, line_end == Some(used)))
    }

    fn end_of_value(&mut self) -> Option<Record> {
        if !self.scanner.is_done() {
            return None;
        }
        self.place = Place::Behind;
        Some(Record { start: self.value, len: self.at - self.value })
    }

    /// A number ends with its line.
    fn end_of_line(&mut self) -> Result<Option<Record>, Broken> {
        if self.place != Place::Value {
            return Ok(None);
        }
        self.scanner.finish().map_err(|what| self.broken(self.at, what))?;
        Ok(self.end_of_value())
    }

    fn broken(&self, at: u64, text: &str) -> Broken {
        Broken::new("invalid-json", at, text)
    }
}
