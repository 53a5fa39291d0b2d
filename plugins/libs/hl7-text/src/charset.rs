//! The character set of a message: what MSH-18 says, or the settings where it says nothing.

use std::borrow::Cow;

use portway_hl7::{
    Charset, DecodeError, Field,
    charset::{check_utf8, latin1},
};
use portway_sdk::{Problem, text};
use serde::{Deserialize, Deserializer, de::Error};

/// A setting that names what messages mean that leave MSH-18 empty, by a name of table 0211. None:
/// UTF-8, of which ASCII is a part. For `#[serde(deserialize_with = "portway_hl7_text::setting")]`.
pub fn setting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Charset>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    match Charset::named(name.as_bytes()) {
        Charset::Unknown => Err(D::Error::custom(format!("`{name}` is no character set of table 0211"))),
        Charset::Wide => Err(D::Error::custom(format!("`{name}` cannot stand under one-byte delimiters"))),
        charset if name.is_empty() && charset == Charset::Utf8 => Ok(None),
        charset => Ok(Some(charset)),
    }
}

/// What MSH-18 means, where it is empty by the setting.
pub fn of_header(written: &Field<'_>, setting: Option<Charset>) -> Charset {
    match setting {
        Some(charset) if written.is_empty() => charset,
        _ => Charset::of_field(written),
    }
}

/// The bytes in UTF-8.
pub fn decode(bytes: &[u8], charset: Charset) -> Result<Cow<'_, [u8]>, Problem> {
    match charset {
        Charset::Utf8 => match check_utf8(bytes) {
            Ok(()) => Ok(Cow::Borrowed(bytes)),
            Err(DecodeError::Malformed(at)) => Err(malformed(at, "UTF-8")),
            Err(DecodeError::NeedsTable) => Err(unknown()),
        },
        Charset::Latin1 if bytes.is_ascii() => Ok(Cow::Borrowed(bytes)),
        Charset::Latin1 => Ok(Cow::Owned(latin1(bytes).into_bytes())),
        Charset::Named(name) => match text::decode(bytes, name) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(text::Error::Malformed(at)) => Err(malformed(at as usize, name)),
            Err(error) => Err(Problem::quarantine("charset", format!("{name}: {error}"))),
        },
        // The header was readable under one-byte delimiters, so this is not what it claims to be.
        Charset::Wide => check_utf8(bytes).map(|()| Cow::Borrowed(bytes)).map_err(|_| unknown()),
        Charset::Unknown => Err(unknown()),
    }
}

fn malformed(at: usize, charset: &str) -> Problem {
    let hint = "if the sender leaves MSH-18 empty, the setting `charset` can say what it means";
    let text = format!("byte {at} does not fit the character set {charset} of the message; {hint}");
    Problem::quarantine("malformed-text", text)
}

fn unknown() -> Problem {
    Problem::quarantine("unknown-charset", "MSH-18 names a character set that is not in table 0211")
}

#[cfg(test)]
mod tests {
    use portway_hl7::Delimiters;

    use super::*;

    #[test]
    fn the_setting_counts_where_the_header_is_silent() {
        let field = |bytes| Field::new(bytes, Delimiters::STANDARD);
        assert_eq!(of_header(&field(b""), None), Charset::Utf8);
        assert_eq!(of_header(&field(b""), Some(Charset::Latin1)), Charset::Latin1);
        assert_eq!(of_header(&field(b"UNICODE UTF-8"), Some(Charset::Latin1)), Charset::Utf8);
    }

    #[test]
    fn a_name_in_the_settings_is_of_the_table_and_one_byte_wide() {
        let read =
            |json: &str| setting(&mut serde_json::Deserializer::from_str(json)).map_err(|e| e.to_string());
        assert_eq!(read("null"), Ok(None));
        assert_eq!(read("\"\""), Ok(None));
        assert_eq!(read("\"8859/1\""), Ok(Some(Charset::Latin1)));
        assert!(read("\"klingon\"").unwrap_err().contains("is no character set"));
        assert!(read("\"UNICODE UTF-16\"").unwrap_err().contains("one-byte delimiters"));
    }

    #[test]
    fn bytes_that_do_not_fit_are_told_with_their_place() {
        assert_eq!(decode(b"M\xFCller", Charset::Latin1).unwrap().as_ref(), "Müller".as_bytes());
        let code = |charset| match decode(b"M\xFCller", charset) {
            Err(Problem::Quarantine(failure)) => failure.to_string(),
            other => format!("{other:?}"),
        };
        assert!(code(Charset::Utf8).starts_with("malformed-text: byte 1 "));
        assert!(code(Charset::Unknown).starts_with("unknown-charset: "));
        assert!(code(Charset::Named("ISO IR159")).starts_with("charset: ISO IR159"));
    }
}
