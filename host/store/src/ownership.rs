//! Who runs the deliveries of a group: one engine at a time, of all that use a store.

use std::time::Duration;

use portway_model::{DestinationId, Epoch, GroupId, Timestamp};
use serde::Serialize;

use crate::Pause;

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// All of the groups are this engine's.
    Owned(Tenure),
    /// Others own some of them: nothing was changed. Those that it would have to have.
    Refused(Vec<Owner>),
}

/// That an engine owns groups, from a claim until it closes the store or loses its lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenure {
    /// Goes with every result.
    pub epoch: Epoch,
    /// The owner before did not stop in order, and its process may have ended: what it had in hand is suspect.
    /// An engine that lost its lock and lives is no such owner, unless its own tenure was unclean.
    pub unclean: bool,
    /// An owner before may not know yet that it is none any more: what it sends may still arrive. Also one
    /// before an owner that did not stop in order, within [`Tenure::OVERLAP_MAX`].
    pub overlaps: bool,
    /// Destinations that are paused, by number; also of those that it does not own.
    pub pauses: Vec<(DestinationId, Pause)>,
}

impl Tenure {
    /// Nothing that was sent arrives after so long, whatever the clock of the store says.
    pub const OVERLAP_MAX: Duration = Duration::from_secs(86_400);
}

/// Who owns a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub group: GroupId,
    /// The name that the engine gave itself.
    pub engine: String,
    /// Since when.
    pub since: Timestamp,
}

/// An engine that uses the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineView {
    /// The name that it gave itself.
    pub engine: String,
    pub started_at: Timestamp,
    /// It is the one that was asked.
    pub is_self: bool,
    pub groups: Vec<GroupId>,
}

/// What happened in a store that the engine did not do itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Others stored messages of these groups, which it owns.
    Elsewhere(Vec<GroupId>),
    /// They may have, and whatever else: the connection was lost for some time.
    Missed,
    /// It owns nothing any more: its lock is gone. Told within [`News::LOST_WITHIN`].
    Lost,
}

impl News {
    /// How long an engine that lost its lock may not know it. The next owner waits as long.
    pub const LOST_WITHIN: Duration = Duration::from_secs(5);
}
