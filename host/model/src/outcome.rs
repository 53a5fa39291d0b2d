//! What plugins say of messages, in the host's own words.
//!
//! The same facts as the WIT types of `portway:plugin`, so that engine and runtime
//! speak of them without knowing each other.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Attributes, Key};

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For programs: kebab-case or a peer's own code, at most 64 bytes.
    pub code: String,
    /// For people, at most 4 KiB.
    pub text: String,
}

impl Failure {
    /// Bytes in a code.
    pub const CODE_BYTES_MAX: usize = 64;
    /// Bytes in a text.
    pub const TEXT_BYTES_MAX: usize = 4096;

    /// Cuts both texts to their limits at a character's edge.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        let (mut code, mut text) = (code.into(), text.into());
        cut(&mut code, Self::CODE_BYTES_MAX);
        cut(&mut text, Self::TEXT_BYTES_MAX);
        Failure { code, text }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
    }
}

/// A failure that may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    pub failure: Failure,
    /// Not before so many milliseconds; none: the host's own schedule.
    pub after_ms: Option<u32>,
}

/// Why a whole call did nothing. No message is blamed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The other side is away: the destination waits, no attempt is used up.
    Unavailable(Later),
    /// A person must change something: the destination stops and says so.
    Misconfigured(Failure),
}

/// What a peer said to a message that arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub code: String,
    pub text: String,
}

/// What a transform makes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// None keeps the message's key.
    pub key: Option<Key>,
    /// Laid over the message's own.
    pub attributes: Attributes,
    pub body: Bytes,
}

/// What a transform says of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransformVerdict {
    /// On, unchanged.
    Pass,
    Deliver(Vec<Output>),
    /// Not for this destination, and why.
    Filter(String),
    Quarantine(Failure),
    Retry(Later),
}

/// What a sender says of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendVerdict {
    Sent(Answer),
    /// Not tried: an earlier one of the lane failed, or time ran out.
    Untried,
    Retry(Later),
    Quarantine(Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_failure_is_cut_at_a_character() {
        let failure = Failure::new("c".repeat(99), "é".repeat(4000));
        assert_eq!(failure.code.len(), Failure::CODE_BYTES_MAX);
        assert_eq!(failure.text.len(), Failure::TEXT_BYTES_MAX);
    }
}
