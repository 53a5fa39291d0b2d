//! Judging settings: every problem is said with its place, so that all can be corrected at once.

use portway_sdk::Failure;
use serde_json::{Map, Value as Literal};

/// Problems that are told; whoever has more corrects these first.
const TOLD_MAX: usize = 20;
/// A word that differs in more letters is another word.
const DISTANCE_MAX: usize = 2;

/// Collects what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    problems: Vec<String>,
}

impl Judge {
    /// Something is wrong at a place.
    pub(crate) fn say(&mut self, place: &str, what: impl AsRef<str>) {
        let place = if place.is_empty() { String::new() } else { format!("setting `{place}`: ") };
        self.problems.push(format!("{place}{}", what.as_ref()));
    }

    /// All that is wrong.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let more = self.problems.len().saturating_sub(TOLD_MAX);
        let mut told: Vec<String> = self.problems.into_iter().take(TOLD_MAX).collect();
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        Err(Failure::new("bad-settings", told.join("; ")))
    }

    /// Says which keys are not among those that are known, and what may have been meant.
    pub(crate) fn keys(&mut self, place: &str, table: &Map<String, Literal>, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            let hint = suggestion(key, known);
            self.say(&inside(place, key), format!("there is no such key; {hint}"));
        }
    }

    /// One of a few words; none: it is not, which has been said.
    pub(crate) fn word<T: Copy>(&mut self, place: &str, value: &Literal, words: &[(&str, T)]) -> Option<T> {
        let found = value.as_str().and_then(|written| words.iter().find(|(word, _)| *word == written));
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let hint = suggestion(value.as_str().unwrap_or_default(), &known);
            self.say(place, format!("{value} is not known here; {hint}"));
        }
        found.map(|(_, meant)| *meant)
    }

    /// A text; none: it is not, which has been said.
    pub(crate) fn text<'s>(&mut self, place: &str, value: &'s Literal) -> Option<&'s str> {
        if !value.is_string() {
            self.say(place, format!("{value} is not a text"));
        }
        value.as_str()
    }

    /// A value that has a reader of its own; none: it has not, which has been said.
    pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        place: &str,
        value: &Literal,
    ) -> Option<T> {
        match self.text(place, value)?.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.say(place, error.to_string());
                None
            }
        }
    }
}

/// What may have been meant, or else all there is.
fn suggestion(written: &str, known: &[&str]) -> String {
    let distances = known.iter().map(|word| (strsim::damerau_levenshtein(written, word), word));
    match distances.min().filter(|(distance, word)| *distance <= DISTANCE_MAX && *distance < word.len()) {
        Some((_, word)) => format!("did you mean `{word}`?"),
        None => format!("known are `{}`", known.join("`, `")),
    }
}

/// The place of a member.
pub(crate) fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}
