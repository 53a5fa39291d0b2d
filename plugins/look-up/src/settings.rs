//! What an operator has written.

use std::collections::BTreeMap;

use portway_sdk::{Failure, Problem, Template, TemplateError, TransformVerdict};
use serde::Deserialize;

use crate::LookUp;

/// Attributes of one look-up.
const ATTRIBUTES_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 64;

/// See `plugin.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub path: String,
    pub attributes: BTreeMap<String, String>,
    #[serde(default)]
    pub missing: Missing,
}

/// What becomes of a message for which the API has nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    #[default]
    Quarantine,
    Pass,
    Filter,
}

impl Settings {
    pub(crate) fn read(self) -> Result<LookUp, Failure> {
        if !self.path.starts_with('/') || self.path.contains("//") {
            return Err(bad("path", "it begins with one `/` and holds no `//`"));
        }
        if !self.path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(bad("path", "blanks, `#` and other than ASCII characters are written as `%20`"));
        }
        let path: Template =
            self.path.parse().map_err(|error: TemplateError| bad("path", &error.to_string()))?;
        if self.attributes.is_empty() || self.attributes.len() > ATTRIBUTES_MAX {
            return Err(bad("attributes", &format!("there are 1 to {ATTRIBUTES_MAX} of them")));
        }
        let mut attributes = Vec::with_capacity(self.attributes.len());
        for (name, place) in self.attributes {
            let setting = format!("attributes.{name}");
            let is_name = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
            if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_name) {
                return Err(bad(&setting, "a name is 1 to 64 bytes of lower-case ASCII"));
            }
            if name.starts_with("portway.") {
                return Err(bad(&setting, "names that begin with `portway.` are the host's"));
            }
            let place =
                place.parse().map_err(|error: portway_json::PathError| bad(&setting, &error.to_string()))?;
            attributes.push((name, place));
        }
        Ok(LookUp { path, attributes, missing: self.missing })
    }
}

impl Missing {
    pub(crate) fn verdict(self) -> Result<TransformVerdict, Problem> {
        const TEXT: &str = "the API has nothing for this message";
        match self {
            Missing::Quarantine => Err(Problem::quarantine("not-found", TEXT)),
            Missing::Pass => Ok(TransformVerdict::Pass),
            Missing::Filter => Ok(TransformVerdict::filter(TEXT)),
        }
    }
}

fn bad(setting: &str, text: &str) -> Failure {
    Failure::new("bad-settings", format!("setting `{setting}`: {text}"))
}
