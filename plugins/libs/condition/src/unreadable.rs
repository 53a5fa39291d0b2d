//! A body that cannot be read, and what becomes of its message.

use portway_sdk::{Failure, Later, Problem, TransformVerdict};
use serde::Deserialize;

/// Why there are no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The body is not what the settings say.
    Unreadable(String),
    /// The host did not give it; it may another time.
    Host(String),
}

impl ReadError {
    pub(crate) fn unreadable(text: impl Into<String>) -> ReadError {
        ReadError::Unreadable(text.into())
    }
}

/// What becomes of a message whose body cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unreadable {
    /// A person looks at it.
    #[default]
    Quarantine,
    /// It is not for this destination.
    Filter,
    /// It goes on as it is.
    Pass,
}

impl Unreadable {
    /// What follows from an error. What the host could not give is tried again.
    pub fn verdict(self, error: ReadError) -> Result<TransformVerdict, Problem> {
        let text = match error {
            ReadError::Host(text) => return Err(Later::new("blobs", text).into()),
            ReadError::Unreadable(text) => text,
        };
        Ok(match self {
            Unreadable::Quarantine => TransformVerdict::Quarantine(Failure::new("body-unreadable", text)),
            Unreadable::Filter => TransformVerdict::filter(text),
            Unreadable::Pass => TransformVerdict::Pass,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_fails_is_never_the_messages_fault() {
        for unreadable in [Unreadable::Quarantine, Unreadable::Filter, Unreadable::Pass] {
            let verdict = unreadable.verdict(ReadError::Host("gone".into()));
            assert_eq!(verdict.unwrap_err(), Problem::retry("blobs", "gone"));
        }
    }
}
