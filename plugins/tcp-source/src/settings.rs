//! What an operator can set.

use portway_framing::{FramingSettings, Sequence};
use portway_sdk::Failure;
use serde::Deserialize;

/// The largest `frame_bytes_max`.
pub const FRAME_BYTES_MAX: u32 = (1 << 30) - 1;
/// Bytes of a reply.
pub const REPLY_BYTES_MAX: usize = 1024;

/// The settings of one interface's source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub framing: FramingSettings,
    /// Bytes of a message.
    #[serde(default = "frame_bytes_max")]
    pub frame_bytes_max: u32,
    /// For each message that is stored. Empty: nothing is sent.
    #[serde(default)]
    pub stored_reply: Sequence,
    /// For each that is not. Empty: the connection is closed instead.
    #[serde(default)]
    pub not_stored_reply: Sequence,
    #[serde(default)]
    pub key: Option<PlaceSettings>,
    #[serde(default)]
    pub dedupe: Option<PlaceSettings>,
}

/// Where a value stands in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlaceSettings {
    /// A regular expression; its first group is the value, or all of it.
    pub pattern: Option<String>,
    /// In bytes, from 0.
    pub offset: Option<usize>,
    pub length: Option<usize>,
}

fn frame_bytes_max() -> u32 {
    16 << 20
}

impl Settings {
    /// What the types alone do not say.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.frame_bytes_max == 0 || self.frame_bytes_max > FRAME_BYTES_MAX {
            return Err(unfit("frame_bytes_max", &format!("a message has 1 to {FRAME_BYTES_MAX} bytes")));
        }
        for (name, reply) in
            [("stored_reply", &self.stored_reply), ("not_stored_reply", &self.not_stored_reply)]
        {
            if reply.0.len() > REPLY_BYTES_MAX {
                return Err(unfit(name, &format!("a reply has at most {REPLY_BYTES_MAX} bytes")));
            }
        }
        if !self.stored_reply.0.is_empty() && self.stored_reply == self.not_stored_reply {
            return Err(unfit(
                "not_stored_reply",
                "it is the same as `stored_reply`, so no peer could tell them apart",
            ));
        }
        Ok(())
    }
}

pub(crate) fn unfit(name: &str, why: &str) -> Failure {
    Failure::new("bad-settings", format!("setting `{name}`: {why}"))
}
