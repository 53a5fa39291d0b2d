//! The store: who does what for each method of the port.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use portway_model::{DestinationId, InterfaceId, Lane, MessageId, Timestamp};
use portway_store::{
    ActionView, AttemptView, DeliveryView, LaneHead, ListMessages, Maintenance, MessageView, Page, Pending,
    QueueView, Registered, Store, StoreError, StoredMessage, Topology, WriteBatch, WriteOutcome,
};
use tokio::sync::Mutex;

use crate::lock::Lock;
use crate::maintenance::Room;
use crate::open::{self, OpenError, SqliteSettings};
use crate::readers::Readers;
use crate::retention::{PASSES_MAX, REMOVED_MAX};
use crate::writer::Writer;
use crate::{backup, delivery, view};

/// A store in one SQLite file, for one engine.
pub struct SqliteStore {
    path: PathBuf,
    /// The name under which this engine owns groups.
    engine: String,
    writer: Mutex<Writer>,
    readers: Readers,
    readers_max: usize,
    room: Room,
    /// Last: let go of after all connections.
    lock: Mutex<Option<Lock>>,
}

impl SqliteStore {
    /// Opens the file, or makes it. Refuses what is not a sound store of this program, or in use.
    pub async fn open(settings: SqliteSettings) -> Result<SqliteStore, OpenError> {
        let opened = open::open(&settings).await?;
        let path = settings.path;
        let writer = Writer::new(&path, opened.writer, opened.log_bytes).await;
        let writer = writer.map_err(|source| OpenError::database(&path, source))?;
        Ok(SqliteStore {
            engine: format!("{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()),
            writer: Mutex::new(writer),
            readers: Readers::new(&path, settings.readers),
            readers_max: settings.readers,
            room: Room::new(&path, settings.free_floor_bytes, settings.wal_bytes_max),
            lock: Mutex::new(Some(opened.lock)),
            path,
        })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn register(&self, topology: &Topology) -> Result<Registered, StoreError> {
        self.writer.lock().await.register(topology, &self.engine).await
    }

    async fn write(&self, batch: WriteBatch) -> Result<WriteOutcome, StoreError> {
        let mut writer = self.writer.lock().await;
        if !batch.messages.is_empty() {
            self.room.check(&writer.log)?;
        }
        let outcome = writer.write(&batch).await;
        self.room.tend(&mut writer).await;
        outcome
    }

    async fn find_mark(&self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        self.writer.lock().await.find_mark(mark).await
    }

    async fn destinations_with_work(&self) -> Result<Vec<DestinationId>, StoreError> {
        delivery::destinations_with_work(&mut self.readers.get().await?).await
    }

    async fn lane_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        delivery::lane_heads(&mut self.readers.get().await?, destination).await
    }

    async fn held_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        delivery::held_heads(&mut self.readers.get().await?, destination).await
    }

    async fn read_lane(
        &self,
        destination: DestinationId,
        lane: Lane,
        after: MessageId,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        delivery::read_lane(&mut self.readers.get().await?, destination, lane, after, limit).await
    }

    async fn read_due(
        &self,
        destination: DestinationId,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        delivery::read_due(&mut self.readers.get().await?, destination, until, limit).await
    }

    async fn next_due(
        &self,
        destination: DestinationId,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        delivery::next_due(&mut self.readers.get().await?, destination, after).await
    }

    async fn load_messages(&self, ids: &[MessageId]) -> Result<Vec<StoredMessage>, StoreError> {
        view::load_messages(&mut self.readers.get().await?, ids).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueView>, StoreError> {
        delivery::list_queues(&mut self.readers.get().await?).await
    }

    async fn list_messages(&self, list: &ListMessages) -> Result<Page<MessageView>, StoreError> {
        view::list_messages(&mut self.readers.get().await?, list).await
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<MessageView>, StoreError> {
        view::get_message(&mut self.readers.get().await?, id).await
    }

    async fn list_deliveries(&self, id: MessageId) -> Result<Vec<DeliveryView>, StoreError> {
        view::list_deliveries(&mut self.readers.get().await?, id).await
    }

    async fn list_attempts(&self, id: MessageId) -> Result<Vec<AttemptView>, StoreError> {
        view::list_attempts(&mut self.readers.get().await?, id).await
    }

    async fn list_actions(&self, id: MessageId) -> Result<Vec<ActionView>, StoreError> {
        view::list_actions(&mut self.readers.get().await?, id).await
    }

    async fn prune(
        &self,
        interface: InterfaceId,
        before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        for _ in 0..PASSES_MAX {
            let left = limit.saturating_sub(u32::try_from(removed).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            // The writer is free between two transactions.
            let pruned =
                self.writer.lock().await.prune(interface, before, now, left.min(REMOVED_MAX)).await?;
            removed += pruned.messages;
            if !pruned.more {
                break;
            }
        }
        Ok(removed)
    }

    async fn backup(&self, target: &Path) -> Result<(), StoreError> {
        backup::backup(&self.path, target).await
    }

    async fn maintain(&self, free_wait: Duration) -> Result<Maintenance, StoreError> {
        self.room.maintain(&self.writer, free_wait).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.readers.close(self.readers_max).await;
        self.room.close().await;
        self.writer.lock().await.close().await?;
        // Only now may another engine open the file.
        self.lock.lock().await.take();
        Ok(())
    }
}
