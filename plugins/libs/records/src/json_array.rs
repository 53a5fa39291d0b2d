//! A JSON array: each element is a record, as the bytes between blanks and commas.

use crate::json::{Scanner, is_blank};
use crate::{Broken, Limits, Mark, Opening, Record, Step, opening, too_large, within};

/// Finds the elements of an array.
#[derive(Clone, Debug)]
pub struct JsonArray {
    limits: Limits,
    at: u64,
    place: Place,
    /// Where the element in hand began.
    element: u64,
    scanner: Scanner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeArray,
    FirstElement,
    Element,
    AfterElement,
    NextElement,
    BehindArray,
}

impl JsonArray {
    pub(crate) fn resume(limits: Limits, mark: Mark) -> JsonArray {
        let place = if mark.phase == 0 { Place::BeforeArray } else { Place::AfterElement };
        let scanner = Scanner::new(0);
        JsonArray { limits, at: mark.at, place, element: mark.at, scanner }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { at: self.at, phase: u8::from(self.place != Place::BeforeArray), ..Mark::default() }
    }

    pub(crate) fn begun(&self) -> u64 {
        if self.place == Place::Element { self.element } else { self.at }
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
                if is_last && self.place != Place::BehindArray {
                    return Err(self.broken("the array is not complete"));
                }
                return Ok(Step { used, record: None });
            };
            if self.place == Place::Element {
                used += self.scan(rest)?;
                self.at = first + used as u64;
                if self.scanner.is_done() {
                    self.place = Place::AfterElement;
                    let record = Record { start: self.element, len: self.at - self.element };
                    return Ok(Step { used, record: Some(record) });
                }
            } else if is_blank(byte) {
                used += 1;
            } else {
                used += self.between(byte)?;
            }
        }
    }

    fn scan(&mut self, rest: &[u8]) -> Result<usize, Broken> {
        let piece = within(rest, self.at - self.element, self.limits);
        let used = self
            .scanner
            .scan(piece)
            .map_err(|fault| Broken::new("invalid-json", self.at + fault.used as u64, fault.what))?;
        if self.at + used as u64 - self.element > self.limits.record_bytes_max {
            return Err(too_large(self.element, self.limits));
        }
        Ok(used)
    }

    /// A byte of the array itself; the first byte of an element is none.
    fn between(&mut self, byte: u8) -> Result<usize, Broken> {
        self.place = match (self.place, byte) {
            (Place::BeforeArray, b'[') => Place::FirstElement,
            (Place::BeforeArray, _) => {
                return Err(Broken::new("not-an-array", self.at, "expected a JSON array"));
            }
            (Place::FirstElement | Place::AfterElement, b']') => Place::BehindArray,
            (Place::AfterElement, b',') => Place::NextElement,
            (Place::FirstElement | Place::NextElement, _) => {
                self.element = self.at;
                // The array itself is one level.
                self.scanner = Scanner::new(self.limits.depth_max.saturating_sub(1));
                self.place = Place::Element;
                return Ok(0);
            }
            (Place::AfterElement, _) => return Err(self.broken("expected `,` or `]`")),
            (Place::BehindArray, _) => return Err(self.broken("expected nothing behind the array")),
            (Place::Element, _) => Place::Element,
        };
        Ok(1)
    }

    fn broken(&self, text: &str) -> Broken {
        Broken::new("invalid-json", self.at, text)
    }
}
