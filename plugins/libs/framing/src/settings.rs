//! Framing as it is written in settings: a table with a `type`.

use portway_sdk::Failure;
use serde::Deserialize;

use crate::{Delimiters, Framing, Length, Pattern, SEQUENCE_BYTES_MAX, Sequence};

/// How messages are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FramingSettings {
    /// Sequences of bytes before a message, behind it, or both.
    Delimiters { start: Option<Sequence>, end: Option<Sequence> },
    /// The length in binary before a message.
    Length {
        bytes: usize,
        #[serde(default)]
        order: Order,
        #[serde(default)]
        counts_itself: bool,
    },
    /// The length in ASCII digits before a message.
    Digits {
        digits: usize,
        #[serde(default)]
        counts_itself: bool,
    },
    /// A message is a line.
    Line {
        #[serde(default)]
        end: LineEnd,
        #[serde(default)]
        keep_end: bool,
    },
}

/// Which byte of a binary length comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The highest.
    #[default]
    Big,
    /// The lowest.
    Little,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineEnd {
    #[default]
    Lf,
    Crlf,
}

impl FramingSettings {
    /// The framing, or a sentence why it is none.
    pub fn framing(&self) -> Result<Framing, Failure> {
        let framing = match self {
            FramingSettings::Delimiters { start, end } => delimited(start.as_ref(), end.as_ref()),
            FramingSettings::Length { bytes, order, counts_itself } => {
                Length::binary(*bytes, *order, *counts_itself).map(Framing::Counted)
            }
            FramingSettings::Digits { digits, counts_itself } => {
                Length::digits(*digits, *counts_itself).map(Framing::Counted)
            }
            FramingSettings::Line { end, keep_end } => {
                let end: &[u8] = if *end == LineEnd::Lf { b"\n" } else { b"\r\n" };
                Delimiters::new(None, Pattern::new(end), *keep_end).map(Framing::Delimited)
            }
        };
        framing.map_err(|why| Failure::new("bad-settings", format!("setting `framing`: {why}")))
    }
}

fn delimited(start: Option<&Sequence>, end: Option<&Sequence>) -> Result<Framing, String> {
    let pattern = |sequence: Option<&Sequence>, name: &str| {
        // An empty text is no sequence, so that a project can switch one off.
        let Some(sequence) = sequence.filter(|sequence| !sequence.0.is_empty()) else { return Ok(None) };
        let too_long =
            || format!("`{name}` has {} bytes; {SEQUENCE_BYTES_MAX} is the most", sequence.0.len());
        Pattern::new(&sequence.0).map(Some).ok_or_else(too_long)
    };
    Delimiters::new(pattern(start, "start")?, pattern(end, "end")?, false).map(Framing::Delimited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Framing, String> {
        let settings =
            portway_sdk::parse_settings::<FramingSettings>(json).map_err(|failure| failure.text)?;
        settings.framing().map_err(|failure| failure.text)
    }

    #[test]
    fn every_framing_is_read() {
        for json in [
            r#"{"type":"delimiters","start":"\\x02","end":"\\x03\\r"}"#,
            r#"{"type":"delimiters","end":";"}"#,
            r#"{"type":"delimiters","start":"\\x02","end":""}"#,
            r#"{"type":"length","bytes":4,"order":"little","counts_itself":true}"#,
            r#"{"type":"length","bytes":8}"#,
            r#"{"type":"digits","digits":6}"#,
            r#"{"type":"line","end":"crlf","keep_end":true}"#,
            r#"{"type":"line"}"#,
        ] {
            assert!(read(json).is_ok(), "{json}: {:?}", read(json));
        }
    }

    #[test]
    fn what_is_no_framing_is_said() {
        let table = [
            ("{}", "missing field `type`"),
            (r#"{"type":"lines"}"#, "unknown variant `lines`"),
            (r#"{"type":"line","start":"a"}"#, "unknown field `start`"),
            (r#"{"type":"length","bytes":3}"#, "1, 2, 4 or 8 bytes, not 3"),
            (r#"{"type":"digits","digits":0}"#, "1 to 18 digits, not 0"),
            (r#"{"type":"delimiters"}"#, "`start`, `end` or both"),
            (r#"{"type":"delimiters","end":"\\q"}"#, "has an escape that is none of"),
            (r#"{"type":"delimiters","start":"ab","end":"b"}"#, "none may be a part of the other"),
            (r#"{"type":"delimiters","start":"a","end":"a"}"#, "none may be a part of the other"),
            (r#"{"type":"delimiters","end":"12345678901234567"}"#, "`end` has 17 bytes; 16 is the most"),
        ];
        for (json, expected) in table {
            let text = read(json).unwrap_err();
            assert!(text.contains(expected), "{json}: {text}");
        }
    }
}
