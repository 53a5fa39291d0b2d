//! Messages, their deliveries, and what was done to them.

use portway_model::{DeliveryState, MessageId, MessageStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reason, Time, words};

/// A page of messages, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagePage {
    pub items: Vec<Message>,
    /// The cursor of the next page; none: this is the last.
    #[schemars(with = "Option<u64>")]
    pub next: Option<MessageId>,
}

/// A message, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    #[schemars(with = "u64")]
    pub id: MessageId,
    pub interface: String,
    #[schemars(schema_with = "words::message_status")]
    pub status: MessageStatus,
    pub received_at: Time,
    pub stored_at: Time,
    pub occurred_at: Option<Time>,
    pub key: Option<String>,
    pub dedupe: Option<String>,
    pub body_bytes: u64,
    /// The message it came from or repeats.
    #[schemars(with = "Option<u64>")]
    pub origin: Option<MessageId>,
    /// `route`, `duplicate`, `conflict` or `edit`.
    pub origin_kind: Option<String>,
}

/// A message and all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageDetail {
    pub message: Message,
    /// Name and value, in order.
    pub attributes: Vec<(String, String)>,
    pub deliveries: Vec<Delivery>,
    pub attempts: Vec<Attempt>,
    /// What senders were given, where their destination keeps it.
    #[serde(default)]
    pub outputs: Vec<Output>,
    pub actions: Vec<ActionRecord>,
    /// Corrected copies that were made of it.
    #[serde(default)]
    #[schemars(with = "Vec<u64>")]
    pub edits: Vec<MessageId>,
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    pub destination: String,
    #[schemars(schema_with = "words::delivery_state")]
    pub state: DeliveryState,
    pub lane: u16,
    pub round: u32,
    pub attempts: u32,
    pub due_at: Option<Time>,
    pub finished_at: Option<Time>,
    /// Why it waits, was filtered or quarantined; the peer's answer if it was sent.
    pub reason: Option<String>,
}

/// One try of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub destination: String,
    pub round: u32,
    pub number: u32,
    pub started_at: Time,
    pub took_ms: u64,
    /// `sent`, `filtered`, `quarantined` or `retry`.
    pub outcome: String,
    pub text: String,
}

/// What the sender of a destination was given: the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    pub destination: String,
    /// The round and the attempt it was made for.
    pub round: u32,
    pub attempt: u32,
    pub saved_at: Time,
    pub key: Option<String>,
    /// Name and value, in order.
    pub attributes: Vec<(String, String)>,
    /// `same`: the bytes of the message itself; `kept`; `too-large`: they are not kept;
    /// `no-room`: the store was full.
    pub body: String,
    pub body_bytes: u64,
}

/// What an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionRecord {
    pub at: Time,
    pub destination: Option<String>,
    /// `resend`, `dismiss`, `retry` or `edit`.
    pub action: String,
    pub author: String,
    pub reason: String,
}

/// What became of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionDone {
    #[schemars(with = "u64")]
    pub message: MessageId,
    pub action: String,
    /// The destinations whose deliveries it changed.
    pub destinations: Vec<String>,
}

/// A copy of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backup {
    pub file: String,
    pub bytes: u64,
    pub took_ms: u64,
}

/// What became of an action on many messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BulkDone {
    /// The name of the request: made again under it, nothing is done twice.
    pub request: String,
    pub action: String,
    /// One for each message, in order.
    pub items: Vec<BulkItem>,
    /// Where the next page of its search begins; none: there are no more.
    #[schemars(with = "Option<u64>")]
    pub next: Option<MessageId>,
}

/// What became of it for one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BulkItem {
    #[schemars(with = "u64")]
    pub message: MessageId,
    /// The destinations whose deliveries it changed.
    pub destinations: Vec<String>,
    /// The same request did it before.
    pub repeated: bool,
    /// Why nothing was done.
    pub error: Option<Reason>,
}

/// A corrected copy that was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// The copy.
    #[schemars(with = "u64")]
    pub message: MessageId,
    /// The original.
    #[schemars(with = "u64")]
    pub of: MessageId,
}
