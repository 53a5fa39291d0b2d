//! What all kinds of sources share: items, and what became of them.

use crate::blobs::Blob;
use crate::{Attributes, Failure, Later};

/// Bytes of the connection's input, counted from its start, or of the request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub len: u32,
}

/// The bytes of a message.
#[derive(Debug)]
pub enum Content {
    /// Cut out of the input, in this order.
    Spans(Vec<Span>),
    /// Bytes the plugin decoded or made.
    Inline(Vec<u8>),
    /// A part of a file, or what a blob writer wrote.
    Blob(Blob),
}

/// A message as a source hands it over.
#[derive(Debug)]
pub struct Draft {
    pub content: Content,
    /// Decides the lane, at most 256 bytes.
    pub key: Option<String>,
    /// Names the message for duplicate detection, at most 256 bytes.
    pub dedupe: Option<String>,
    /// When it happened, where the message says so, in milliseconds since 1970.
    pub occurred_ms: Option<u64>,
    pub attributes: Attributes,
    /// Store it and quarantine it at once: kept, never delivered by itself.
    pub doubt: Option<Failure>,
    /// Comes back in the receipt unchanged, at most 4 KiB. All that the answer needs
    /// belongs here, since another instance may give the answer.
    pub ticket: Vec<u8>,
}

impl Draft {
    /// A message of one span and nothing else known of it.
    pub fn of_span(start: u64, len: u32, ticket: Vec<u8>) -> Self {
        Draft::new(Content::Spans(vec![Span { start, len }]), ticket)
    }

    /// A message of which nothing else is known.
    pub fn new(content: Content, ticket: Vec<u8>) -> Self {
        Draft {
            content,
            key: None,
            dedupe: None,
            occurred_ms: None,
            attributes: Attributes::new(),
            doubt: None,
            ticket,
        }
    }
}

/// Input that became no message. Counted and shown with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub failure: Failure,
    /// As in a draft.
    pub ticket: Vec<u8>,
}

/// What a source found.
#[derive(Debug)]
pub enum Item {
    Message(Draft),
    Refused(Refusal),
    /// A part of the protocol that carries no message but wants an answer; its ticket.
    /// Only where the manifest says `control = true`.
    Control(Vec<u8>),
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Stored; the message's id.
    Stored(u64),
    /// The id of the message it repeats.
    Duplicate(u64),
    /// Codes `busy`, `full`, `too-large`, `stopped`, `invalid`.
    NotStored(Later),
    /// It was a refusal or a control item.
    Noted,
}

/// The answer to one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub fate: Fate,
    pub ticket: Vec<u8>,
}
