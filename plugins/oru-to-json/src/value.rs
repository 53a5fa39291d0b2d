//! What was observed: OBX-5, by the type that OBX-2 names.
//!
//! A value is always an object. A number keeps its text, since `5.0` says more than `5`; beside it
//! stands a JSON number where a double holds all of its digits.

use std::ops::Range;

use portway_hl7::{DateTime, FieldIndex};

use crate::{
    out::{Key, Out},
    shape::{CODED, ENCAPSULATED, POINTER, STRUCTURED_NUMBER},
    text::Source,
};

/// Decimal digits that a double certainly holds.
const DIGITS_MAX: usize = 15;

static VALUES: Key = Key::new("values");
static TEXT: Key = Key::new("text");
static NUMBER: Key = Key::new("number");
static TIME: Key = Key::new("time");
static PARTS: Key = Key::new("parts");

impl Out {
    /// The member `values`.
    pub(crate) fn values(&mut self, source: &Source<'_>, index: &FieldIndex) {
        let Some(place) = index.field(5).filter(|place| !place.is_empty()) else { return };
        let kind = index.field(2).map_or(&b""[..], |place| source.bytes(&place));
        if source.is_null(&place) {
            return self.null_member(&VALUES);
        }
        let before = self.written();
        self.push_key(&VALUES);
        if !self.array(source, place, |out, place| out.value(source, place, kind)) {
            self.rewind(before);
        }
    }

    fn value(&mut self, source: &Source<'_>, place: &Range<usize>, kind: &[u8]) -> bool {
        if source.is_null(place) {
            self.push_array(*b"null,", 5);
            return true;
        }
        match kind {
            b"NM" => self.number(source, place),
            b"ST" | b"TX" | b"FT" | b"IS" | b"ID" | b"SI" | b"TM" => self.plain_value(source, place),
            b"CE" | b"CWE" | b"CNE" | b"CF" => return self.object(source, place, CODED),
            b"SN" => return self.object(source, place, STRUCTURED_NUMBER),
            b"ED" => return self.object(source, place, ENCAPSULATED),
            b"RP" => return self.object(source, place, POINTER),
            b"DT" | b"DTM" | b"TS" => self.time(source, place),
            _ => self.unknown(source, place),
        }
        true
    }

    fn plain_value(&mut self, source: &Source<'_>, place: &Range<usize>) {
        self.push(b'{');
        self.keyed_string(source, place.clone(), &TEXT);
        self.close(b'}');
    }

    fn number(&mut self, source: &Source<'_>, place: &Range<usize>) {
        self.push(b'{');
        self.keyed_string(source, place.clone(), &TEXT);
        if let Some(number) = Number::parse(source.bytes(place)) {
            self.push_key(&NUMBER);
            number.write(|byte| self.push(byte));
            self.push(b',');
        }
        self.close(b'}');
    }

    fn time(&mut self, source: &Source<'_>, place: &Range<usize>) {
        self.push(b'{');
        self.keyed_string(source, place.clone(), &TEXT);
        let written = source.first(place, source.component);
        if DateTime::parse(source.bytes(&written)).is_some() {
            self.date_member(source, written, &TIME);
        }
        self.close(b'}');
    }

    /// A type that is not known here: its components, if it has any.
    fn unknown(&mut self, source: &Source<'_>, place: &Range<usize>) {
        let (mut part, mut rest) = source.split(place, source.component);
        if rest.is_none() {
            return self.plain_value(source, place);
        }
        self.push(b'{');
        self.push_key(&PARTS);
        self.push(b'[');
        loop {
            self.string(source, part);
            let Some(left) = rest else { break };
            (part, rest) = source.split(&left, source.component);
        }
        self.close(b']');
        self.close(b'}');
    }
}

/// A decimal number of at most [`DIGITS_MAX`] digits.
struct Number<'a> {
    is_negative: bool,
    /// Without leading zeros.
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Number<'a> {
    fn parse(text: &'a [u8]) -> Option<Number<'a>> {
        let text = text.trim_ascii();
        let (is_negative, digits) = match text.split_first()? {
            (b'-', digits) => (true, digits),
            (b'+', digits) => (false, digits),
            _ => (false, text),
        };
        let point = digits.iter().position(|byte| *byte == b'.');
        let whole = digits.get(..point.unwrap_or(digits.len()))?;
        let fraction = point.map_or(&b""[..], |point| digits.get(point + 1..).unwrap_or(&[]));
        let are_digits = whole.iter().chain(fraction).all(u8::is_ascii_digit);
        if !are_digits || whole.len() + fraction.len() == 0 {
            return None;
        }
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let whole = whole.get(zeros..)?;
        (whole.len() + fraction.len() <= DIGITS_MAX).then_some(Number { is_negative, whole, fraction })
    }

    /// As JSON wants it: a digit on both sides of a point.
    fn write(&self, mut push: impl FnMut(u8)) {
        if self.is_negative {
            push(b'-');
        }
        if self.whole.is_empty() {
            push(b'0');
        }
        self.whole.iter().for_each(|digit| push(*digit));
        if !self.fraction.is_empty() {
            push(b'.');
            self.fraction.iter().for_each(|digit| push(*digit));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Option<String> {
        let mut written = Vec::new();
        Number::parse(text.as_bytes())?.write(|byte| written.push(byte));
        Some(String::from_utf8(written).unwrap())
    }

    #[test]
    fn a_number_is_one_only_where_nothing_is_lost() {
        let cases = [
            ("13.50", Some("13.50")),
            ("+007", Some("7")),
            ("-.5", Some("-0.5")),
            ("5.", Some("5")),
            ("0", Some("0")),
            (" 4 ", Some("4")),
            ("123456789012345", Some("123456789012345")),
            ("1234567890123456", None),
            ("0.1234567890123456", None),
            ("1e5", None),
            ("<5", None),
            (".", None),
            ("-", None),
            ("", None),
            ("1.2.3", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_json_and_the_same_number(text in "[+-]?[0-9]{0,9}\\.?[0-9]{0,7}") {
            if let Some(written) = number(&text) {
                let read: f64 = serde_json::from_str(&written).unwrap();
                prop_assert_eq!(read, text.parse::<f64>().unwrap());
            }
        }
    }
}
