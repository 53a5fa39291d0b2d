//! What an operator can set.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The settings of one destination's transform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub columns: Vec<ColumnConfig>,
    /// The path to the records; empty: the document itself.
    #[serde(default)]
    pub records: String,
    /// A line with the names of the columns comes first.
    #[serde(default = "yes")]
    pub header: bool,
    /// Between fields.
    #[serde(default = "comma", deserialize_with = "delimiter")]
    pub delimiter: u8,
    #[serde(default)]
    pub quotes: Quotes,
    #[serde(default)]
    pub line_end: LineEnd,
    /// Written where a record has no such value.
    #[serde(default)]
    pub missing: String,
    /// Written for `null`.
    #[serde(default)]
    pub null: String,
    #[serde(default)]
    pub nested: Nested,
    /// Puts `'` before a text that a spreadsheet would calculate.
    #[serde(default)]
    pub guard_formulas: bool,
}

/// A column as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnConfig {
    pub name: String,
    /// None: the member that is called like the column.
    pub path: Option<String>,
    /// A message without the value is quarantined.
    #[serde(default)]
    pub required: bool,
}

/// Which fields stand in quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quotes {
    /// Those that would be read otherwise.
    #[default]
    Needed,
    /// Those that do not read as a number.
    NotNumbers,
    Always,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineEnd {
    #[default]
    Crlf,
    Lf,
}

/// What becomes of objects and arrays in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nested {
    /// Their JSON text is the field.
    #[default]
    Json,
    Quarantine,
}

fn yes() -> bool {
    true
}

fn comma() -> u8 {
    b','
}

fn delimiter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_bytes() {
        b"tab" => Ok(b'\t'),
        [b'"'] => Err(D::Error::custom("a quote stands around fields, not between them")),
        [byte @ (b'\t' | b' '..=b'~')] if !byte.is_ascii_alphanumeric() => Ok(*byte),
        _ => {
            let text = format!("`{text}` is not one ASCII character that is no letter and no digit");
            Err(D::Error::custom(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let read = |json: &str| portway_sdk::parse_settings::<Settings>(json).map_err(|failure| failure.text);
        assert!(
            read(r#"{"columns":[{"name":"a"}],"delimiter":"tab"}"#).is_ok_and(|read| read.delimiter == b'\t')
        );
        let cases = [
            ("{}", "missing field `columns`"),
            (r#"{"columns":["a"]}"#, "setting `columns[0]`: invalid type"),
            (r#"{"columns":[{"name":"a","from":"b"}]}"#, "setting `columns[0].from`: unknown field"),
            (r#"{"columns":[],"delimiter":"\""}"#, "setting `delimiter`: a quote stands around"),
            (r#"{"columns":[],"delimiter":"ab"}"#, "setting `delimiter`: `ab` is not one"),
        ];
        for (json, expected) in cases {
            let text = read(json).unwrap_err();
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
