//! What an operator can set.

use portway_hl7::Charset;
use serde::Deserialize;

/// The settings of one destination's transform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub shape: Shape,
    pub names: Names,
    pub escapes: Escapes,
    /// Of messages that leave MSH-18 empty. None: UTF-8, of which ASCII is a part.
    #[serde(deserialize_with = "portway_hl7_text::setting")]
    pub charset: Option<Charset>,
}

/// How fields are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// A string where there are no parts.
    #[default]
    Compact,
    /// Arrays of repetitions, of components, of subcomponents.
    Full,
}

/// What fields and their parts are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// `PID-5.1`
    #[default]
    Position,
    /// `5`, and in it `1`.
    Number,
}

/// What becomes of escape sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Escapes {
    /// What they stand for.
    #[default]
    Resolve,
    /// As they are written.
    Raw,
}
