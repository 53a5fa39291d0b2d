//! Character sets, by WHATWG or HL7 table 0211 name.

use crate::host;

/// Why bytes or text could not be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    UnknownCharset,
    /// Where the first byte or character stands that does not fit.
    Malformed(u32),
    Other(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::UnknownCharset => f.write_str("the character set is not known"),
            Error::Malformed(at) => write!(f, "byte {at} does not fit the character set"),
            Error::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// Bytes to text, strictly. UTF-8 and ASCII are decoded here, without asking the host.
pub fn decode(bytes: &[u8], charset: &str) -> Result<String, Error> {
    if is_utf8(charset) {
        return match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(Error::Malformed(u32::try_from(error.valid_up_to()).unwrap_or(u32::MAX))),
        };
    }
    host::text_decode(bytes, charset)
}

/// Text to bytes, strictly.
pub fn encode(text: &str, charset: &str) -> Result<Vec<u8>, Error> {
    if is_utf8(charset) {
        return Ok(text.as_bytes().to_vec());
    }
    host::text_encode(text, charset)
}

fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "unicode utf-8"].iter().any(|name| charset.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natively_three_character_sets_are_known() {
        assert_eq!(decode("ü".as_bytes(), "UNICODE UTF-8").unwrap(), "ü");
        assert_eq!(decode(b"\xFC", "8859/1").unwrap(), "ü");
        assert_eq!(decode(b"a\xFC", "ASCII"), Err(Error::Malformed(1)));
        assert_eq!(decode(b"a\xFC", "utf-8"), Err(Error::Malformed(1)));
        assert_eq!(encode("ü", "iso-8859-1").unwrap(), b"\xFC");
        assert_eq!(decode(b"a", "klingon"), Err(Error::UnknownCharset));
    }
}
