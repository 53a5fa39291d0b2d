//! The settings, as they are written.

use serde::Deserialize;

/// Where `file` is not set.
pub const DEFAULT_APPEND_NAME: &str = "messages";
/// Where `file` is not set.
pub const DEFAULT_PUT_NAME: &str = "{id}";

/// As in `plugin.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub mode: Mode,
    pub file: Option<String>,
    pub separator: String,
    pub separator_in_message: SeparatorInMessage,
    pub on_exists: OnExists,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            mode: Mode::Append,
            file: None,
            separator: "\n".into(),
            separator_in_message: SeparatorInMessage::Quarantine,
            on_exists: OnExists::Fail,
        }
    }
}

/// One file, or one a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    Append,
    Files,
}

/// What to do with a message that a reader would take for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeparatorInMessage {
    Quarantine,
    Allow,
}

/// What to do where a file with other bytes has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExists {
    Fail,
    Replace,
}
