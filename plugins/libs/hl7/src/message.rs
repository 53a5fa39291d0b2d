//! A message: where its header is, and the way to its segments.

use crate::{
    DelimiterError, Delimiters, Path, Segment, Segments,
    search::find_either,
    segment::{is_header_name, skip_blank},
};

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// A view over the bytes of one message (or of a batch, which begins with FHS or BHS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    bytes: &'a [u8],
    /// From the header's first letter on.
    body: &'a [u8],
    delimiters: Delimiters,
}

/// Why bytes are not HL7 v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Nothing but blanks.
    Empty,
    /// The first segment is not MSH, FHS or BHS.
    NoHeader,
    Delimiters(DelimiterError),
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParseError::Empty => f.write_str("there is nothing but blanks"),
            ParseError::NoHeader => f.write_str("the first segment is not `MSH`"),
            ParseError::Delimiters(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ParseError {}

impl<'a> Message<'a> {
    /// Reads the delimiters and nothing else. A byte order mark, blanks and blank lines before the
    /// header are passed over; they stay in [`Message::raw`].
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, ParseError> {
        let body = skip_blank(bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes));
        if body.is_empty() {
            return Err(ParseError::Empty);
        }
        if !is_header_name(body) {
            return Err(ParseError::NoHeader);
        }
        let delimiters = Delimiters::of_header(line(body)).map_err(ParseError::Delimiters)?;
        Ok(Message { bytes, body, delimiters })
    }

    /// The bytes as given.
    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes from the header's first letter on.
    pub(crate) fn body(&self) -> &'a [u8] {
        self.body
    }

    pub fn delimiters(&self) -> &Delimiters {
        &self.delimiters
    }

    /// The first segment.
    pub fn header(&self) -> Segment<'a> {
        Segment::new(line(self.body), self.delimiters)
    }

    /// All segments, the header first.
    pub fn segments(&self) -> Segments<'a> {
        Segments::new(self.body, self.delimiters)
    }

    /// The segment of that name and number, from 1.
    pub fn segment(&self, name: &str, number: usize) -> Option<Segment<'a>> {
        self.segments().filter(|segment| segment.is(name)).nth(number.checked_sub(1)?)
    }

    /// What a path points at: None where there is no such place, empty where nothing is written.
    pub fn get(&self, path: &Path) -> Option<&'a [u8]> {
        path.find(self)
    }
}

fn line(body: &[u8]) -> &[u8] {
    find_either(body, b'\r', b'\n').and_then(|end| body.get(..end)).unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_message_is_said() {
        assert_eq!(Message::parse(b" \r\n").unwrap_err(), ParseError::Empty);
        assert_eq!(Message::parse(b"{}").unwrap_err(), ParseError::NoHeader);
        assert_eq!(Message::parse(b"M").unwrap_err(), ParseError::NoHeader);
        let error = ParseError::Delimiters(DelimiterError::NoFieldSeparator);
        assert_eq!(Message::parse(b"MSH\rPID|1").unwrap_err(), error);
    }

    #[test]
    fn a_mark_before_the_header_is_passed_over_and_kept() {
        let bytes = b"\xEF\xBB\xBFmsh|^~\\&|A\r";
        let message = Message::parse(bytes).unwrap();
        assert_eq!(message.header().field(3).unwrap().raw(), b"A");
        assert_eq!(message.raw(), bytes);
    }

    #[test]
    fn twenty_megabytes_in_one_field_are_not_copied() {
        let mut bytes = b"MSH|^~\\&|A\rOBX|1|ED|||^^^Base64^".to_vec();
        let start = bytes.len();
        bytes.resize(start + (20 << 20), b'A');
        bytes.extend_from_slice(b"||||||F\r");
        let message = Message::parse(&bytes).unwrap();
        let data = message.get(&"OBX-5.5".parse().unwrap()).unwrap();
        assert_eq!(data.len(), 20 << 20);
        assert_eq!(data.as_ptr(), bytes[start..].as_ptr());
    }

    fn hl7_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => prop::sample::select(b"|^~\\&#\r\n\" MSHPIDOBXZ.X0aF".to_vec()),
            1 => any::<u8>(),
        ];
        proptest::collection::vec(byte, 0..200).prop_flat_map(|tail| {
            prop_oneof![Just(tail.clone()), Just([b"MSH|^~\\&|".as_slice(), &tail].concat())]
        })
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_all_slices_lie_inside(bytes in hl7_bytes()) {
            let Ok(message) = Message::parse(&bytes) else { return Ok(()) };
            let inside = bytes.as_ptr_range();
            for segment in message.segments() {
                prop_assert!(inside.contains(&segment.raw().as_ptr()));
                for (number, field) in segment.fields() {
                    prop_assert_eq!(segment.field(number), Some(field));
                    let parts = field.repetitions().flat_map(|r| r.components().collect::<Vec<_>>());
                    for component in parts {
                        let written: Vec<u8> = component.pieces().flat_map(|p| p.raw().to_vec()).collect();
                        prop_assert_eq!(&written, component.raw());
                    }
                }
            }
        }

        #[test]
        fn segments_and_what_lies_between_are_all_the_bytes(bytes in hl7_bytes()) {
            let Ok(message) = Message::parse(&bytes) else { return Ok(()) };
            let mut at = bytes.len() - message.body.len();
            for segment in message.segments() {
                let start = segment.raw().as_ptr() as usize - bytes.as_ptr() as usize;
                prop_assert!(bytes[at..start].iter().all(u8::is_ascii_whitespace), "only blanks are passed over");
                at = start + segment.raw().len();
            }
            prop_assert!(bytes[at..].iter().all(u8::is_ascii_whitespace));
        }
    }
}
