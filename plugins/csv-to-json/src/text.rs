//! The text of a message: its character set, and what no CSV holds.

use std::borrow::Cow;

use portway_sdk::{Failure, Problem, text};
use portway_search::find_byte;

const UTF_8: &str = "UTF-8";

/// The character set of a destination's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Charset {
    name: String,
    is_utf8: bool,
}

impl Charset {
    /// By its name; empty: UTF-8.
    pub(crate) fn named(name: &str) -> Result<Charset, Failure> {
        let is_utf8 = name.is_empty() || ["utf-8", "utf8"].iter().any(|utf8| name.eq_ignore_ascii_case(utf8));
        if is_utf8 {
            return Ok(Charset { name: UTF_8.into(), is_utf8 });
        }
        match text::decode(b"", name) {
            Ok(_) => Ok(Charset { name: name.to_owned(), is_utf8 }),
            Err(error) => Err(Failure::new("bad-settings", format!("setting `charset`: `{name}`: {error}"))),
        }
    }

    /// The text without its byte order mark. A zero in it means that the bytes are no text, or of a
    /// character set with two bytes for each character.
    pub(crate) fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, Problem> {
        let text = if self.is_utf8 {
            Cow::Borrowed(std::str::from_utf8(bytes).map_err(|error| self.malformed(error.valid_up_to()))?)
        } else {
            Cow::Owned(text::decode(bytes, &self.name).map_err(|error| self.problem(&error))?)
        };
        if let Some(at) = find_byte(text.as_bytes(), 0) {
            let line = line_of(text.as_bytes(), at);
            let hint = "if the messages are in UTF-16, the setting `charset` can say so";
            let sentence = format!("there is a zero in line {line}, which is no character of a text; {hint}");
            return Err(Problem::quarantine("malformed-text", sentence));
        }
        Ok(match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
            Cow::Owned(text) if text.starts_with('\u{FEFF}') => Cow::Owned(text.chars().skip(1).collect()),
            Cow::Owned(text) => Cow::Owned(text),
        })
    }

    fn problem(&self, error: &text::Error) -> Problem {
        match error {
            text::Error::Malformed(at) => self.malformed(*at as usize),
            text::Error::UnknownCharset | text::Error::Other(_) => {
                Problem::quarantine("charset", format!("{}: {error}", self.name))
            }
        }
    }

    fn malformed(&self, at: usize) -> Problem {
        let hint = "the setting `charset` says which one the messages are in";
        let sentence = format!("byte {at} does not fit the character set {}; {hint}", self.name);
        Problem::quarantine("malformed-text", sentence)
    }
}

/// In which line a byte stands, however lines end.
pub(crate) fn line_of(text: &[u8], at: usize) -> usize {
    let ends = text.iter().take(at).zip(text.iter().skip(1).chain([&0]));
    1 + ends.filter(|(byte, next)| **byte == b'\n' || (**byte == b'\r' && **next != b'\n')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_however_they_end() {
        for text in ["a\nb\nc", "a\rb\rc", "a\r\nb\r\nc", "\n\rc", "\r\n\r\nc"] {
            assert_eq!(line_of(text.as_bytes(), text.len() - 1), 3, "{text:?}");
        }
        assert_eq!(line_of(b"", 0), 1);
    }
}
