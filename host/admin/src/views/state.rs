//! What plugins keep for a destination, as the API shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of values that plugins keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatePage {
    pub keys: Vec<StateKey>,
    /// There are more in its space: ask for what comes after it; none: that was all.
    pub next: Option<StateKey>,
}

/// Names a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateKey {
    /// Which use of a plugin keeps it.
    pub space: String,
    pub key: String,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateValue {
    pub space: String,
    pub key: String,
    pub bytes: u64,
    /// As it is where it is text, else in base64.
    pub value: String,
    /// `text` or `base64`.
    pub encoding: String,
}

/// A value was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateRemoved {
    pub interface: String,
    pub destination: String,
    pub space: String,
    pub key: String,
}
