//! The words of Portway as types: ids, messages, deliveries, retry, lanes.
//!
//! Pure: no IO, no clock, no async. It must not know storage, plugins, sockets or
//! configuration files; everything above it does.

pub mod attributes;
pub mod code;
pub mod cost;
pub mod delivery;
pub mod guarantee;
pub mod ids;
pub mod lane;
pub mod message;
pub mod outcome;
pub mod rate;
pub mod retention;
pub mod retry;
pub mod saved;
pub mod state;
pub mod term;
pub mod time;

pub use attributes::Attributes;
pub use cost::Cost;
pub use delivery::{DeliveryState, MessageStatus};
pub use guarantee::Guarantee;
pub use ids::{AttemptNo, DestinationId, Epoch, GroupId, InterfaceId, MessageId, Round};
pub use lane::{Lane, Order};
pub use message::{Draft, Envelope, Key};
pub use outcome::{Answer, Failure, Later, Output, SendVerdict, TransformVerdict, Trouble};
pub use rate::{OverRate, Per, Rate, RateLimit};
pub use retention::{
    Confirmation, Quarantined, Retention, RetentionChange, RetentionState, Tier, WaitingRetention,
};
pub use retry::{Next, OnQuarantine, RetryPolicy};
pub use saved::{SavedBody, SavedOutput};
pub use state::StateWrite;
pub use term::Term;
pub use time::Timestamp;
