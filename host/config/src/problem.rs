//! What is wrong with a project, and what to do about it.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::Place;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub place: Place,
    /// A lower-case fragment with values in backticks.
    pub text: String,
    /// What to do, as a sentence without its full stop.
    pub hint: Option<String>,
    /// Which kind of problem it is; the code has a page.
    pub code: &'static str,
    pub weight: Weight,
}

/// Whether a project with it can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    #[default]
    Problem,
    /// It runs, and a person should know.
    Warning,
}

impl Problem {
    /// `code` is one of [`portway_model::code`].
    pub fn new(place: Place, code: &'static str, text: impl Into<String>) -> Self {
        Problem { place, text: visible(text.into()), hint: None, code, weight: Weight::Problem }
    }

    /// The same, with which a project runs all the same.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.weight = Weight::Warning;
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(visible(hint.into()));
        self
    }
}

/// Keys and values of a file stand in problems: their control characters must not reach a terminal.
fn visible(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let escape = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(escape).collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut problem = serializer.serialize_struct("Problem", 6)?;
        problem.serialize_field("file", &*self.place.file)?;
        problem.serialize_field("line", &self.place.line)?;
        problem.serialize_field("column", &self.place.column)?;
        problem.serialize_field("code", self.code)?;
        problem.serialize_field("text", &self.text)?;
        problem.serialize_field("hint", &self.hint)?;
        problem.end()
    }
}

/// Everything that is wrong with a project, by file, line and column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Problems that are kept; what is beyond is noise.
    pub const MAX: usize = 1_000;

    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        problems.truncate(Problems::MAX);
        Problems(problems)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Which kinds of problems there are, each once.
    pub fn codes(&self) -> Vec<&'static str> {
        let codes: BTreeSet<&'static str> = self.0.iter().map(|problem| problem.code).collect();
        codes.into_iter().collect()
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The known word nearest to a mistyped one, if one is near enough to be meant.
pub fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // Distance is quadratic in length; nobody mistypes a word this long.
    if written.len() > 64 {
        return None;
    }
    let allowed = (written.chars().count() / 3).clamp(1, 3);
    let distances = known.into_iter().map(|word| (strsim::damerau_levenshtein(written, word), word));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, word)| word)
}

/// The hint for a word that is not known.
pub(crate) fn suggest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(written, known.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if known.is_empty() => "none are known here".to_owned(),
        None => format!(
            "known are {}",
            known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_control_characters_escaped() {
        let problem = Problem::new(Place::of_file("a.toml"), "bad-value", "`X-\0\u{1b}`: é").hint("not \r");
        assert_eq!(problem.to_string(), "a.toml: `X-\\u{0}\\u{1b}`: é\n  hint: not \\r");
    }

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        let known = ["destination", "durability", "source"];
        assert_eq!(nearest("destinaton", known), Some("destination"));
        assert_eq!(nearest("soruce", known), Some("source"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(5_000), known), None);
    }
}
