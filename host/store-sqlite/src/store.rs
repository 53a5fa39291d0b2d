//! The store: who does what for each method of the port.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::{DestinationId, GroupId, InterfaceId, Lane, MessageId, RetentionState, Timestamp};
use portway_store::{
    ActionView, AttemptView, Claimed, ConfirmRetention, DeliveryView, DestinationActionView, EngineView,
    ErrorKind, Expired, Expiry, LaneHead, ListMessages, ListStateKeys, Maintenance, MessageView,
    MoveRetention, Moved, News, OutputView, Page, Pending, QueueView, Registered, RetentionView, Store,
    StoreError, StoredMessage, Topology, WriteBatch, WriteOutcome,
};

use crate::lock::Lock;
use crate::maintenance::Room;
use crate::open::{self, OpenError, SqliteSettings};
use crate::readers::Readers;
use crate::thread::{WriterThreads, start_apart};
use crate::writer::Writer;
use crate::{backup, cursor, delivery, destination, output, owner, retention, state, suspect, view};

/// A store in one SQLite file, for one engine.
pub struct SqliteStore {
    path: PathBuf,
    /// The name under which this engine owns groups.
    engine: String,
    started_at: Timestamp,
    writer: WriterThreads,
    readers: Arc<Readers>,
    room: Arc<Room>,
    /// Last: let go of after all connections.
    lock: Mutex<Option<Lock>>,
}

impl SqliteStore {
    /// Opens the file, or makes it. Refuses what is not a sound store of this program, or in use.
    pub async fn open(settings: SqliteSettings) -> Result<SqliteStore, OpenError> {
        let path = settings.path.clone();
        let opened = start_apart("store-open", move || SqliteStore::open_now(&settings)).await;
        let ended = |_| OpenError::Io { path, source: io::Error::other("the thread that opens it ended") };
        opened.map_err(ended)?
    }

