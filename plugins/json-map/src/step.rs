//! Steps: how a value is converted. Each is given one value and says why it cannot.
//!
//! Null stays null, and a step for single values goes through the elements of an array.

use std::borrow::Cow;
use std::collections::BTreeMap;

use portway_hl7::DateTime;
use portway_json::is_number;
use serde_json::Value as Literal;

use crate::date::Reformat;
use crate::made::Made;

/// Parts that one text becomes.
const SPLIT_MAX: usize = 100_000;
/// Characters of a value that are shown.
const SHOWN_MAX: usize = 40;

/// One conversion.
#[derive(Debug)]
pub(crate) enum Step {
    Text,
    Number,
    Boolean,
    Lower,
    Upper,
    Trim,
    /// An HL7 date as ISO 8601, exactly as precise.
    Hl7Date,
    Date(Reformat),
    Split(String),
    Join(String),
    Map(ValueMap),
}

/// Values and what stands for each.
#[derive(Debug)]
pub(crate) struct ValueMap {
    pub values: BTreeMap<String, Literal>,
    pub other: Other,
}

/// What becomes of a value that is not in the list.
#[derive(Debug)]
pub(crate) enum Other {
    Quarantine,
    Keep,
    Literal(Literal),
}

impl Step {
    /// The words of steps that need nothing else.
    pub(crate) const WORDS: [&str; 7] = ["text", "number", "boolean", "lower", "upper", "trim", "hl7-date"];

    /// The step of a word.
    pub(crate) fn of_word(word: &str) -> Option<Step> {
        Some(match word {
            "text" => Step::Text,
            "number" => Step::Number,
            "boolean" => Step::Boolean,
            "lower" => Step::Lower,
            "upper" => Step::Upper,
            "trim" => Step::Trim,
            "hl7-date" => Step::Hl7Date,
            _ => return None,
        })
    }

    /// The value behind the step, or why there is none.
    pub(crate) fn apply<'m>(&'m self, value: Made<'m>) -> Result<Made<'m>, String> {
        if value.is_null() {
            return Ok(value);
        }
        match (self, value.opened()) {
            (Step::Join(with), Made::Array(elements)) => join(&elements, with),
            (Step::Join(_), value) => Err(format!("is {}, not an array that can be joined", value.kind())),
            (Step::Split(_), Made::Array(_)) => Err("is an array already, and cannot be split".into()),
            (_, Made::Array(elements)) => {
                let elements = elements.into_iter().map(|element| match element.opened() {
                    Made::Array(_) => Err("is an array in an array".into()),
                    element => self.apply(element),
                });
                elements.collect::<Result<_, _>>().map(Made::Array)
            }
            (_, value) => match value.scalar() {
                Some(text) => self.apply_to_scalar(text, value),
                None => Err(format!("is {}, not a single value", value.kind())),
            },
        }
    }

    fn apply_to_scalar<'m>(&'m self, text: Cow<'m, str>, value: Made<'m>) -> Result<Made<'m>, String> {
        match self {
            Step::Text => Ok(Made::Text(text)),
            Step::Lower => Ok(Made::Text(text.to_lowercase().into())),
            Step::Upper => Ok(Made::Text(text.to_uppercase().into())),
            Step::Trim => Ok(Made::Text(text.trim().to_owned().into())),
            Step::Number => number(&text).map(Made::Number).ok_or_else(|| "is no number".into()),
            Step::Boolean => boolean(&text).map(Made::Bool).ok_or_else(|| "is neither true nor false".into()),
            Step::Hl7Date => {
                hl7_date(&text).map(|date| Made::Text(date.into())).ok_or_else(|| "is no HL7 date".into())
            }
            Step::Date(reformat) => {
                let date = reformat.apply(text.trim());
                date.map(|date| Made::Text(date.into())).ok_or_else(|| "is no date of the form `from`".into())
            }
            Step::Split(at) => split(&text, at),
            Step::Map(map) => map.apply(&text, value),
            Step::Join(_) => Err("is not an array that can be joined".into()),
        }
    }
}

impl ValueMap {
    fn apply<'m>(&'m self, text: &str, value: Made<'m>) -> Result<Made<'m>, String> {
        match (self.values.get(text), &self.other) {
            (Some(literal), _) | (None, Other::Literal(literal)) => Ok(Made::Literal(literal)),
            (None, Other::Keep) => Ok(value),
            (None, Other::Quarantine) => {
                let shown: String = text.chars().take(SHOWN_MAX).collect();
                Err(format!("is `{shown}`, which the value map does not know"))
            }
        }
    }
}

fn join<'m>(elements: &[Made<'m>], with: &str) -> Result<Made<'m>, String> {
    let mut text = String::new();
    let present = elements.iter().filter(|element| !element.is_null());
    for (number, element) in present.enumerate() {
        let Some(part) = element.scalar() else {
            return Err(format!("has {} as an element, which cannot be joined", element.kind()));
        };
        if number > 0 {
            text.push_str(with);
        }
        text.push_str(&part);
    }
    Ok(Made::Text(text.into()))
}

fn split<'m>(text: &str, at: &str) -> Result<Made<'m>, String> {
    if text.matches(at).take(SPLIT_MAX).count() == SPLIT_MAX {
        return Err(format!("would be split into more than {SPLIT_MAX} parts"));
    }
    Ok(Made::Array(text.split(at).map(|part| Made::Text(part.to_owned().into())).collect()))
}

/// Digit by digit, without what JSON does not write: a plus sign, zeros before, no digit before the point.
fn number(text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let significant = digits.trim_start_matches('0');
    let begins_with_digit = significant.starts_with(|first: char| first.is_ascii_digit());
    let has_zero = significant.len() < digits.len();
    let zero = if !begins_with_digit && (has_zero || significant.starts_with('.')) { "0" } else { "" };
    Some(format!("{sign}{zero}{significant}")).filter(|number| is_number(number))
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "1" => Some(true),
        "false" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

fn hl7_date(text: &str) -> Option<String> {
    let mut iso = Vec::new();
    DateTime::parse(text.trim().as_bytes())?.write_iso(&mut iso);
    String::from_utf8(iso).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let cases = [
            ("1.50", Some("1.50")),
            (" +007 ", Some("7")),
            ("-.5", Some("-0.5")),
            ("000", Some("0")),
            ("00.10", Some("0.10")),
            ("12345678901234567890", Some("12345678901234567890")),
            ("1e5", Some("1e5")),
            ("", None),
            ("-", None),
            (".", None),
            ("5.", None),
            ("1,5", None),
            ("--1", None),
            ("abc", None),
            ("0x10", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_split_is_limited() {
        assert!(split(&",".repeat(SPLIT_MAX - 1), ",").is_ok());
        assert!(split(&",".repeat(SPLIT_MAX), ",").unwrap_err().contains("more than 100000 parts"));
    }
}
