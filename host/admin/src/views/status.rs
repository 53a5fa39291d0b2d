//! The engine at one moment: what is stuck, since when, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Pause, RetentionCounts, Time};

/// Whether the engine lives; all that `/health` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub state: EngineState,
    /// Whether messages are taken.
    pub intake_open: bool,
}

/// Where an engine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineState {
    Starting,
    Running,
    /// It stores messages; another engine on the same store delivers them.
    Standby,
    Stopping,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    pub engine: Engine,
    pub intake: Intake,
    /// None: messages are taken and delivered as usual.
    #[serde(default)]
    pub drain: Option<Drain>,
    pub commits: Commits,
    pub store: Store,
    #[serde(default)]
    pub retention: RetentionCounts,
    pub memory: Memory,
    pub interfaces: Vec<Interface>,
    pub plugins: Vec<Plugin>,
    /// Engines that use the store now.
    #[serde(default)]
    pub engines: Vec<EngineOnStore>,
    /// Of traces of messages; none: the project wants none.
    #[serde(default)]
    pub traces: Option<Traces>,
}

/// What became of spans of traces since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traces {
    /// Taken by the collector.
    pub sent: u64,
    /// By why: `queue-full`, `unreachable` or `rejected`.
    pub lost: Vec<Count>,
}

/// The process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    pub version: String,
    /// The project folder.
    pub project: String,
    pub state: EngineState,
    pub started_at: Time,
    pub uptime_s: u64,
    pub process_id: u32,
}

/// An engine that uses the store, and what it delivers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineOnStore {
    /// The name it gave itself.
    pub name: String,
    pub started_at: Time,
    /// It is the one that answers.
    pub is_this: bool,
    /// Interfaces whose deliveries it runs.
    pub interfaces: Vec<String>,
}

/// A fact with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// For programs, kebab-case.
    pub code: String,
    /// For people.
    pub text: String,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    pub reason: String,
    pub count: u64,
}

/// The way into the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Intake {
    /// Why nothing is taken; none: it is open.
    pub closed: Option<Reason>,
    /// Messages that wait for a commit.
    pub waiting: u64,
    pub stored: u64,
    pub duplicates: u64,
    /// Not stored, by why.
    pub refused: Vec<Count>,
}

/// Nothing new is taken, and what was accepted is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drain {
    pub since: Time,
    /// Who asked.
    pub author: String,
    /// The process stops at the end of it.
    pub stops: bool,
    /// Nothing more can be delivered now: what is left waits for a time or for a person.
    pub done: bool,
}

/// Whether the engine drains now. An engine that was asked to stop may be gone when it is asked more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draining {
    pub draining: bool,
}

/// What storing costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Commits {
    pub commits: u64,
    /// Of these, flushed to disk.
    pub strict: u64,
    pub messages: u64,
    pub results: u64,
    pub failures: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Part of the time with a commit in hand, 0 to 1.
    pub busy_ratio: f64,
    /// Time with a commit in hand since the start.
    pub busy_ms: f64,
}

/// Where messages are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Store {
    pub path: String,
    /// Free on its disk, where known.
    pub free_bytes: Option<u64>,
    /// Of log that is not yet in the main file.
    pub log_bytes: u64,
    /// Messages removed because they were old enough.
    pub pruned: u64,
    /// What an operator should know of it, though it works.
    #[serde(default)]
    pub notes: Vec<String>,
    /// None: it can be read.
    #[serde(default)]
    pub away: Option<StoreAway>,
}

/// A store that cannot be read at the moment. What waits, and which engines there are, is told as it was read last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreAway {
    pub why: Reason,
    /// When that was; none: never since the start, and nothing is told.
    pub read_at: Option<Time>,
}

impl Status {
    /// Whether what it says of queues was ever read.
    pub fn knows_queues(&self) -> bool {
        self.store.away.as_ref().is_none_or(|away| away.read_at.is_some())
    }
}

/// Limits in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Of the process, where known.
    pub resident_bytes: Option<u64>,
    /// Deliveries that wait in memory; the others wait on disk.
    pub waiting: u64,
    /// Of message bodies in memory.
    pub body_bytes: u64,
    /// Runs of deliveries in hand.
    pub runs: u64,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    pub name: String,
    /// None: only routes lead to it.
    pub listener: Option<Listener>,
    /// What its source does, where it looks for messages by itself.
    pub poll: Option<Poll>,
    pub items: Items,
    /// Connections and frames that were refused, by why.
    pub refusals: Vec<Count>,
    /// What the source plugin found odd and took all the same.
    pub notices: Vec<Notice>,
    /// What became of what its source found.
    #[serde(default)]
    pub source: SourceCounts,
    /// Its plugins that faulted, or whose transform or sender noticed something.
    #[serde(default)]
    pub plugins: Vec<PluginCounts>,
    pub destinations: Vec<Destination>,
}

