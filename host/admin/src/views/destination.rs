//! Destinations: what operators did to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// A destination that was paused, or goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DestinationActionDone {
    pub interface: String,
    pub destination: String,
}

/// What an operator did to a destination as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DestinationActionRecord {
    pub at: Time,
    /// `pause` or `resume`.
    pub action: String,
    pub author: String,
    pub reason: String,
}

/// Nothing new is sent to a destination until it is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    pub since: Time,
    /// Who paused it.
    pub author: String,
    /// Why.
    pub reason: String,
}
