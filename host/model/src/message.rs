//! Messages on their way in (drafts) and out (envelopes).

use std::sync::Arc;

use bytes::Bytes;

use crate::{AttemptNo, Attributes, Failure, MessageId, Timestamp};

/// What a lane or a duplicate is recognised by: 1 to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Bytes in a key.
    pub const BYTES_MAX: usize = 256;

    /// None if the text is empty or too long.
    pub fn new(text: &str) -> Option<Key> {
        let fits = !text.is_empty() && text.len() <= Key::BYTES_MAX;
        fits.then(|| Key(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message as a source handed it over, before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub body: Bytes,
    /// Decides the lane.
    pub key: Option<Key>,
    /// Names the message for duplicate detection.
    pub dedupe: Option<Key>,
    /// When it happened, where the message says so.
    pub occurred_at: Option<Timestamp>,
    pub attributes: Attributes,
    /// Store it and quarantine it at once.
    pub doubt: Option<Failure>,
}

/// A stored message on its way to one destination. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub id: MessageId,
    pub received_at: Timestamp,
    /// The attempt this is; the first is 1.
    pub attempt: AttemptNo,
    pub key: Option<Key>,
    pub attributes: Arc<Attributes>,
    pub body: Bytes,
}
