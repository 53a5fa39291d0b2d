//! What an operator can set.

use portway_condition::{BodyKind, BodySettings, Case, ConditionSettings, CsvSettings, Unreadable};
use serde::Deserialize;

/// The settings of one destination's filter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub body: BodyKind,
    pub rules: Vec<RuleSettings>,
    pub unreadable: Unreadable,
    pub case: Case,
    pub charset: String,
    pub csv: CsvSettings,
}

/// One rule: `only` or `except`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSettings {
    pub name: Option<String>,
    /// Messages pass for which this holds.
    pub only: Option<ConditionSettings>,
    /// Messages pass for which this does not hold.
    pub except: Option<ConditionSettings>,
}

impl Settings {
    pub(crate) fn body(&self) -> BodySettings {
        BodySettings { kind: self.body, csv: self.csv.clone(), charset: self.charset.clone() }
    }
}
