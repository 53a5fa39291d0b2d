//! The port itself.

use std::path::Path;
use std::time::Duration;

use crate::{
    ActionView, AttemptView, Claimed, ConfirmRetention, DeliveryView, DestinationActionView, EngineView,
    Expired, Expiry, LaneHead, ListMessages, ListStateKeys, MessageView, MoveRetention, Moved, News,
    OutputView, Page, Pause, Pending, QueueView, RetentionView, StoreError, StoredMessage, WriteBatch,
    WriteOutcome,
};
use async_trait::async_trait;
use bytes::Bytes;
use portway_model::{
    DestinationId, GroupId, InterfaceId, Lane, MessageId, Retention, RetentionState, Timestamp,
};

/// The interfaces and destinations a project has now, by name.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub interfaces: Vec<Registration>,
    /// When they are registered.
    pub now: Timestamp,
}

/// One interface and its destinations.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    pub name: String,
    pub destinations: Vec<String>,
    /// As it is configured.
    pub retention: Retention,
}

/// The numbers of a [`Topology`], in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    pub interfaces: Vec<(InterfaceId, Vec<DestinationId>)>,
    /// The store's own name, drawn when it was made and kept for its life: with it a message's id
    /// is unique in the world.
    pub store: String,
    /// Destinations that are paused, by number; also of those that the topology does not name.
    pub pauses: Vec<(DestinationId, Pause)>,
    /// The retention of every interface, by number; also of those that the topology does not name.
    pub retentions: Vec<(InterfaceId, RetentionState)>,
    /// How far messages have grown old: as the last [`Expiry`] said, or when the oldest message was stored.
    /// None: there was neither.
    pub aged_to: Option<Timestamp>,
}

