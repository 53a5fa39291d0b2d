//! The storage port: what the engine asks of a store, in domain words.
//!
//! Also the conformance suite that every adapter passes and the in-memory store of
//! the simulation. It must not know SQL, plugins or sockets.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod mark;
#[cfg(feature = "memory")]
pub mod memory;
mod migration;
mod numbers;
mod ownership;
mod read;
mod retention;
mod store;
mod write;

pub use error::{ErrorKind, StoreError};
pub use migration::{
    Head, HeadError, Migration, Others, TableWork, UpgradePlan, UpgradeStep, Upgraded, Work, oldest_binary,
};
pub use numbers::Numbers;
pub use ownership::{Claimed, EngineView, News, Owner, Tenure};
pub use read::{
    ActionView, AttemptView, DeliveryView, DestinationActionView, LaneHead, ListMessages, ListStateKeys,
    MessageView, OutputBody, OutputView, Page, Pause, Pending, QueueView, StoredMessage,
};
pub use retention::{
    ConfirmRetention, Counted, Expired, Expiry, KeptBeyond, MoveRetention, Moved, RetentionConfirmed,
    RetentionView,
};
pub use store::{Maintenance, Registered, Registration, Store, Topology};
pub use write::{
    Action, ActionKind, ActionOutcome, Attempted, DedupeWindow, DeliveryResult, DestinationAction,
    DestinationActionKind, Durability, Edited, MessageOutcome, NewDelivery, NewMessage, Origin, OriginKind,
    ResultOutcome, Settled, SourceCursor, StateKey, Suspect, WriteBatch, WriteOutcome,
};
