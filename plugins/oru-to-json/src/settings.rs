//! What an operator can set.

use portway_hl7::Charset;
use serde::Deserialize;

/// The settings of one destination's transform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What becomes of a message that is no ORU.
    pub other: Other,
    /// The character set of messages that leave MSH-18 empty, by a name of table 0211. None: UTF-8,
    /// of which ASCII is a part.
    #[serde(deserialize_with = "portway_hl7_text::setting")]
    pub charset: Option<Charset>,
}

/// What becomes of a message of another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Other {
    /// A person looks at it.
    #[default]
    Quarantine,
    /// It is not for this destination.
    Filter,
    /// It goes on as it is.
    Pass,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_a_bad_character_set_is_named() {
        let read = portway_sdk::parse_settings::<Settings>;
        assert_eq!(read("{}").unwrap(), Settings::default());
        let settings = read(r#"{"other":"filter","charset":"8859/1"}"#).unwrap();
        assert_eq!(settings, Settings { other: Other::Filter, charset: Some(Charset::Latin1) });
        assert!(read(r#"{"charset":"klingon"}"#).unwrap_err().text.contains("`klingon` is no character set"));
        assert!(read(r#"{"other":"drop"}"#).is_err());
    }
}
