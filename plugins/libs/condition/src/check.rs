//! What is asked of one value.

use std::collections::BTreeSet;
use std::fmt;

use regex_lite::{Regex, RegexBuilder};

use crate::{
    Case, ReadError, Scalar,
    value::{Value, folded, number},
};

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a value that a pattern is matched with: the time it takes grows with both.
pub(crate) const MATCH_BYTES_MAX: usize = 64 * 1024;

/// One question about one value.
#[derive(Debug)]
pub(crate) enum Check {
    IsOneOf(Scalars),
    BeginsWith { text: String, case: Case },
    Contains { text: String, case: Case },
    Matches(Regex),
    Greater(f64),
    Less(f64),
    AtLeast(f64),
    AtMost(f64),
}

impl Check {
    pub(crate) fn begins_with(text: &str, case: Case) -> Check {
        Check::BeginsWith { text: folded(text, case).into_owned(), case }
    }

    pub(crate) fn contains(text: &str, case: Case) -> Check {
        Check::Contains { text: folded(text, case).into_owned(), case }
    }

    pub(crate) fn matches(pattern: &str, case: Case) -> Result<Check, regex_lite::Error> {
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(PATTERN_BYTES_MAX).case_insensitive(case == Case::Ignore);
        builder.build().map(Check::Matches)
    }

    pub(crate) fn holds(&self, value: &Value) -> Result<bool, ReadError> {
        let Some(text) = value.text() else { return Ok(false) };
        let is_number =
            |holds: fn(f64, f64) -> bool, than: &f64| number(text).is_some_and(|number| holds(number, *than));
        Ok(match self {
            Check::IsOneOf(scalars) => scalars.contain(text),
            Check::BeginsWith { text: start, case } => folded(text, *case).starts_with(start.as_str()),
            Check::Contains { text: part, case } => folded(text, *case).contains(part.as_str()),
            Check::Matches(_) if text.len() > MATCH_BYTES_MAX => {
                return Err(ReadError::unreadable(format!(
                    "a value of {} bytes is too long to be matched with a pattern, which takes {MATCH_BYTES_MAX}",
                    text.len()
                )));
            }
            Check::Matches(pattern) => pattern.is_match(text),
            Check::Greater(than) => is_number(|a, b| a > b, than),
            Check::Less(than) => is_number(|a, b| a < b, than),
            Check::AtLeast(than) => is_number(|a, b| a >= b, than),
            Check::AtMost(than) => is_number(|a, b| a <= b, than),
        })
    }
}

/// Values to compare with.
#[derive(Debug)]
pub(crate) struct Scalars {
    texts: BTreeSet<String>,
    numbers: Vec<f64>,
    case: Case,
    said: String,
}

impl Scalars {
    pub(crate) fn new(scalars: &[Scalar], case: Case) -> Scalars {
        let mut texts = BTreeSet::new();
        let mut numbers = Vec::new();
        for scalar in scalars {
            match scalar {
                Scalar::Text(text) => _ = texts.insert(folded(text, case).into_owned()),
                Scalar::Truth(truth) => _ = texts.insert(truth.to_string()),
                Scalar::Number(number) => numbers.push(*number),
            }
        }
        let said: Vec<String> = scalars.iter().take(10).map(Scalar::to_string).collect();
        let more = if scalars.len() > 10 { ", …" } else { "" };
        let one_of = if scalars.len() > 1 { "one of " } else { "" };
        Scalars { texts, numbers, case, said: format!("{one_of}{}{more}", said.join(", ")) }
    }

    pub(crate) fn contain(&self, text: &str) -> bool {
        self.texts.contains(folded(text, self.case).as_ref())
            || (!self.numbers.is_empty() && number(text).is_some_and(|number| self.numbers.contains(&number)))
    }
}

impl fmt::Display for Scalars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::IsOneOf(scalars) => write!(f, "is {scalars}"),
            Check::BeginsWith { text, .. } => write!(f, "begins with `{text}`"),
            Check::Contains { text, .. } => write!(f, "contains `{text}`"),
            Check::Matches(pattern) => write!(f, "matches `{}`", pattern.as_str()),
            Check::Greater(than) => write!(f, "is greater than {than}"),
            Check::Less(than) => write!(f, "is less than {than}"),
            Check::AtLeast(than) => write!(f, "is at least {than}"),
            Check::AtMost(than) => write!(f, "is at most {than}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(check: &Check, text: &str) -> bool {
        check.holds(&Value::Text(text.into())).unwrap()
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_texts_as_texts() {
        let scalars = [Scalar::Number(5.0), Scalar::Text("x".into()), Scalar::Truth(true)];
        let check = Check::IsOneOf(Scalars::new(&scalars, Case::Sensitive));
        assert_eq!(["5", "5.0", "x", "true"].map(|text| holds(&check, text)), [true; 4]);
        assert_eq!(["X", "6", "", "false"].map(|text| holds(&check, text)), [false; 4]);
        let as_text = Check::IsOneOf(Scalars::new(&[Scalar::Text("5".into())], Case::Sensitive));
        assert!(holds(&as_text, "5") && !holds(&as_text, "5.0"));
    }

    #[test]
    fn case_is_ignored_where_that_is_wanted_beyond_ascii_too() {
        let scalars = Scalars::new(&[Scalar::Text("MÜLLER".into())], Case::Ignore);
        assert!(scalars.contain("Müller"));
        assert!(holds(&Check::begins_with("mü", Case::Ignore), "MÜLLER"));
        assert!(!holds(&Check::begins_with("mü", Case::Sensitive), "MÜLLER"));
        assert!(holds(&Check::matches("^adt", Case::Ignore).unwrap(), "ADT^A01"));
    }

    #[test]
    fn a_value_that_is_too_long_for_a_pattern_is_said() {
        let check = Check::matches("b$", Case::Sensitive).unwrap();
        assert!(holds(&check, &("a".repeat(MATCH_BYTES_MAX - 1) + "b")));
        let error = check.holds(&Value::Text("a".repeat(MATCH_BYTES_MAX) + "b")).unwrap_err();
        assert!(matches!(error, ReadError::Unreadable(text) if text.contains("too long to be matched")));
    }

    #[test]
    fn a_pattern_that_is_too_large_or_none_is_refused() {
        assert!(Check::matches("(", Case::Sensitive).is_err());
        assert!(Check::matches("(a{1000}){1000}", Case::Sensitive).is_err());
    }
}
