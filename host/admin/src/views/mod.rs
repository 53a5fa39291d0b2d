//! What the API answers with. The commands read the same types back.

mod destination;
mod message;
mod retention;
mod state;
mod status;
mod stream;
mod time;
pub(crate) mod words;

pub use destination::{DestinationActionDone, DestinationActionRecord, Pause};
pub use message::{
    ActionDone, ActionRecord, Attempt, Backup, BulkDone, BulkItem, Delivery, Edited, Message, MessageDetail,
    MessagePage, Output,
};
pub use retention::{
    ClockDoubt, Counted, KeptBeyond, Retention, RetentionChange, RetentionConfirmation, RetentionConfirmed,
    RetentionCounts, Retentions, WaitingRetention, Window,
};
pub use state::{StateKey, StatePage, StateRemoved, StateValue};
pub use status::{
    BlockedLane, Commits, Count, DeliveryCounts, DeliveryLatency, Destination, DestinationState, Drain,
    Draining, Engine, EngineOnStore, EngineState, Health, Intake, Interface, Items, Listener, Memory, Notice,
    Plugin, PluginCounts, Poll, Rate, Reason, Refused, SecretUses, SourceCounts, Status, Store, StoreAway,
    Traces,
};
pub use stream::{EngineNow, Trouble};
pub use time::Time;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of every answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Error {
    /// For programs, kebab-case.
    pub code: String,
    /// For people.
    pub message: String,
    /// Names the request in the engine's log.
    pub request_id: String,
}
