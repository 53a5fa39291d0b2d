//! What became of a message that a source handed over.

use std::time::Duration;

use portway_model::{MessageId, code};

/// The answer to one draft, after its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// `conflict`: an earlier message with the same dedupe key and another body.
    Stored {
        id: MessageId,
        conflict: Option<MessageId>,
    },
    Duplicate {
        id: MessageId,
        of: MessageId,
    },
    /// Of a cursor: it is stored, together with the messages before it.
    Kept,
    /// `code` is one of [`portway_model::code`]; `after_ms`: worth trying again after so long.
    NotStored {
        code: &'static str,
        text: String,
        after_ms: Option<u32>,
    },
}

impl Fate {
    pub(crate) fn busy(text: impl Into<String>, after: Duration) -> Fate {
        let after_ms = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
        Fate::NotStored { code: code::BUSY, text: text.into(), after_ms: Some(after_ms) }
    }

    pub(crate) fn full(text: impl Into<String>) -> Fate {
        Fate::NotStored { code: code::FULL, text: text.into(), after_ms: Some(10_000) }
    }

    pub(crate) fn too_large(text: impl Into<String>) -> Fate {
        Fate::NotStored { code: code::TOO_LARGE, text: text.into(), after_ms: None }
    }

    pub(crate) fn stopped() -> Fate {
        Fate::NotStored { code: code::STOPPED, text: "the engine stops".into(), after_ms: Some(5_000) }
    }

    pub(crate) fn draining(text: impl Into<String>) -> Fate {
        Fate::NotStored { code: code::DRAINING, text: text.into(), after_ms: Some(5_000) }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Fate {
        Fate::NotStored { code: code::INVALID, text: text.into(), after_ms: None }
    }
}
