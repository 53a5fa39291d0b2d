//! The settings, as they are written.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_sdk::Failure;
use serde::Deserialize;

/// As in `plugin.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub from: String,
    pub to: Vec<String>,
    #[serde(default)]
    pub cc: Vec<String>,
    #[serde(default)]
    pub bcc: Vec<String>,
    pub reply_to: Option<String>,
    #[serde(default = "default_subject")]
    pub subject: String,
    pub text: Option<String>,
    pub attachment: Option<AttachmentSettings>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub partial: Partial,
    #[serde(default)]
    pub login: Mechanism,
    #[serde(default = "default_hello")]
    pub hello: String,
    #[serde(default = "default_timeout", deserialize_with = "portway_sdk::duration")]
    pub timeout: Duration,
    #[serde(default = "default_messages")]
    pub messages_per_connection: u32,
}

/// The message as a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttachmentSettings {
    pub name: String,
    pub content_type: String,
}

impl Default for AttachmentSettings {
    fn default() -> Self {
        AttachmentSettings { name: "message-{id}".into(), content_type: "application/octet-stream".into() }
    }
}

/// Where some recipients are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partial {
    /// Nobody gets it.
    #[default]
    Refuse,
    /// The others do.
    Send,
}

/// How to log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    #[default]
    Auto,
    Plain,
    Login,
}

fn default_subject() -> String {
    "Message {id}".into()
}

fn default_hello() -> String {
    "localhost".into()
}

const fn default_timeout() -> Duration {
    Duration::from_secs(60)
}

const fn default_messages() -> u32 {
    100
}

/// A setting that cannot be.
pub(crate) fn bad(setting: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new("bad-settings", format!("setting `{setting}`: {why}"))
}
