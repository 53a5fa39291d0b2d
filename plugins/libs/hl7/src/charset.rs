//! Character sets: what MSH-18 names, and the three that need no table.
//!
//! Names are those of table 0211. A blank means ASCII by the standard and UTF-8 in practice, so it is
//! read as strict UTF-8, which ASCII is a part of. `8859/1` is ISO 8859-1 itself, every byte the
//! character of its number, and not the Windows set that browsers put in its place. All others are
//! named for whoever has the tables; nothing is ever replaced by U+FFFD.

use std::borrow::Cow;

use crate::{Field, Message, search::find_non_ascii};

/// How the bytes of a message become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Blank, `ASCII`, `UNICODE UTF-8` and other names of the same.
    Utf8,
    /// `8859/1`.
    Latin1,
    /// One that needs a table; its name in table 0211.
    Named(&'static str),
    /// UTF-16 or UTF-32: bytes that are no text under ASCII delimiters.
    Wide,
    /// Not in the table.
    Unknown,
}

/// Why bytes are not text of a character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The first byte that is wrong.
    Malformed(usize),
    /// The set needs a table that is not here.
    NeedsTable,
}

/// Names as written, without case, blanks and punctuation, and what they mean.
const NAMES: &[(&str, Charset)] = &[
    ("", Charset::Utf8),
    ("ASCII", Charset::Utf8),
    ("USASCII", Charset::Utf8),
    ("ISOIR6", Charset::Utf8),
    ("UTF8", Charset::Utf8),
    ("UNICODEUTF8", Charset::Utf8),
    ("88591", Charset::Latin1),
    ("ISO88591", Charset::Latin1),
    ("LATIN1", Charset::Latin1),
    ("88592", Charset::Named("8859/2")),
    ("88593", Charset::Named("8859/3")),
    ("88594", Charset::Named("8859/4")),
    ("88595", Charset::Named("8859/5")),
    ("88596", Charset::Named("8859/6")),
    ("88597", Charset::Named("8859/7")),
    ("88598", Charset::Named("8859/8")),
    ("88599", Charset::Named("8859/9")),
    ("885915", Charset::Named("8859/15")),
    ("ISO88592", Charset::Named("8859/2")),
    ("ISO88593", Charset::Named("8859/3")),
    ("ISO88594", Charset::Named("8859/4")),
    ("ISO88595", Charset::Named("8859/5")),
    ("ISO88596", Charset::Named("8859/6")),
    ("ISO88597", Charset::Named("8859/7")),
    ("ISO88598", Charset::Named("8859/8")),
    ("ISO88599", Charset::Named("8859/9")),
    ("ISO885915", Charset::Named("8859/15")),
    ("ISOIR14", Charset::Named("ISO IR14")),
    ("ISOIR87", Charset::Named("ISO IR87")),
    ("ISOIR159", Charset::Named("ISO IR159")),
    ("GB180302000", Charset::Named("GB 18030-2000")),
    ("GB18030", Charset::Named("GB 18030-2000")),
    ("KSX1001", Charset::Named("KS X 1001")),
    ("CNS116431992", Charset::Named("CNS 11643-1992")),
    ("BIG5", Charset::Named("BIG-5")),
    ("WINDOWS1250", Charset::Named("windows-1250")),
    ("WINDOWS1251", Charset::Named("windows-1251")),
    ("WINDOWS1252", Charset::Named("windows-1252")),
    ("UNICODE", Charset::Wide),
    ("UNICODEUTF16", Charset::Wide),
    ("UNICODEUTF32", Charset::Wide),
    ("UTF16", Charset::Wide),
    ("UTF32", Charset::Wide),
];

impl Charset {
    /// What a name means; blanks around and case do not matter.
    pub fn named(name: &[u8]) -> Charset {
        let mut plain = [0_u8; 16];
        let mut length = 0;
        for byte in name.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
            let Some(slot) = plain.get_mut(length) else { return Charset::Unknown };
            *slot = byte.to_ascii_uppercase();
            length += 1;
        }
        let plain = plain.get(..length).unwrap_or(&[]);
        let found = NAMES.iter().find(|(known, _)| known.as_bytes() == plain);
        found.map_or(Charset::Unknown, |(_, charset)| *charset)
    }

    /// What MSH-18 of a message says.
    pub fn of(message: &Message<'_>) -> Charset {
        message.header().field(18).map_or(Charset::Utf8, |field| Charset::of_field(&field))
    }

    /// What MSH-18 means. Its repetitions are sets that escape sequences switch to; the Japanese ones
    /// are used that way beside ASCII, and then they decide.
    pub fn of_field(field: &Field<'_>) -> Charset {
        if field.is_empty() {
            return Charset::Utf8;
        }
        let mut sets = field.repetitions().map(|name| Charset::named(name.raw()));
        let first = sets.next().unwrap_or(Charset::Utf8);
        match first {
            Charset::Utf8 | Charset::Named("ISO IR14") => {
                let japanese = |set: &Charset| matches!(set, Charset::Named("ISO IR87" | "ISO IR159"));
                sets.find(japanese).unwrap_or(first)
            }
            Charset::Latin1 | Charset::Named(_) | Charset::Wide | Charset::Unknown => first,
        }
    }

    /// Text where no table is needed; borrowed where the bytes are text as they stand.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, DecodeError> {
        match self {
            Charset::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Cow::Borrowed(text)),
                Err(error) => Err(DecodeError::Malformed(error.valid_up_to())),
            },
            Charset::Latin1 => Ok(match (find_non_ascii(bytes), std::str::from_utf8(bytes)) {
                (None, Ok(text)) => Cow::Borrowed(text),
                _ => Cow::Owned(latin1(bytes)),
            }),
            Charset::Named(_) | Charset::Wide | Charset::Unknown => Err(DecodeError::NeedsTable),
        }
    }
}

