//! What is read from a store: pages for the dispatcher, views for people.

use std::sync::Arc;

use bytes::Bytes;
use portway_model::{
    AttemptNo, Attributes, DeliveryState, DestinationId, InterfaceId, Key, Lane, MessageId, MessageStatus,
    Round, Term, Timestamp,
};
use serde::Serialize;

/// A pending delivery, without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub message: MessageId,
    pub lane: Lane,
    pub round: Round,
    /// Attempts so far in this round.
    pub attempts: AttemptNo,
    pub due_at: Option<Timestamp>,
    /// Size of the message's body.
    pub body_bytes: u64,
}

/// The first delivery of an ordered lane that has work, or that an operator must release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneHead {
    pub lane: Lane,
    pub message: MessageId,
}

/// A message with its bytes, ready to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    pub id: MessageId,
    pub interface: InterfaceId,
    pub received_at: Timestamp,
    pub key: Option<Key>,
    pub attributes: Arc<Attributes>,
    pub body: Bytes,
}

/// Which messages to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct ListMessages {
    pub interface: Option<InterfaceId>,
    pub status: Option<MessageStatus>,
    /// Only with a delivery to it.
    pub destination: Option<DestinationId>,
    /// Only with this key. Found where its interface makes keys searchable.
    pub key: Option<String>,
    /// Only with this value of an attribute. Found where its interface makes it searchable.
    pub attribute: Option<(String, String)>,
    /// Only with this text in the value of an attribute.
    pub text: Option<String>,
    /// Only stored at this time or later. Numbers rise with time; a clock that was set back is not seen.
    pub from: Option<Timestamp>,
    /// Only stored before this time.
    pub to: Option<Timestamp>,
    /// The cursor: only ids below it.
    pub before: Option<MessageId>,
    /// At most 500.
    pub limit: u32,
}

/// Which keys of a plugin's state are asked for.
#[derive(Clone, Debug)]
pub struct ListStateKeys {
    pub destination: DestinationId,
    pub space: String,
    pub prefix: String,
    /// Only keys after this one.
    pub after: Option<String>,
    pub limit: u32,
}

impl ListMessages {
    /// The most a page holds, whatever is asked for.
    pub const LIMIT_MAX: u32 = 500;

    /// The term that leads to what is asked for, if one does.
    pub fn term(&self) -> Option<Term> {
        let attribute = || self.attribute.as_ref().map(|(name, value)| Term::of(name, value));
        self.key.as_ref().map(|key| Term::of(Term::KEY, key)).or_else(attribute)
    }

    /// Whether a message has the key, the attribute and the text that are asked for.
    pub fn fits(&self, key: Option<&str>, attributes: &Attributes) -> bool {
        let pairs = || attributes.pairs().iter();
        self.key.as_deref().is_none_or(|wanted| key == Some(wanted))
            && self.attribute.as_ref().is_none_or(|wanted| pairs().any(|pair| pair == wanted))
            && self.text.as_ref().is_none_or(|text| pairs().any(|(_, value)| value.contains(text)))
    }
}

/// A page of a list. It may hold fewer than the limit, or none, and still have a `next`: a store
/// looks at a bounded number of messages for one page.
#[derive(Clone, Debug, Default)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins; none: this is the last.
    pub next: Option<MessageId>,
}

/// A message as people see it, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageView {
    pub id: MessageId,
    pub interface: InterfaceId,
    pub status: MessageStatus,
    pub received_at: Timestamp,
    pub stored_at: Timestamp,
    pub occurred_at: Option<Timestamp>,
    pub key: Option<String>,
    pub dedupe: Option<String>,
    pub attributes: Attributes,
    pub body_bytes: u64,
    /// The message it came from or repeats.
    pub origin: Option<MessageId>,
    /// `route`, `duplicate`, `conflict` or `edit`, where there is an origin.
    pub origin_kind: Option<&'static str>,
}

/// A delivery as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeliveryView {
    pub destination: DestinationId,
    pub lane: Lane,
    pub state: DeliveryState,
    pub round: Round,
    pub attempts: AttemptNo,
    pub due_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// Why it waits, was filtered or quarantined; the peer's answer if it was sent.
    pub reason: Option<String>,
}

/// One attempt as people see it.
///
/// Every failed attempt is kept, and the successful one that followed failures. A delivery
/// that was sent at its first attempt has its answer in [`DeliveryView::reason`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptView {
    pub destination: DestinationId,
    pub round: Round,
    pub number: AttemptNo,
    pub started_at: Timestamp,
    pub took_ms: u64,
    /// `sent`, `filtered`, `quarantined` or `retry`.
    pub outcome: &'static str,
    pub text: String,
}

/// What a sender was given, as people see it, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputView {
    pub destination: DestinationId,
    /// The round and the attempt that it was made for.
    pub round: Round,
    pub attempt: AttemptNo,
    pub saved_at: Timestamp,
    pub key: Option<String>,
    pub attributes: Attributes,
    pub body: OutputBody,
}

/// Where the bytes of an output are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OutputBody {
    /// Those of the message itself.
    Same,
    /// So many, kept beside it.
    Kept(u64),
    /// So many, which was too much.
    TooLarge(u64),
    /// So many, for which the store had no room.
    NoRoom(u64),
}

/// What an operator did, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionView {
    pub at: Timestamp,
    pub destination: Option<DestinationId>,
    /// `resend`, `dismiss`, `retry` or `edit`.
    pub action: &'static str,
    pub author: String,
    pub reason: String,
}

/// What waits at a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    pub destination: DestinationId,
    pub waiting: u64,
    pub quarantined: u64,
    /// When the oldest waiting message was stored.
    pub oldest: Option<Timestamp>,
}

/// Nothing new is sent to a destination until it is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub since: Timestamp,
    /// Who paused it.
    pub author: String,
    /// Why.
    pub reason: String,
}

/// What an operator did to a destination, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DestinationActionView {
    pub at: Timestamp,
    /// `pause` or `resume`.
    pub action: &'static str,
    pub author: String,
    pub reason: String,
}

impl DestinationActionView {
    /// Actions on one destination that are kept; older ones are forgotten.
    pub const KEPT_MAX: u32 = 100;
}
