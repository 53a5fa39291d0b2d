//! What fields and parts are called: `PID-5.1.2`, or their bare numbers.

use crate::settings::Names;

/// A quote, and the name of a segment.
const SEGMENT_BYTES: usize = 4;

/// The way to the part at hand.
#[derive(Debug)]
pub(crate) struct Name {
    /// Behind its opening quote.
    bytes: Vec<u8>,
    /// As it is written in the document, with quotes and colon.
    written: Vec<u8>,
    names: Names,
}

impl Name {
    pub(crate) fn new(names: Names) -> Name {
        Name { bytes: Vec::new(), written: Vec::new(), names }
    }

    /// Begins a segment.
    pub(crate) fn begin(&mut self, segment: [u8; 3]) {
        self.bytes.clear();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(&segment);
    }

    /// Goes to the part of that number; returns the way back.
    pub(crate) fn go(&mut self, number: usize) -> usize {
        let back = self.bytes.len();
        self.bytes.push(if back == SEGMENT_BYTES { b'-' } else { b'.' });
        push_number(&mut self.bytes, number);
        self.written.clear();
        match self.names {
            Names::Position => self.written.extend_from_slice(&self.bytes),
            Names::Number => {
                self.written.push(b'"');
                self.written.extend_from_slice(self.bytes.get(back + 1..).unwrap_or_default());
            }
        }
        self.written.extend_from_slice(b"\":");
        back
    }

    pub(crate) fn back(&mut self, back: usize) {
        self.bytes.truncate(back);
    }

    /// What the part is called to which the last step went, with quotes and colon.
    pub(crate) fn written(&self) -> &[u8] {
        &self.written
    }
}

fn push_number(bytes: &mut Vec<u8>, number: usize) {
    if number >= 10 {
        push_number(bytes, number / 10);
    }
    bytes.push(b'0' + (number % 10) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_called_by_its_way_or_its_number() {
        for (names, expected) in [(Names::Position, "\"PID-5.10.2\":"), (Names::Number, "\"2\":")] {
            let mut name = Name::new(names);
            name.begin(*b"PID");
            let field = name.go(5);
            let component = name.go(10);
            name.go(2);
            assert_eq!(name.written(), expected.as_bytes());
            name.back(component);
            name.back(field);
            assert_eq!(name.go(103), SEGMENT_BYTES);
            assert!(name.written().ends_with(b"103\":"));
        }
    }
}