/// What became of what a source found, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCounts {
    pub stored: u64,
    pub duplicates: u64,
    /// Stored with an earlier message's dedupe key and another body.
    pub conflicts: u64,
    /// Not stored, by why.
    pub not_stored: Vec<Count>,
    /// Connections that ended, by why.
    pub closed: Vec<Count>,
    /// Requests of an HTTP source, by the class of their answer's status, such as `2xx`.
    #[serde(default)]
    pub requests: Vec<Count>,
    /// Addresses that wait because of earlier faults.
    pub addresses_slowed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// What a plugin did beside its work, since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginCounts {
    pub plugin: String,
    /// None: the source.
    pub destination: Option<String>,
    /// By kind, such as `trap` or `out-of-fuel`.
    pub faults: Vec<Count>,
    pub notices: Vec<Notice>,
    /// Granted secrets that it used.
    #[serde(default)]
    pub secrets: Vec<SecretUses>,
}

/// How often a plugin used a granted secret, since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretUses {
    /// What the project calls it.
    pub secret: String,
    /// `reveal` or `sign`.
    pub action: String,
    pub count: u64,
}

/// Where an interface listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    pub plugin: String,
    pub address: String,
    pub tls: bool,
    pub connections: u64,
    pub connections_max: u64,
    /// Since the start.
    pub accepted: u64,
}

/// A source that looks for messages by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Poll {
    pub plugin: String,
    /// `starting`, `polling`, `storing`, `settling`, `resting`, `waiting`, `misconfigured` or `stopped`.
    pub state: String,
    /// Why it waits.
    pub reason: Option<String>,
    /// When it answered last.
    pub polled_at: Option<Time>,
}

/// What the source plugin found in the bytes, beside what it answered: a plugin that finds
/// something and stays silent shows here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Items {
    pub messages: u64,
    pub refused: u64,
    pub controls: u64,
    /// Items that were settled.
    pub settled: u64,
    /// Of these, settled with bytes for the peer.
    pub answered: u64,
}

/// Something odd that was taken all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    pub code: String,
    pub count: u64,
    /// The newest, in the plugin's words.
    pub text: String,
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Destination {
    pub name: String,
    /// The sender's plugin, or `route INTERFACE`.
    pub to: String,
    pub order: String,
    pub state: DestinationState,
    /// Why it waits or stopped.
    pub why: Option<Reason>,
    /// Since when it waits or is stopped.
    pub since: Option<Time>,
    /// When it is asked again.
    pub until: Option<Time>,
    /// Who paused it, and why; none: nobody.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// Deliveries that are pending.
    pub waiting: u64,
    /// When the oldest of them was stored.
    pub oldest: Option<Time>,
    /// Deliveries that a person must look at.
    pub quarantined: u64,
    /// Runs in hand.
    pub runs: u64,
    /// Lanes that wait for a retry or for an operator.
    pub lanes_blocked: u64,
    /// The first of them.
    pub blocked: Vec<BlockedLane>,
    pub counts: DeliveryCounts,
    /// How fast it is sent to; none: as fast as it takes.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// From receipt to arrival, since the start.
    #[serde(default)]
    pub latency: DeliveryLatency,
}

/// How fast a destination is sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Such as `100/s`.
    pub limit: String,
    pub burst: u32,
    /// `wait` or `drop`.
    pub over: String,
    /// Something could be sent, if the rate was not used up.
    pub waits: bool,
}

/// Whether a destination works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DestinationState {
    Running,
    /// It is away, and asked again by itself.
    Waiting,
    /// Until an operator resumes it.
    Stopped,
    /// An operator paused it, until it is resumed.
    Paused,
}

impl DestinationState {
    pub const ALL: [DestinationState; 4] = [
        DestinationState::Running,
        DestinationState::Waiting,
        DestinationState::Stopped,
        DestinationState::Paused,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            DestinationState::Running => "running",
            DestinationState::Waiting => "waiting",
            DestinationState::Stopped => "stopped",
            DestinationState::Paused => "paused",
        }
    }
}

/// The message that a lane waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedLane {
    pub lane: u16,
    pub message: u64,
    /// What its last try came to; of a quarantined message the reason of its quarantine.
    pub why: String,
    pub attempts: u32,
    /// When it is tried again; none: when an operator resends or dismisses it.
    pub due_at: Option<Time>,
}

/// What became of a destination's deliveries since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryCounts {
    pub sent: u64,
    pub filtered: u64,
    pub quarantined: u64,
    pub retried: u64,
    /// Not sent because the rate was used up; these are among the filtered.
    #[serde(default)]
    pub dropped: u64,
}

/// How long deliveries that were sent had taken since their message was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryLatency {
    pub count: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// A plugin in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plugin {
    pub name: String,
    pub version: String,
    pub kind: String,
    pub digest: String,
    /// Where it comes from; none: with Portway.
    pub path: Option<String>,
    /// It takes the name of one that comes with Portway.
    pub replaces: bool,
}

/// Something that was refused before it was a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    pub interface: String,
    pub reason: String,
    pub count: u64,
    /// The newest.
    pub at: Option<Time>,
    pub peer: Option<String>,
    pub text: Option<String>,
}