/// A durable store of messages, their deliveries and what was done to them.
///
/// Several engines may use one; each has a `Store` of its own. Of each engine writes come one at a time,
/// from its writer; beside them come steps with old messages, one at a time too. Reads come from anywhere
/// at any time, see whole transactions only, and see every write that has returned. Any engine may store
/// messages; deliveries of a group belong to its owner.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Gives every interface and destination a number: a known name its own, a new one a new one.
    /// Says what retention is wanted: a change that keeps more begins with it, one that removes messages
    /// waits.
    async fn register(&self, topology: &Topology) -> Result<Registered, StoreError>;

    /// Makes this engine the owner of groups from `now` on: of all of them, or of none. Those that it owns already
    /// stay its own. An owner is gone when it closed the store or its lock is gone; until then nobody
    /// else gets its groups.
    async fn claim(&self, groups: &[GroupId], now: Timestamp) -> Result<Claimed, StoreError>;

    /// Engines that use the store now, and what they own.
    async fn list_engines(&self) -> Result<Vec<EngineView>, StoreError>;

    /// Waits until something happened that this engine did not do. Asked by one at a time.
    async fn news(&self) -> News;

    /// Everything of the batch in one transaction.
    async fn write(&self, batch: WriteBatch) -> Result<WriteOutcome, StoreError>;

    /// Whether the transaction with this mark was committed, and what became of it. Asked after
    /// [`crate::ErrorKind::Unknown`], before anything else is written.
    async fn find_mark(&self, mark: u64) -> Result<Option<WriteOutcome>, StoreError>;

    /// How far an interface's source has come; none: nothing was stored yet.
    async fn source_cursor(&self, interface: InterfaceId) -> Result<Option<Bytes>, StoreError>;

    /// What a plugin keeps under a key; none: nothing.
    async fn get_state(
        &self,
        destination: DestinationId,
        space: &str,
        key: &str,
    ) -> Result<Option<Bytes>, StoreError>;

    /// Keys with a prefix in byte order, after `after`.
    async fn list_state_keys(&self, list: &ListStateKeys) -> Result<Vec<String>, StoreError>;

    /// Values that a plugin keeps, counted up to `limit`.
    async fn count_state(
        &self,
        destination: DestinationId,
        space: &str,
        limit: u32,
    ) -> Result<u32, StoreError>;

    /// Pending deliveries of these destinations together, counted up to `limit`.
    async fn count_pending(&self, destinations: &[DestinationId], limit: u32) -> Result<u32, StoreError>;

    /// Destinations with at least one pending delivery.
    async fn destinations_with_work(&self) -> Result<Vec<DestinationId>, StoreError>;

    /// The first pending delivery of each ordered lane of a destination, by lane.
    async fn lane_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError>;

    /// The first quarantined delivery of each ordered lane of a destination, by lane.
    async fn held_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError>;

    /// What of a destination was recorded as suspect and has no result since, by message.
    async fn list_suspects(&self, destination: DestinationId) -> Result<Vec<MessageId>, StoreError>;

    /// Pending deliveries of a lane after a message, by message; in [`Lane::APART`] only those
    /// without `due_at`.
    async fn read_lane(
        &self,
        destination: DestinationId,
        lane: Lane,
        after: MessageId,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError>;

    /// Pending deliveries in [`Lane::APART`] with `due_at` up to `until`, by `due_at`, then message.
    async fn read_due(
        &self,
        destination: DestinationId,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError>;

    /// The earliest `due_at` in [`Lane::APART`] after `after`; none: nothing waits there for its time.
    async fn next_due(
        &self,
        destination: DestinationId,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// Messages with their bodies, by id; those that are gone are missing from the answer.
    async fn load_messages(&self, ids: &[MessageId]) -> Result<Vec<StoredMessage>, StoreError>;

    /// What waits at each destination that has something waiting or quarantined.
    async fn list_queues(&self) -> Result<Vec<QueueView>, StoreError>;

    /// Messages, newest first, without bodies.
    async fn list_messages(&self, list: &ListMessages) -> Result<Page<MessageView>, StoreError>;

    /// One message without its body.
    async fn get_message(&self, id: MessageId) -> Result<Option<MessageView>, StoreError>;

    /// Its deliveries, by destination.
    async fn list_deliveries(&self, id: MessageId) -> Result<Vec<DeliveryView>, StoreError>;

    /// Its recorded attempts, in order.
    async fn list_attempts(&self, id: MessageId) -> Result<Vec<AttemptView>, StoreError>;

    /// What its senders were given, by destination, where that is kept.
    async fn list_outputs(&self, id: MessageId) -> Result<Vec<OutputView>, StoreError>;

    /// The bytes that are kept of an output; none where there are none.
    async fn load_output(
        &self,
        id: MessageId,
        destination: DestinationId,
    ) -> Result<Option<Bytes>, StoreError>;

    /// What operators did to it, in order.
    async fn list_actions(&self, id: MessageId) -> Result<Vec<ActionView>, StoreError>;

    /// The corrected copies that were made of it, oldest first.
    async fn list_edits(&self, id: MessageId) -> Result<Vec<MessageId>, StoreError>;

    /// What operators did to a destination, newest first, at most [`DestinationActionView::KEPT_MAX`].
    async fn list_destination_actions(
        &self,
        destination: DestinationId,
    ) -> Result<Vec<DestinationActionView>, StoreError>;

    /// Removes messages of any interface that are older than its retention in force, with all that
    /// belongs to them; and expired dedupe keys. What is pending stays, and what is quarantined where
    /// its interface keeps it. One bounded step of a pass over all interfaces; a store that drops
    /// partitions drops or empties one. What a change that runs has not moved yet is kept.
    async fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError>;

    /// One bounded step of the change that an interface's old messages are going through: those past
    /// the new window go, as in [`Store::expire`], the others get the new tier. After the last step
    /// the change is over, and the next that waits begins.
    async fn move_retention(&self, step: &MoveRetention) -> Result<Moved, StoreError>;

    /// Records that an operator agrees to what waits for it. The change begins now, or after the one
    /// that runs; what it did is seen by comparing with the state before. None: nothing waits.
    async fn confirm_retention(
        &self,
        confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError>;

    /// The retention of every interface, by number. Looks at [`RetentionView::LOOKED_AT_MAX`] messages
    /// at most; `age_now` as in [`Expiry::now`].
    async fn list_retention(&self, age_now: Timestamp) -> Result<Vec<RetentionView>, StoreError>;

    /// A consistent copy into a file that does not exist yet, while the store is in use.
    async fn backup(&self, target: &Path) -> Result<(), StoreError>;

    /// Housekeeping between writes: checkpoints, free space. `free_wait` is how long it may take.
    async fn maintain(&self, free_wait: Duration) -> Result<Maintenance, StoreError>;

    /// What an operator should know of the store, though it works: a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Flushes, gives back what the engine owns and lets go. Nothing is called afterwards.
    async fn close(&self) -> Result<(), StoreError>;
}

/// What housekeeping found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// Room is below its floor, or the log above its limit: intake closes until it is not.
    pub full: bool,
    /// Free bytes on the disk of the store; none where that has no meaning.
    pub free_bytes: Option<u64>,
    /// Bytes of log that are not yet in the main file.
    pub log_bytes: u64,
    /// There was no time for all of it: room of removed messages is still to be given back.
    pub goes_on: bool,
}
