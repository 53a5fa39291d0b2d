//! Failures, and how `?` turns errors into them.
//!
//! [`Failure`] and [`Problem`] take any `std::error::Error` by `?`. That is why they do
//! not implement that trait themselves: the standard library would not allow both.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For programs: kebab-case or the peer's own code, at most 64 bytes.
    pub code: String,
    /// For people, at most 4 KiB.
    pub text: String,
}

impl Failure {
    /// Code of a failure that came from an error by `?`.
    pub const ERROR: &'static str = "error";

    /// A code and a text.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Failure { code: code.into(), text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::new(Failure::ERROR, chain(&error))
    }
}

/// A failure that may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    pub failure: Failure,
    /// Not before so many milliseconds; none: the host's own schedule.
    pub after_ms: Option<u32>,
}

impl Later {
    /// To be tried again by the host's own schedule.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Later { failure: Failure::new(code, text), after_ms: None }
    }

    /// The same, but not before some time has passed.
    pub fn not_before(mut self, wait: Duration) -> Self {
        self.after_ms = Some(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).min(i32::MAX as u32));
        self
    }
}

/// Why a whole call did nothing. No message is blamed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The other side is away: the destination waits, no attempt is used up.
    Unavailable(Later),
    /// A person must change something: the destination stops and says so.
    Misconfigured(Failure),
}

impl Trouble {
    /// The other side is away.
    pub fn unavailable(code: impl Into<String>, text: impl Into<String>) -> Self {
        Trouble::Unavailable(Later::new(code, text))
    }

    /// A person must change something.
    pub fn misconfigured(code: impl Into<String>, text: impl Into<String>) -> Self {
        Trouble::Misconfigured(Failure::new(code, text))
    }
}

/// Why one message got no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A person must look. What `?` makes of an error.
    Quarantine(Failure),
    /// It may work later.
    Retry(Later),
    /// It is not this message's fault, and would be the same with any other.
    Trouble(Trouble),
}

impl Problem {
    /// A person must look.
    pub fn quarantine(code: impl Into<String>, text: impl Into<String>) -> Self {
        Problem::Quarantine(Failure::new(code, text))
    }

    /// It may work later.
    pub fn retry(code: impl Into<String>, text: impl Into<String>) -> Self {
        Problem::Retry(Later::new(code, text))
    }
}

impl<E: Error> From<E> for Problem {
    fn from(error: E) -> Self {
        Problem::Quarantine(error.into())
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Problem::Quarantine(failure)
    }
}

impl From<Later> for Problem {
    fn from(later: Later) -> Self {
        Problem::Retry(later)
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        Problem::Trouble(trouble)
    }
}

/// Says under which code an error is reported, before `?`.
pub trait ResultExt<T> {
    /// A failure under this code.
    fn failure(self, code: &str) -> Result<T, Failure>;
    /// The message is quarantined under this code.
    fn quarantine(self, code: &str) -> Result<T, Problem>;
    /// The message is tried again later, under this code.
    fn retry(self, code: &str) -> Result<T, Problem>;
}

impl<T, E: Error> ResultExt<T> for Result<T, E> {
    fn failure(self, code: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(code, chain(&error)))
    }

    fn quarantine(self, code: &str) -> Result<T, Problem> {
        self.map_err(|error| Problem::quarantine(code, chain(&error)))
    }

    fn retry(self, code: &str) -> Result<T, Problem> {
        self.map_err(|error| Problem::retry(code, chain(&error)))
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, Problem> {
        Ok(text.parse::<u32>()?)
    }

    #[test]
    fn an_error_by_question_mark_quarantines_with_its_text() {
        let failure = Failure::new(Failure::ERROR, "invalid digit found in string");
        assert_eq!(number("x"), Err(Problem::Quarantine(failure)));
    }

    #[test]
    fn a_code_may_be_given() {
        let result = "x".parse::<u32>().retry("not-a-number");
        assert_eq!(result, Err(Problem::retry("not-a-number", "invalid digit found in string")));
    }

    #[test]
    fn a_wait_stays_below_two_to_the_31() {
        let later = Later::new("busy", "").not_before(Duration::from_secs(u64::MAX));
        assert_eq!(later.after_ms, Some(i32::MAX as u32));
    }
}