/// Whether bytes are UTF-8, or which is the first that is not. Quicker than making a text of them where
/// most are ASCII: only what lies between ASCII bytes is looked at closely.
pub fn check_utf8(bytes: &[u8]) -> Result<(), DecodeError> {
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(find_non_ascii) {
        let start = at + found;
        let rest = bytes.get(start..).unwrap_or(&[]);
        let length = rest.iter().position(u8::is_ascii).unwrap_or(rest.len());
        std::str::from_utf8(rest.get(..length).unwrap_or(rest))
            .map_err(|error| DecodeError::Malformed(start + error.valid_up_to()))?;
        at = start + length;
    }
    Ok(())
}

/// Every byte as the character of its number.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// Whether the bytes look like UTF-16 or UTF-32: a mark, or zeros beside an `M` or `m`.
pub fn looks_wide(bytes: &[u8]) -> bool {
    let marked = matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    let two_bytes =
        matches!(bytes, [0, b'M' | b'm', 0, b'S' | b's', ..] | [b'M' | b'm', 0, b'S' | b's', 0, ..]);
    let four_bytes = matches!(bytes, [0, 0, 0, b'M' | b'm', ..] | [b'M' | b'm', 0, 0, 0, ..]);
    marked || two_bytes || four_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_table_are_known_however_they_are_written() {
        assert_eq!(Charset::named(b""), Charset::Utf8);
        assert_eq!(Charset::named(b" unicode utf-8"), Charset::Utf8);
        assert_eq!(Charset::named(b"8859/1"), Charset::Latin1);
        assert_eq!(Charset::named(b"ISO-8859-15"), Charset::Named("8859/15"));
        assert_eq!(Charset::named(b"ISO IR87"), Charset::Named("ISO IR87"));
        assert_eq!(Charset::named(b"UNICODE UTF-16"), Charset::Wide);
        assert_eq!(Charset::named(b"EBCDIC"), Charset::Unknown);
        assert_eq!(Charset::named(&[b'x'; 99]), Charset::Unknown);
    }

    #[test]
    fn blank_is_strict_utf8() {
        assert_eq!(Charset::Utf8.decode("é".as_bytes()), Ok("é".into()));
        assert_eq!(Charset::Utf8.decode(b"ab\xE9"), Err(DecodeError::Malformed(2)));
    }

    proptest::proptest! {
        #[test]
        fn the_quick_check_says_what_the_text_would(bytes in proptest::collection::vec(
            proptest::prop_oneof![3 => proptest::prelude::any::<u8>(), 2 => proptest::prelude::Just(b'a'), 2 => 0x80_u8..0xF5], 0..40)) {
            let expected = Charset::Utf8.decode(&bytes).map(|_| ());
            proptest::prop_assert_eq!(check_utf8(&bytes), expected);
            let text = String::from_utf8_lossy(&bytes);
            proptest::prop_assert_eq!(check_utf8(text.as_bytes()), Ok(()));
        }
    }

    #[test]
    fn latin1_is_the_real_one() {
        assert_eq!(Charset::Latin1.decode(b"\xE9\x80"), Ok("é\u{80}".into()));
        assert!(matches!(Charset::Latin1.decode(b"abc"), Ok(Cow::Borrowed("abc"))));
    }

    #[test]
    fn a_japanese_repetition_decides() {
        let of = |msh18: &str| {
            let bytes = format!("MSH|^~\\&|A||||||O|1|P|2.5||||||{msh18}\r");
            Charset::of(&Message::parse(bytes.as_bytes()).unwrap())
        };
        assert_eq!(of("~ISO IR87"), Charset::Named("ISO IR87"));
        assert_eq!(of("ISO IR14~ISO IR87"), Charset::Named("ISO IR87"));
        assert_eq!(of("8859/1~ISO IR87"), Charset::Latin1);
        assert_eq!(of(""), Charset::Utf8);
    }

    #[test]
    fn wide_text_is_recognised() {
        assert!(looks_wide(b"\xFF\xFEM\0"));
        assert!(looks_wide(b"\0M\0S\0H"));
        assert!(looks_wide(b"M\0S\0H\0"));
        assert!(!looks_wide(b"MSH|"));
    }
}
