//! Retention as the port speaks of it: what is asked of a store, and what it tells.
//!
//! The rules of a change are `portway_model::retention`'s. A store keeps a [`RetentionState`] for every
//! interface it ever had, and answers with it; the engine says when there is time to do something.

use portway_model::{InterfaceId, RetentionState, Timestamp};

/// One step of removing what is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// What is older than its window by now goes.
    pub now: Timestamp,
    /// How far messages have grown old by the engine's reckoning: remembered for the next engine.
    pub aged_to: Timestamp,
    /// Messages removed in this step, at most.
    pub limit: u32,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    pub messages: u64,
    /// There may be more to do at once: the pass over all interfaces is not over.
    pub goes_on: bool,
}

/// One step of a change of retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRetention {
    pub interface: InterfaceId,
    /// As in [`Expiry::now`].
    pub age_now: Timestamp,
    /// By the clock, for the record.
    pub now: Timestamp,
    /// Messages moved or removed in this step, at most.
    pub limit: u32,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Messages that have the new retention now.
    pub moved: u64,
    /// Messages past it that are gone.
    pub removed: u64,
    /// As it is now: without the change, the last step is done.
    pub state: RetentionState,
    /// The next step is worth taking at once. Not so: the change is over, or others are in its way.
    pub goes_on: bool,
}

impl Moved {
    /// A step that could do nothing.
    pub fn nothing(state: RetentionState) -> Moved {
        Moved { moved: 0, removed: 0, state, goes_on: false }
    }
}

/// An operator agrees to a retention that removes messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmRetention {
    pub interface: InterfaceId,
    pub now: Timestamp,
    /// Who, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// The retention of an interface, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionView {
    pub interface: InterfaceId,
    /// Also of one that is in no project any more.
    pub name: String,
    pub state: RetentionState,
    /// The last confirmation.
    pub confirmed: Option<RetentionConfirmed>,
    /// When its oldest message was stored.
    pub oldest: Option<Timestamp>,
    /// Messages that a running change still has to touch, or that what waits would remove. None:
    /// there is neither, or counting it would take too long.
    pub left: Option<Counted>,
    /// What stays beyond its window. None: nothing was counted since the store was opened.
    pub kept: Option<KeptBeyond>,
}

/// Who agreed to a retention, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionConfirmed {
    pub at: Timestamp,
    pub author: String,
    pub reason: String,
}

/// A number that was counted up to a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub count: u64,
    /// It is at least as many.
    pub is_cut: bool,
}

/// Messages that are older than their window and stay, as the last pass counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptBeyond {
    /// They have to be delivered.
    pub pending: u64,
    /// Somebody has to look at them.
    pub quarantined: u64,
    /// When they were counted.
    pub at: Timestamp,
}

impl RetentionView {
    /// Messages looked at to count what is left, over all interfaces of one answer.
    pub const LOOKED_AT_MAX: u32 = 20_000;
}
