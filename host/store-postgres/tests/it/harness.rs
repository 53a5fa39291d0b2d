//! A store in a schema of a cluster of its own, and short ways to write to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, Attributes, DestinationId, Draft, Epoch, GroupId, InterfaceId, Lane, MessageId, Round,
    Timestamp,
};
use portway_store::conformance::Harness;
use portway_store::{
    Claimed, DeliveryResult, Durability, NewDelivery, NewMessage, Registration, Settled, Store, StoreError,
    Tenure, Topology, WriteBatch, WriteOutcome,
};
use portway_store_postgres::{PostgresSettings, PostgresStore};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A cluster; each store that is opened newly has a schema of its own in it.
pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    schemas: AtomicU64,
}

impl Server {
    /// Of the version this machine has.
    pub(crate) fn of_system() -> Server {
        Server::start(&Programs::of_system().unwrap(), &ClusterSettings::default())
    }

    /// Of version 18.
    pub(crate) fn embedded() -> Server {
        Server::start(&Programs::embedded().unwrap(), &ClusterSettings::default())
    }

    pub(crate) fn start(programs: &Programs, settings: &ClusterSettings) -> Server {
        Server { cluster: Cluster::start(programs, settings).unwrap(), schemas: AtomicU64::new(0) }
    }

    /// Settings for a schema that is empty.
    pub(crate) fn new_settings(&self) -> PostgresSettings {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed) + 1;
        self.cluster.sql(&format!("CREATE SCHEMA s{number}")).unwrap();
        self.settings()
    }

    /// Settings for a schema that is empty, with a clock of its own: see [`Server::set_clock`].
    pub(crate) fn new_settings_with_clock(&self) -> PostgresSettings {
        let settings = self.new_settings();
        // It is found before the function of the server.
        self.sql(
            "CREATE TABLE clock (days int NOT NULL); INSERT INTO clock VALUES (0);
            CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
                'SELECT pg_catalog.clock_timestamp() + make_interval(days => (SELECT days FROM clock))'",
        );
        PostgresSettings { url: format!("{},pg_catalog", settings.url), ..settings }
    }

    /// How many days the clock of the newest schema is ahead of the server's.
    pub(crate) fn set_clock(&self, days: i64) {
        self.sql(&format!("UPDATE clock SET days = {days}"));
    }

    /// Settings for the newest schema.
    pub(crate) fn settings(&self) -> PostgresSettings {
        PostgresSettings::new(self.url(), "one")
    }

    /// The address of the newest schema.
    pub(crate) fn url(&self) -> String {
        format!("{}?options[search_path]={}", self.cluster.url(), self.schema())
    }

    /// The newest schema.
    pub(crate) fn schema(&self) -> String {
        format!("s{}", self.schemas.load(Ordering::Relaxed))
    }

    /// A new store with the usual topology.
    pub(crate) async fn open(&self) -> PostgresStore {
        let store = PostgresStore::open(self.new_settings()).await.unwrap();
        register(&store).await;
        store
    }

    /// Statements in the newest schema, beside the store.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.cluster.sql(&format!("SET search_path = {}; {sql}", self.schema())).unwrap()
    }
}

/// Until so many sessions of engines wait for a lock, or something else has come about.
pub(crate) async fn blocked(server: &Server, count: u32, or: impl Fn() -> bool) {
    let blocked = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name LIKE 'portway%' AND wait_event_type = 'Lock'";
    while !or() && server.sql(blocked) != count.to_string() {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Harness for Server {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(PostgresStore::open(self.new_settings()).await.unwrap())
    }

    /// Dropped without being closed: the server sees its connections end, as those of a killed process.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        Arc::new(PostgresStore::open(self.settings()).await.unwrap())
    }

    async fn another(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let settings = PostgresSettings { engine: "two".into(), ..self.settings() };
        Some(Arc::new(PostgresStore::open(settings).await.unwrap()))
    }

    fn backup_path(&self) -> Option<std::path::PathBuf> {
        None
    }

    async fn open_backup(&self, _store: &Arc<dyn Store>, path: &std::path::Path) -> Arc<dyn Store> {
        panic!("nothing makes a backup at {}", path.display())
    }
}

/// Interface 1 with destinations 1 to 3.
pub(crate) async fn register(store: &PostgresStore) {
    let destinations = ["x", "y", "z"].map(str::to_owned).to_vec();
    let interface = Registration { name: "a".into(), destinations, ..Registration::default() };
    let topology = Topology { interfaces: vec![interface], now: NOW };
    store.register(&topology).await.unwrap();
}

/// Owns groups, which nobody else does.
pub(crate) async fn own(store: &PostgresStore, groups: &[u32]) -> Tenure {
    let groups: Vec<GroupId> = groups.iter().copied().map(GroupId).collect();
    match store.claim(&groups, NOW).await.unwrap() {
        Claimed::Owned(tenure) => tenure,
        Claimed::Refused(owners) => panic!("others own {owners:?}"),
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
        output: None,
        state: Vec::new(),
        destination: DestinationId(destination),
        message: MessageId(message),
        round: Round(0),
        attempts: AttemptNo(1),
        settled: Settled::Sent(Answer::default()),
        attempted: None,
    }
}

/// An empty batch with a mark of its own.
pub(crate) fn batch(durability: Durability) -> WriteBatch {
    static MARK: AtomicU64 = AtomicU64::new(1);
    WriteBatch { mark: MARK.fetch_add(1, Ordering::Relaxed), now: NOW, durability, ..WriteBatch::default() }
}

pub(crate) async fn store(
    store: &PostgresStore,
    messages: Vec<NewMessage>,
) -> Result<WriteOutcome, StoreError> {
    store.write(WriteBatch { messages, ..batch(Durability::Strict) }).await
}
