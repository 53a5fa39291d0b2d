//! Settings: from the JSON a plugin is opened with to the author's own type.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// Settings of a plugin that has none; a setting that is given is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// Reads settings; what is wrong is told with the path of the setting.
pub fn parse_settings<S: DeserializeOwned>(json: &str) -> Result<S, Failure> {
    let json = if json.trim().is_empty() { "{}" } else { json };
    // By way of a value: line and column in the host's JSON would mean nothing to
    // whoever wrote the settings as TOML.
    let value: serde_json::Value = serde_json::from_str(json)
        .map_err(|error| Failure::new("bad-settings", format!("the settings are not JSON: {error}")))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("setting `{path}`: ") };
        Failure::new("bad-settings", format!("{place}{}", error.into_inner()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading it is tested")]
    struct Outer {
        inner: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading it is tested")]
    struct Inner {
        port: u16,
    }

    fn complaint(json: &str) -> String {
        parse_settings::<Outer>(json).map_or_else(|failure| failure.text, |_| "fine".into())
    }

    #[test]
    fn a_bad_setting_is_named_with_its_path() {
        assert_eq!(complaint(r#"{"inner":{"port":1}}"#), "fine");
        assert_eq!(
            complaint(r#"{"inner":{"port":"x"}}"#),
            "setting `inner.port`: invalid type: string \"x\", expected u16"
        );
        assert_eq!(complaint("{}"), "missing field `inner`");
        assert_eq!(
            complaint(r#"{"inner":{"prot":1}}"#),
            "setting `inner.prot`: unknown field `prot`, expected `port`"
        );
    }

    #[test]
    fn no_settings_may_be_empty_but_not_misspelt() {
        assert_eq!(parse_settings::<NoSettings>(""), Ok(NoSettings {}));
        assert!(parse_settings::<NoSettings>(r#"{"a":1}"#).is_err());
    }
}
