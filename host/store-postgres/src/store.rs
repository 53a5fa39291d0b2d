//! The store: who does what for each method of the port.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::{DestinationId, GroupId, InterfaceId, Lane, MessageId, RetentionState, Timestamp};
use portway_store::{
    ActionView, AttemptView, Claimed, ConfirmRetention, DeliveryView, DestinationActionView, EngineView,
    ErrorKind, Expired, Expiry, LaneHead, ListMessages, ListStateKeys, Maintenance, MessageView,
    MoveRetention, Moved, News, OutputView, Page, Pending, QueueView, Registered, RetentionView, Store,
    StoreError, StoredMessage, Topology, WriteBatch, WriteOutcome,
};
use tokio::sync::Mutex;

use crate::keeper::Keeper;
use crate::open::{self, OpenError};
use crate::partition::{self, Period};
use crate::readers::read;
use crate::settings::PostgresSettings;
use crate::tenure::Tenures;
use crate::writer::{Shared, Writer};
use crate::{cursor, delivery, destination, output, owner, retention, state, suspect, view};

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    shared: Arc<Shared>,
    writer: Mutex<Writer>,
    tenure: Tenures,
    keeper: Mutex<Keeper>,
}

impl PostgresStore {
    /// Connects, and brings the tables up to date. Refuses what cannot be relied on.
    pub async fn open(settings: PostgresSettings) -> Result<PostgresStore, OpenError> {
        let opened = open::open(&settings).await?;
        Ok(PostgresStore {
            keeper: Mutex::new(Keeper::new(Arc::clone(&opened.shared))),
            shared: opened.shared,
            writer: Mutex::new(opened.writer),
            tenure: opened.tenure,
        })
    }

    /// The periods messages are stored in.
    pub async fn list_periods(&self) -> Result<Vec<Period>, StoreError> {
        read!(self.shared.readers, partition::periods)
    }

    /// Removes a period with all that is in it, whether it is needed or not; nobody who stores or reads waits
    /// for it. If somebody reads it for longer than a moment, it is to be tried again.
    pub async fn remove_period(&self, period: Period) -> Result<(), StoreError> {
        read!(self.shared.readers, partition::remove, period)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn register(&self, topology: &Topology) -> Result<Registered, StoreError> {
        self.writer.lock().await.register(topology).await
    }

    async fn claim(&self, groups: &[GroupId], now: Timestamp) -> Result<Claimed, StoreError> {
        self.tenure.claim(groups, now).await
    }

    async fn list_engines(&self) -> Result<Vec<EngineView>, StoreError> {
        read!(self.shared.readers, owner::engines, self.tenure.engine())
    }

    async fn news(&self) -> News {
        self.shared.told.next().await
    }

    async fn write(&self, batch: WriteBatch) -> Result<WriteOutcome, StoreError> {
        self.writer.lock().await.write(&batch).await
    }

    async fn find_mark(&self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        self.writer.lock().await.find_mark(mark).await
    }

    async fn source_cursor(&self, interface: InterfaceId) -> Result<Option<Bytes>, StoreError> {
        read!(self.shared.readers, cursor::read, interface)
    }

    async fn get_state(
        &self,
        destination: DestinationId,
        space: &str,
        key: &str,
    ) -> Result<Option<Bytes>, StoreError> {
        read!(self.shared.readers, state::get, destination, space, key)
    }

    async fn list_state_keys(&self, list: &ListStateKeys) -> Result<Vec<String>, StoreError> {
        read!(self.shared.readers, state::list_keys, list)
    }

    async fn count_state(
        &self,
        destination: DestinationId,
        space: &str,
        limit: u32,
    ) -> Result<u32, StoreError> {
        read!(self.shared.readers, state::count, destination, space, limit)
    }

    async fn count_pending(&self, destinations: &[DestinationId], limit: u32) -> Result<u32, StoreError> {
        read!(self.shared.readers, delivery::count_pending, destinations, limit)
    }

    async fn destinations_with_work(&self) -> Result<Vec<DestinationId>, StoreError> {
        read!(self.shared.readers, delivery::destinations_with_work)
    }

    async fn lane_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        read!(self.shared.readers, delivery::lane_heads, destination)
    }

