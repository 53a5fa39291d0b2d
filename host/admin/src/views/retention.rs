//! How long messages are kept: what is configured, applied, changing and waiting.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The retention of every interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retentions {
    /// The time by which messages are old.
    pub age_now: Time,
    /// Why messages do not age as the clock says; none: they do.
    pub clock: Option<ClockDoubt>,
    /// Also those that are in no project any more.
    pub interfaces: Vec<Retention>,
}

/// The clock is away from how messages age, and not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockDoubt {
    /// By how much.
    pub off_s: u64,
    /// It is ahead; else it is behind.
    pub ahead: bool,
    /// When it is believed, if it goes on as it does.
    pub believed_in_s: u64,
}

/// How long an interface keeps its messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retention {
    pub interface: String,
    /// As the project says; none: it is in the project no more.
    pub configured: Option<Window>,
    /// What every message has, but for a change that runs.
    pub applied: Window,
    /// New messages have another one, and old ones are getting it.
    pub change: Option<RetentionChange>,
    /// What is configured and not in force.
    pub waiting: Option<WaitingRetention>,
    /// The last confirmation.
    pub confirmed: Option<RetentionConfirmation>,
    /// When the oldest message was stored.
    pub oldest: Option<Time>,
    /// What stays beyond its window; none: it was not counted since the engine started.
    pub kept: Option<KeptBeyond>,
}

/// For how long finished messages are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// `1w`, `3w` or `7w`.
    pub retention: String,
    /// `keep` or `purge`: what becomes of quarantined messages that are as old.
    pub quarantined: String,
}

/// A change that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionChange {
    pub to: Window,
    pub since: Time,
    /// Messages it still has to move or remove; none: too many are looked at already.
    pub left: Option<Counted>,
}

/// A retention that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingRetention {
    pub to: Window,
    pub since: Time,
    /// It removes messages: an operator has to agree. Else it waits for the change that runs.
    pub needs_confirmation: bool,
    /// Messages that it would remove at once; none: too many are looked at already, or it waits for a
    /// change.
    pub removes: Option<Counted>,
}

/// A number that was counted up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    pub count: u64,
    /// It is at least as many.
    pub at_least: bool,
}

/// Who agreed to a retention that removes messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionConfirmation {
    pub at: Time,
    pub author: String,
    pub reason: String,
}

/// Messages that are older than their window and stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptBeyond {
    /// They have to be delivered.
    pub pending: u64,
    /// A person has to look at them.
    pub quarantined: u64,
    pub counted_at: Time,
}

/// What a confirmation did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionConfirmed {
    pub interface: String,
    pub to: Window,
    /// It is in force; else it follows the change that runs.
    pub in_force: bool,
}

/// How old messages fare, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionCounts {
    /// Interfaces whose messages are getting another retention.
    pub changing: u64,
    /// Interfaces with a retention that waits for a confirmation.
    pub unconfirmed: u64,
    /// How far the clock is away from how messages age, until it is believed.
    pub clock_off_s: u64,
}
