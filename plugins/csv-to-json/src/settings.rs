//! What an operator can set.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The settings of one destination's transform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Between fields.
    #[serde(deserialize_with = "delimiter")]
    pub delimiter: u8,
    /// Around fields; none: there is no such character.
    #[serde(deserialize_with = "quote")]
    pub quote: Option<u8>,
    pub header: Header,
    pub shape: Shape,
    pub types: Types,
    /// Takes blanks around fields and names away.
    pub trim: bool,
    pub empty: Empty,
    pub ragged: Ragged,
    /// Empty: UTF-8.
    pub charset: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            delimiter: b',',
            quote: Some(b'"'),
            header: Header::FirstLine,
            shape: Shape::Auto,
            types: Types::Text,
            trim: false,
            empty: Empty::Text,
            ragged: Ragged::Quarantine,
            charset: String::new(),
        }
    }
}

impl Settings {
    /// Without the blanks around it, where they are not wanted.
    pub(crate) fn trimmed<'t>(&self, text: &'t str) -> &'t str {
        if self.trim { text.trim() } else { text }
    }

    /// The same of bytes that are UTF-8.
    pub(crate) fn trimmed_bytes<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let begins_and_ends_in_ink =
            text.first().is_none_or(u8::is_ascii_graphic) && text.last().is_none_or(u8::is_ascii_graphic);
        if !self.trim || begins_and_ends_in_ink {
            return text;
        }
        std::str::from_utf8(text).unwrap_or_default().trim().as_bytes()
    }
}

/// Where the names of the columns come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// Of each message.
    FirstLine,
    /// No message has a line with names.
    Names(Vec<String>),
}

/// What the document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// An object for one record, else an array.
    Auto,
    /// The only record.
    Object,
    /// All records.
    Array,
}

/// What fields become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Types {
    Text,
    /// Numbers and booleans where nothing is lost.
    Infer,
}

/// What an empty field becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Empty {
    /// `""`
    Text,
    /// `null`
    Null,
}

/// What becomes of a record with another number of fields than there are columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ragged {
    /// A person looks at it.
    Quarantine,
    /// Missing fields are empty; empty ones that are too many are left out.
    Pad,
}

fn delimiter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "tab" { Ok(b'\t') } else { one_character(&text) }
}

fn quote<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Ok(None) } else { one_character(&text).map(Some) }
}

fn one_character<E: Error>(text: &str) -> Result<u8, E> {
    match text.as_bytes() {
        [byte @ (b'\t' | b' '..=b'~')] if !byte.is_ascii_alphanumeric() => Ok(*byte),
        _ => Err(E::custom(format!("`{text}` is not one ASCII character that is no letter and no digit"))),
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Header, D::Error> {
        deserializer.deserialize_any(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`first-line` or a list of names")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Header, E> {
        if text == "first-line" {
            Ok(Header::FirstLine)
        } else {
            Err(E::custom(format!("`{text}` is neither `first-line` nor a list of names")))
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Header, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = seq.next_element()? {
            names.push(name);
        }
        Ok(Header::Names(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Settings, String> {
        portway_sdk::parse_settings(json).map_err(|failure| failure.text)
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        assert_eq!(read("{}"), Ok(Settings::default()));
        let names = Header::Names(vec!["a".into(), "b".into()]);
        let expected = Settings {
            delimiter: b'\t',
            quote: None,
            header: names,
            shape: Shape::Array,
            ..Settings::default()
        };
        assert_eq!(
            read(r#"{"delimiter":"tab","quote":"","header":["a","b"],"shape":"array"}"#),
            Ok(expected)
        );
        assert_eq!(read(r#"{"delimiter":"\t"}"#).unwrap().delimiter, b'\t');
        assert_eq!(read(r#"{"delimiter":"|","header":"first-line"}"#).unwrap().delimiter, b'|');
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let cases = [
            (r#"{"delimiter":";;"}"#, "setting `delimiter`: `;;` is not one ASCII character"),
            (r#"{"delimiter":"é"}"#, "setting `delimiter`: `é` is not one"),
            (r#"{"delimiter":"\n"}"#, "setting `delimiter`: "),
            (r#"{"quote":"a"}"#, "setting `quote`: `a` is not one"),
            (r#"{"header":"none"}"#, "setting `header`: `none` is neither"),
            (r#"{"header":[1]}"#, "setting `header[0]`: invalid type"),
            (r#"{"shape":"list"}"#, "setting `shape`: unknown variant"),
            (r#"{"delimitr":","}"#, "setting `delimitr`: unknown field"),
        ];
        for (json, expected) in cases {
            let text = read(json).unwrap_err();
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
