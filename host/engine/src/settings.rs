//! What the engine is told of a project: interfaces, destinations, policies, budgets.

use std::collections::BTreeSet;
use std::time::Duration;

use portway_model::{
    DestinationId, GroupId, Guarantee, InterfaceId, OnQuarantine, Order, RateLimit, RetentionState,
    RetryPolicy, Timestamp,
};
use portway_store::{Durability, Pause};

/// Everything an engine runs.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub interfaces: Vec<InterfaceSettings>,
    pub limits: Limits,
    /// Destinations that were paused before and not resumed since.
    pub pauses: Vec<(DestinationId, Pause)>,
    /// The retention of every interface that ever was.
    pub retentions: Vec<(InterfaceId, RetentionState)>,
    /// How far messages have grown old; none: nobody knows.
    pub aged_to: Option<Timestamp>,
}

/// What is different from now on. What it does not name goes on as it is.
#[derive(Clone, Debug, Default)]
pub struct LayoutChange {
    /// Interfaces that are new or changed, each with all of its destinations.
    pub interfaces: Vec<InterfaceSettings>,
    /// Interfaces that are gone. What waits for their destinations stays in the store.
    pub removed: Vec<InterfaceId>,
    /// Destinations that begin anew, though their settings are as they were: what delivers for
    /// them changed.
    pub renewed: BTreeSet<DestinationId>,
    /// Every destination that is paused, as the store tells.
    pub pauses: Vec<(DestinationId, Pause)>,
}

/// One interface.
#[derive(Clone, Debug)]
pub struct InterfaceSettings {
    pub id: InterfaceId,
    pub group: GroupId,
    pub name: String,
    pub durability: Durability,
    /// How long a dedupe key is remembered; none: not looked up.
    pub dedupe_window: Option<Duration>,
    /// What its messages are found by: `key`, and names of attributes.
    pub search: Vec<String>,
    pub destinations: Vec<DestinationSettings>,
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationSettings {
    pub id: DestinationId,
    pub name: String,
    pub order: Order,
    /// Runs at the same time; an ordered lane has at most one.
    pub concurrency: u32,
    pub retry: RetryPolicy,
    pub on_quarantine: OnQuarantine,
    /// Deliveries in a run, 1 to 256.
    pub run_max: u32,
    pub guarantee: Guarantee,
    /// The longest time from when a run is handed over until nothing of it can arrive any more.
    pub send_max: Duration,
    /// None: as fast as it takes.
    pub rate: Option<RateLimit>,
}

/// Budgets of the whole engine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Messages in one commit.
    pub batch_messages_max: usize,
    /// Bytes of bodies in one commit.
    pub batch_bytes_max: usize,
    /// Bytes of messages that wait to be committed; beyond it intake answers `busy`.
    pub intake_bytes_max: usize,
    /// Bytes of bodies that wait in memory for their delivery.
    pub waiting_bytes_max: usize,
    /// Deliveries that wait in memory.
    pub waiting_max: usize,
    /// Runs at the same time over all destinations.
    pub runs_max: usize,
    /// Results of a destination that are not flushed yet; beyond it its sends wait.
    pub unflushed_max: usize,
    /// Pause between passes that remove old messages; zero: never.
    pub prune_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            batch_messages_max: 2_048,
            batch_bytes_max: 16 << 20,
            intake_bytes_max: 256 << 20,
            waiting_bytes_max: 64 << 20,
            waiting_max: 65_536,
            runs_max: 64,
            unflushed_max: 256,
            prune_every: Duration::from_secs(60),
        }
    }
}
