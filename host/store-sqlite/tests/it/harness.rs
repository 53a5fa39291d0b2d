//! A store in a folder of its own, and short ways to write to it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, Attributes, DestinationId, Draft, Epoch, GroupId, InterfaceId, Lane, MessageId, Round,
    Timestamp,
};
use portway_store::{
    Claimed, DeliveryResult, Durability, Expiry, NewDelivery, NewMessage, Registration, Settled, Store,
    StoreError, Topology, WriteBatch, WriteOutcome,
};
use portway_store_sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

pub(crate) struct Folder {
    pub(crate) folder: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Folder { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// Removes the file and what SQLite keeps beside it.
    pub(crate) fn remove_store(&self) {
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    pub(crate) fn settings(&self) -> SqliteSettings {
        SqliteSettings { free_floor_bytes: 0, ..SqliteSettings::new(self.path()) }
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        let store = SqliteStore::open(self.settings()).await.unwrap();
        register(&store).await;
        store
    }
}

/// Interface 1 with destinations 1 to 3. Says whether the store was left uncleanly.
pub(crate) async fn register(store: &SqliteStore) -> bool {
    let destinations = ["x", "y", "z"].map(str::to_owned).to_vec();
    let interface = Registration { name: "a".into(), destinations, ..Registration::default() };
    let topology = Topology { interfaces: vec![interface], now: NOW };
    let registered = store.register(&topology).await.unwrap();
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    match store.claim(&groups, NOW).await.unwrap() {
        Claimed::Owned(tenure) => tenure.unclean,
        Claimed::Refused(owners) => panic!("{owners:?}"),
    }
}

/// A message for destinations 1 to 3, in the first lane.
pub(crate) fn message(body: impl Into<Bytes>) -> NewMessage {
    let deliveries =
        (1..=3).map(|n| NewDelivery { destination: DestinationId(n), lane: Lane::FIRST }).collect();
    NewMessage {
        interface: InterfaceId(1),
        group: GroupId(1),
        received_at: NOW,
        draft: Draft {
            body: body.into(),
            key: None,
            dedupe: None,
            occurred_at: None,
            attributes: Attributes::default(),
            doubt: None,
        },
        dedupe: None,
        origin: None,
        edited: None,
        terms: Vec::new(),
        deliveries,
    }
}

pub(crate) fn sent(message: u64, destination: u32) -> DeliveryResult {
    DeliveryResult {
        epoch: Epoch(1),
        state: Vec::new(),
        destination: DestinationId(destination),
        message: MessageId(message),
        round: Round(0),
        attempts: AttemptNo(1),
        settled: Settled::Sent(Answer::default()),
        attempted: None,
        output: None,
    }
}

/// An empty batch with a mark of its own.
pub(crate) fn batch(durability: Durability) -> WriteBatch {
    static MARK: AtomicU64 = AtomicU64::new(1);
    WriteBatch { mark: MARK.fetch_add(1, Ordering::Relaxed), now: NOW, durability, ..WriteBatch::default() }
}

pub(crate) async fn store(
    store: &SqliteStore,
    messages: Vec<NewMessage>,
) -> Result<WriteOutcome, StoreError> {
    store.write(WriteBatch { messages, ..batch(Durability::Strict) }).await
}

/// When everything that is stored at [`NOW`] is older than any window.
pub(crate) const LATER: Timestamp = Timestamp(NOW.0 + 50 * 86_400_000);

/// Removes what is old by then; how many messages.
pub(crate) async fn expire(store: &dyn Store, now: Timestamp) -> u64 {
    let mut messages = 0;
    loop {
        let expiry = Expiry { now, aged_to: now, limit: 1_000 };
        let expired = store.expire(&expiry).await.unwrap();
        messages += expired.messages;
        if !expired.goes_on {
            return messages;
        }
    }
}

/// A connection beside the store's, as an operator's shell would have.
pub(crate) fn beside(path: &std::path::Path) -> rusqlite::Connection {
    // Waits five seconds for others.
    rusqlite::Connection::open(path).unwrap()
}