    fn open_now(settings: &SqliteSettings) -> Result<SqliteStore, OpenError> {
        let path = settings.path.as_path();
        let opened = open::open(settings)?;
        let writer = Writer::new(opened.writer, opened.log_bytes);
        let writer = writer.map_err(|source| OpenError::database(path, source))?;
        let writer = WriterThreads::start(writer);
        Ok(SqliteStore {
            engine: format!("{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()),
            started_at: now(),
            writer: writer.map_err(|source| OpenError::Io { path: path.to_path_buf(), source })?,
            readers: Readers::new(path, settings.readers),
            room: Arc::new(Room::new(path, settings.free_floor_bytes, settings.wal_bytes_max)),
            lock: Mutex::new(Some(opened.lock)),
            path: path.to_path_buf(),
        })
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[async_trait]
impl Store for SqliteStore {
    async fn register(&self, topology: &Topology) -> Result<Registered, StoreError> {
        let topology = topology.clone();
        self.writer.run(move |writer| writer.register(&topology)).await
    }

    async fn claim(&self, groups: &[GroupId], _now: Timestamp) -> Result<Claimed, StoreError> {
        let (groups, engine) = (groups.to_vec(), self.engine.clone());
        self.writer.run(move |writer| writer.claim(&groups, &engine)).await.map(Claimed::Owned)
    }

    async fn list_engines(&self) -> Result<Vec<EngineView>, StoreError> {
        let engine = self.engine.clone();
        let groups = self.readers.read(move |reader| owner::groups(reader, &engine)).await?;
        let (engine, started_at) = (self.engine.clone(), self.started_at);
        Ok(vec![EngineView { engine, started_at, is_self: true, groups }])
    }

    /// Nobody else opens the file.
    async fn news(&self) -> News {
        std::future::pending().await
    }

    async fn write(&self, batch: WriteBatch) -> Result<WriteOutcome, StoreError> {
        let room = Arc::clone(&self.room);
        let write = move |writer: &mut Writer| {
            if !batch.messages.is_empty() {
                room.check(&writer.log)?;
            }
            let outcome = writer.write(&batch);
            room.tend(writer);
            outcome
        };
        self.writer.run_or(ErrorKind::Unknown, write).await
    }

    async fn find_mark(&self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        self.writer.run(move |writer| writer.find_mark(mark)).await
    }

    async fn source_cursor(&self, interface: InterfaceId) -> Result<Option<Bytes>, StoreError> {
        self.readers.read(move |reader| cursor::read(reader, interface)).await
    }

    async fn get_state(
        &self,
        destination: DestinationId,
        space: &str,
        key: &str,
    ) -> Result<Option<Bytes>, StoreError> {
        let (space, key) = (space.to_owned(), key.to_owned());
        self.readers.read(move |reader| state::get(reader, destination, &space, &key)).await
    }

    async fn list_state_keys(&self, list: &ListStateKeys) -> Result<Vec<String>, StoreError> {
        let list = list.clone();
        self.readers.read(move |reader| state::list_keys(reader, &list)).await
    }

    async fn count_state(
        &self,
        destination: DestinationId,
        space: &str,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let space = space.to_owned();
        self.readers.read(move |reader| state::count(reader, destination, &space, limit)).await
    }

    async fn count_pending(&self, destinations: &[DestinationId], limit: u32) -> Result<u32, StoreError> {
        let destinations = destinations.to_vec();
        self.readers.read(move |reader| delivery::count_pending(reader, &destinations, limit)).await
    }

    async fn destinations_with_work(&self) -> Result<Vec<DestinationId>, StoreError> {
        self.readers.read(delivery::destinations_with_work).await
    }

    async fn lane_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        self.readers.read(move |reader| delivery::lane_heads(reader, destination)).await
    }

    async fn held_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        self.readers.read(move |reader| delivery::held_heads(reader, destination)).await
    }

    async fn list_suspects(&self, destination: DestinationId) -> Result<Vec<MessageId>, StoreError> {
        self.readers.read(move |reader| suspect::list(reader, destination)).await
    }

    async fn read_lane(
        &self,
        destination: DestinationId,
        lane: Lane,
        after: MessageId,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        self.readers.read(move |reader| delivery::read_lane(reader, destination, lane, after, limit)).await
    }

    async fn read_due(
        &self,
        destination: DestinationId,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        self.readers.read(move |reader| delivery::read_due(reader, destination, until, limit)).await
    }

    async fn next_due(
        &self,
        destination: DestinationId,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.readers.read(move |reader| delivery::next_due(reader, destination, after)).await
    }

    async fn load_messages(&self, ids: &[MessageId]) -> Result<Vec<StoredMessage>, StoreError> {
        let ids = ids.to_vec();
        self.readers.read(move |reader| view::load_messages(reader, &ids)).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueView>, StoreError> {
        self.readers.read(delivery::list_queues).await
    }

    async fn list_messages(&self, list: &ListMessages) -> Result<Page<MessageView>, StoreError> {
        let list = list.clone();
        self.readers.read(move |reader| view::list_messages(reader, &list)).await
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<MessageView>, StoreError> {
        self.readers.read(move |reader| view::get_message(reader, id)).await
    }

    async fn list_deliveries(&self, id: MessageId) -> Result<Vec<DeliveryView>, StoreError> {
        self.readers.read(move |reader| view::list_deliveries(reader, id)).await
    }

    async fn list_attempts(&self, id: MessageId) -> Result<Vec<AttemptView>, StoreError> {
        self.readers.read(move |reader| view::list_attempts(reader, id)).await
    }

    async fn list_outputs(&self, id: MessageId) -> Result<Vec<OutputView>, StoreError> {
        self.readers.read(move |reader| output::list(reader, id)).await
    }

    async fn load_output(
        &self,
        id: MessageId,
        destination: DestinationId,
    ) -> Result<Option<Bytes>, StoreError> {
        self.readers.read(move |reader| output::load(reader, id, destination)).await
    }

    async fn list_actions(&self, id: MessageId) -> Result<Vec<ActionView>, StoreError> {
        self.readers.read(move |reader| view::list_actions(reader, id)).await
    }

    async fn list_edits(&self, id: MessageId) -> Result<Vec<MessageId>, StoreError> {
        self.readers.read(move |reader| view::list_edits(reader, id)).await
    }

    async fn list_destination_actions(
        &self,
        destination: DestinationId,
    ) -> Result<Vec<DestinationActionView>, StoreError> {
        self.readers.read(move |reader| destination::list_actions(reader, destination)).await
    }

    async fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError> {
        let expiry = *expiry;
        self.writer.run(move |writer| writer.expire(&expiry)).await
    }

    async fn move_retention(&self, step: &MoveRetention) -> Result<Moved, StoreError> {
        let step = *step;
        self.writer.run(move |writer| writer.move_retention(&step)).await
    }

    async fn confirm_retention(
        &self,
        confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError> {
        let confirm = confirm.clone();
        self.writer.run(move |writer| writer.confirm_retention(&confirm)).await
    }

    async fn list_retention(&self, age_now: Timestamp) -> Result<Vec<RetentionView>, StoreError> {
        let kept = self.writer.run(|writer| Ok(writer.kept())).await?;
        self.readers.read(move |reader| retention::list(reader, age_now, &kept)).await
    }

    async fn backup(&self, target: &Path) -> Result<(), StoreError> {
        let (from, target) = (self.path.clone(), target.to_path_buf());
        let copied = start_apart("store-backup", move || backup::backup(&from, &target)).await;
        copied
            .map_err(|_| StoreError::new(ErrorKind::Unavailable, "the thread that copies the store ended"))?
    }

    async fn maintain(&self, free_wait: Duration) -> Result<Maintenance, StoreError> {
        self.room.maintain(&self.writer, free_wait).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let readers = self.readers.close().await;
        let mover = self.room.close().await;
        let close = move |writer: &mut Writer| {
            // Nothing was written on them.
            drop((readers, mover));
            writer.close()
        };
        self.writer.run(close).await?;
        // Only now may another engine open the file.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }
}