    async fn held_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        read!(self.shared.readers, delivery::held_heads, destination)
    }

    async fn list_suspects(&self, destination: DestinationId) -> Result<Vec<MessageId>, StoreError> {
        read!(self.shared.readers, suspect::list, destination)
    }

    async fn read_lane(
        &self,
        destination: DestinationId,
        lane: Lane,
        after: MessageId,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        read!(self.shared.readers, delivery::read_lane, destination, lane, after, limit)
    }

    async fn read_due(
        &self,
        destination: DestinationId,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        read!(self.shared.readers, delivery::read_due, destination, until, limit)
    }

    async fn next_due(
        &self,
        destination: DestinationId,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        read!(self.shared.readers, delivery::next_due, destination, after)
    }

    async fn load_messages(&self, ids: &[MessageId]) -> Result<Vec<StoredMessage>, StoreError> {
        read!(self.shared.readers, view::load_messages, ids, &self.shared.days)
    }

    async fn list_queues(&self) -> Result<Vec<QueueView>, StoreError> {
        read!(self.shared.readers, delivery::list_queues)
    }

    async fn list_messages(&self, list: &ListMessages) -> Result<Page<MessageView>, StoreError> {
        read!(self.shared.readers, view::list_messages, list)
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<MessageView>, StoreError> {
        read!(self.shared.readers, view::get_message, id)
    }

    async fn list_deliveries(&self, id: MessageId) -> Result<Vec<DeliveryView>, StoreError> {
        read!(self.shared.readers, view::list_deliveries, id)
    }

    async fn list_attempts(&self, id: MessageId) -> Result<Vec<AttemptView>, StoreError> {
        read!(self.shared.readers, view::list_attempts, id)
    }

    async fn list_outputs(&self, id: MessageId) -> Result<Vec<OutputView>, StoreError> {
        read!(self.shared.readers, output::list, id)
    }

    async fn load_output(
        &self,
        id: MessageId,
        destination: DestinationId,
    ) -> Result<Option<Bytes>, StoreError> {
        read!(self.shared.readers, output::load, id, destination)
    }

    async fn list_actions(&self, id: MessageId) -> Result<Vec<ActionView>, StoreError> {
        read!(self.shared.readers, view::list_actions, id)
    }

    async fn list_edits(&self, id: MessageId) -> Result<Vec<MessageId>, StoreError> {
        read!(self.shared.readers, view::list_edits, id)
    }

    async fn list_destination_actions(
        &self,
        destination: DestinationId,
    ) -> Result<Vec<DestinationActionView>, StoreError> {
        read!(self.shared.readers, destination::list_actions, destination)
    }

    async fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError> {
        self.keeper.lock().await.expire(expiry).await
    }

    async fn move_retention(&self, step: &MoveRetention) -> Result<Moved, StoreError> {
        self.keeper.lock().await.move_retention(step).await
    }

    async fn confirm_retention(
        &self,
        confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError> {
        self.keeper.lock().await.confirm_retention(confirm).await
    }

    async fn list_retention(&self, age_now: Timestamp) -> Result<Vec<RetentionView>, StoreError> {
        let kept = self.shared.housekeeping.kept();
        read!(self.shared.readers, retention::list, age_now, &kept)
    }

    /// A server has ways of its own, which know of what is in its memory and in its log.
    async fn backup(&self, _target: &Path) -> Result<(), StoreError> {
        let text =
            "a store on PostgreSQL is not copied from here: use `pg_dump` or the backups of the server";
        Err(StoreError::new(ErrorKind::Refused, text))
    }

    async fn maintain(&self, _free_wait: Duration) -> Result<Maintenance, StoreError> {
        let Shared { readers, days, housekeeping, .. } = &*self.shared;
        let mut reader = readers.take().await?;
        let maintained = housekeeping.run(&mut reader.session, days).await;
        readers.keep(reader);
        Ok(maintained?)
    }

    /// As the server told when the session that writes was begun.
    fn notes(&self) -> Vec<String> {
        self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.keeper.lock().await.close().await;
        self.shared.readers.close();
        // No result of this tenure comes any more once its groups are given back.
        let mut writer = self.writer.lock().await;
        let released = self.tenure.close().await;
        writer.close().await?;
        released
    }
}
