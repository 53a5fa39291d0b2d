//! The delimiters a message declares in its header (MSH-1 and MSH-2, or those of FHS and BHS).

use crate::search::find_byte;

/// What separates and escapes in one message. Those the header leaves out do not exist in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiters {
    pub field: u8,
    pub component: Option<u8>,
    pub repetition: Option<u8>,
    pub escape: Option<u8>,
    pub subcomponent: Option<u8>,
    /// The fifth character of MSH-2, from version 2.7.
    pub truncation: Option<u8>,
}

/// Why a header declares no usable delimiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelimiterError {
    /// The segment ends behind its name.
    NoFieldSeparator,
    /// A letter, a digit or a control character separates the fields.
    UnusableFieldSeparator(u8),
}

impl std::fmt::Display for DelimiterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DelimiterError::NoFieldSeparator => f.write_str("the header ends before its field separator"),
            DelimiterError::UnusableFieldSeparator(byte) => {
                write!(f, "0x{byte:02X} cannot be a field separator")
            }
        }
    }
}

impl std::error::Error for DelimiterError {}

impl Delimiters {
    /// The ones nearly everybody uses: `|^~\&`.
    pub const STANDARD: Delimiters = Delimiters {
        field: b'|',
        component: Some(b'^'),
        repetition: Some(b'~'),
        escape: Some(b'\\'),
        subcomponent: Some(b'&'),
        truncation: None,
    };

    /// Reads them from a header segment, which begins with its three-letter name.
    ///
    /// An empty MSH-2 declares nothing; the standard ones are meant then, since a message without
    /// components would be of no use to anyone.
    pub fn of_header(segment: &[u8]) -> Result<Delimiters, DelimiterError> {
        Delimiters::as_written(segment.get(3..).unwrap_or(&[]))
    }

    /// The same from the field separator on; what is behind MSH-2 may be missing.
    pub fn as_written(text: &[u8]) -> Result<Delimiters, DelimiterError> {
        let (&field, after) = text.split_first().ok_or(DelimiterError::NoFieldSeparator)?;
        if field.is_ascii_alphanumeric() || field.is_ascii_control() {
            return Err(DelimiterError::UnusableFieldSeparator(field));
        }
        let encoding = up_to(after, field);
        if encoding.is_empty() {
            return Ok(Delimiters { field, ..Delimiters::STANDARD });
        }
        Ok(Delimiters {
            field,
            component: encoding.first().copied(),
            repetition: encoding.get(1).copied(),
            escape: encoding.get(2).copied(),
            subcomponent: encoding.get(3).copied(),
            truncation: encoding.get(4).copied(),
        })
    }

    /// Whether the byte has a meaning of its own and must be escaped in a text.
    pub fn contains(&self, byte: u8) -> bool {
        byte == self.field || self.encoding().contains(&Some(byte))
    }

    /// Whether none of them can be part of a character in a text that is decoded.
    pub fn are_ascii(&self) -> bool {
        self.field.is_ascii() && self.encoding().iter().flatten().all(u8::is_ascii)
    }

    fn encoding(&self) -> [Option<u8>; 5] {
        [self.component, self.repetition, self.escape, self.subcomponent, self.truncation]
    }
}

/// MSH-2 as written: from behind the field separator to the next one.
pub(crate) fn encoding_characters(segment: &[u8]) -> &[u8] {
    let Some((&field, after)) = segment.get(3..).and_then(|rest| rest.split_first()) else { return &[] };
    up_to(after, field)
}

fn up_to(bytes: &[u8], delimiter: u8) -> &[u8] {
    find_byte(bytes, delimiter).and_then(|end| bytes.get(..end)).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_characters_declare_truncation() {
        let delimiters = Delimiters::of_header(b"MSH|^~\\&#|LAB").unwrap();
        assert_eq!(delimiters.truncation, Some(b'#'));
        assert_eq!(delimiters.subcomponent, Some(b'&'));
    }

    #[test]
    fn unusual_delimiters_are_taken_as_declared() {
        let delimiters = Delimiters::of_header(b"MSH#*+!%#LAB").unwrap();
        let expected = Delimiters {
            field: b'#',
            component: Some(b'*'),
            repetition: Some(b'+'),
            escape: Some(b'!'),
            subcomponent: Some(b'%'),
            truncation: None,
        };
        assert_eq!(delimiters, expected);
    }

    #[test]
    fn what_is_left_out_does_not_exist() {
        let delimiters = Delimiters::of_header(b"MSH|^~|LAB").unwrap();
        assert_eq!((delimiters.escape, delimiters.subcomponent), (None, None));
        assert_eq!(Delimiters::of_header(b"MSH||LAB"), Ok(Delimiters::STANDARD));
    }

    #[test]
    fn a_header_without_separator_is_refused() {
        assert_eq!(Delimiters::of_header(b"MSH"), Err(DelimiterError::NoFieldSeparator));
        assert_eq!(Delimiters::of_header(b"MSHx"), Err(DelimiterError::UnusableFieldSeparator(b'x')));
    }
}
