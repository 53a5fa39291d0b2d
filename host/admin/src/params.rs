//! What callers of the API send, and its limits.

use portway_model::{MessageId, MessageStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::Time;

/// Which messages to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListMessages {
    /// Only of this interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Only in this status: `pending`, `finished`, `quarantined` or `duplicate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::views::words::optional_message_status")]
    pub status: Option<MessageStatus>,
    /// Only with a delivery to this destination; needs `interface`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Only with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Only with this value of an attribute: `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// Only with this text in the value of an attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Only stored at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Only stored before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// Where the page begins: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub cursor: Option<MessageId>,
    /// Messages in the page.
    #[serde(default = "ListMessages::limit_default")]
    pub limit: u32,
}

impl ListMessages {
    /// Bytes in a key, an attribute or a text.
    pub const TEXT_BYTES_MAX: usize = 8_192;
    /// Messages in a page, at most.
    pub const LIMIT_MAX: u32 = 500;

    fn limit_default() -> u32 {
        50
    }
}

/// What goes with a resend or a dismissal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// None: every delivery of the message that it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Why, for the record.
    #[serde(default)]
    pub reason: String,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}

/// Bytes in a reason.
pub const REASON_BYTES_MAX: usize = 1_024;
/// Bytes in an author.
pub const AUTHOR_BYTES_MAX: usize = 128;

/// What goes with an action on a destination or on the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Why, for the record.
    #[serde(default)]
    pub reason: String,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}

/// Where a backup goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BackupRequest")]
pub struct Backup {
    /// An absolute path on the engine's machine, to a file that does not exist yet.
    pub file: String,
}

/// How to drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DrainRequest")]
pub struct Drain {
    /// Stop the process when everything that can be delivered is.
    #[serde(default)]
    pub stop: bool,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}

/// Which lane's head is meant, and what goes with it. Without lane and message: the only one that
/// is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActOnLane {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<u16>,
    /// The message that blocks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub message: Option<MessageId>,
    /// Why, for the record.
    #[serde(default)]
    pub reason: String,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}

/// Which values that plugins keep for a destination to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListState {
    /// Only of this use of a plugin; without it of all that are granted a state now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Only keys that begin so.
    #[serde(default)]
    pub prefix: String,
    /// Only keys after this one; needs `space`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Keys in the page.
    #[serde(default = "ListState::limit_default")]
    pub limit: u32,
}

impl ListState {
    /// Keys in a page, at most.
    pub const LIMIT_MAX: u32 = 500;

    fn limit_default() -> u32 {
        100
    }
}

/// Which value to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetState {
    /// Which use of a plugin keeps it; not needed where only one is granted a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    pub key: String,
}

/// Which value to remove, and what goes with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RemoveStateRequest")]
pub struct RemoveState {
    /// Which use of a plugin keeps it; not needed where only one is granted a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    pub key: String,
    /// Why, for the record.
    #[serde(default)]
    pub reason: String,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}

/// What is done to many messages: those listed, or the page that a search finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkAct {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<u64>>")]
    pub ids: Option<Vec<MessageId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<ListMessages>,
    /// None: every delivery of each message that it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Names the request: made again under the same name, it does nothing twice.
    pub request: String,
    /// Why, for the record.
    #[serde(default)]
    pub reason: String,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}

impl BulkAct {
    /// Messages in one request.
    pub const MESSAGES_MAX: usize = 500;
    /// Bytes in the name of a request.
    pub const REQUEST_BYTES_MAX: usize = 64;
}

/// What goes with a corrected copy of a message, whose bytes are the body of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EditRequest")]
pub struct Edit {
    /// Names of destinations with commas between them; none: to all of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<String>,
    /// Why, for the record.
    #[serde(default)]
    pub reason: String,
    /// Who asks, for the record.
    #[serde(default)]
    pub author: String,
}
