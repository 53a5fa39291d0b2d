//! What callers of the API send, and its limits.

use portway_model::{MessageId, MessageStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Where the page begins: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub cursor: Option<MessageId>,
    /// Messages in the page.
    #[serde(default = "ListMessages::limit_default")]
    pub limit: u32,
}

impl ListMessages {
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

impl Act {
    /// Bytes in a reason.
    pub const REASON_BYTES_MAX: usize = 1_024;
    /// Bytes in an author.
    pub const AUTHOR_BYTES_MAX: usize = 128;
}

/// Where a backup goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BackupRequest")]
pub struct Backup {
    /// An absolute path on the engine's machine, to a file that does not exist yet.
    pub file: String,
}
