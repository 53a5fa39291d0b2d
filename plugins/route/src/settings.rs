//! What an operator can set: the same at each destination.

use std::collections::BTreeMap;

use portway_condition::{
    BodyKind, BodySettings, Case, ConditionSettings, CsvSettings, PlaceSettings, Unreadable,
};
use serde::Deserialize;

use crate::Names;

/// The settings of one destination's route.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub body: BodyKind,
    pub rules: Vec<RuleSettings>,
    /// The one place whose value chooses.
    pub by: Option<PlaceSettings>,
    pub map: BTreeMap<String, Names>,
    #[serde(rename = "match")]
    pub matching: Matching,
    /// None: `quarantine`.
    pub otherwise: Option<Names>,
    pub unreadable: Unreadable,
    pub case: Case,
    pub charset: String,
    pub csv: CsvSettings,
}

/// One rule of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSettings {
    pub name: Option<String>,
    pub when: ConditionSettings,
    pub to: Names,
}

/// Which rules count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matching {
    /// The first that holds.
    #[default]
    First,
    /// All that hold.
    All,
}

impl Settings {
    pub(crate) fn body(&self) -> BodySettings {
        BodySettings { kind: self.body, csv: self.csv.clone(), charset: self.charset.clone() }
    }
}
