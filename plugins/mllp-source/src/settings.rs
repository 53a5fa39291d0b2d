//! What an operator can set.

use portway_hl7::Path;
use serde::{Deserialize, Deserializer, de::Error};

/// The settings of one interface's source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where the order key stands, for example `PID-3.1`. None: one lane.
    #[serde(deserialize_with = "path")]
    pub key: Option<Path>,
    /// Where the name stands that a repeated message is known by, for example `MSH-10`. None:
    /// repetitions are not looked for.
    #[serde(deserialize_with = "path")]
    pub dedupe: Option<Path>,
    /// Whether messages carry `hl7.type` and the like.
    pub attributes: bool,
    /// Whether a frame must end in FS CR. Otherwise FS alone and FS LF end one too, with a notice.
    pub strict_end: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { key: None, dedupe: None, attributes: true, strict_end: false }
    }
}

/// An empty text is no path, so that a project can switch one off.
fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Path>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_a_bad_path_is_named() {
        let settings: Settings =
            portway_sdk::parse_settings(r#"{"key":"PID-3.1","dedupe":"","strict_end":true}"#).unwrap();
        assert_eq!(settings.key.unwrap().to_string(), "PID-3.1");
        assert_eq!((settings.dedupe, settings.attributes, settings.strict_end), (None, true, true));
        let failure = portway_sdk::parse_settings::<Settings>(r#"{"key":"patient"}"#).unwrap_err();
        assert!(failure.text.contains("setting `key`: `patient` is no path"), "{}", failure.text);
    }
}
