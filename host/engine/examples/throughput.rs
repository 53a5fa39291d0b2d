//! What the engine itself costs: a store that only counts and a receiver that only agrees.
//!
//! `cargo run --release -p portway-engine --example throughput -- CONNECTIONS DESTINATIONS SECONDS`
//! prints acknowledgements and deliveries per second, and the commits they took.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use portway_engine::{
    Clock, Deliver, DestinationSettings, Engine, EngineParts, EngineSettings, InterfaceSettings, Limits, Run,
    RunReport, Unit, Verdict,
};
use portway_model::{
    Answer, Attributes, DestinationId, Draft, GroupId, Guarantee, InterfaceId, Key, Lane, MessageId,
    OnQuarantine, Order, RetentionState, RetryPolicy, Timestamp,
};
use portway_store::{
    ActionView, AttemptView, Claimed, ConfirmRetention, DeliveryView, DestinationActionView, Durability,
    EngineView, Expired, Expiry, LaneHead, ListMessages, ListStateKeys, Maintenance, MessageOutcome,
    MessageView, MoveRetention, Moved, News, OutputView, Page, Pending, QueueView, Registered, ResultOutcome,
    RetentionView, Store, StoreError, StoredMessage, Tenure, Topology, WriteBatch, WriteOutcome,
};

/// What a flush takes on a fast disk.
const FLUSH: Duration = Duration::from_micros(300);

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|number| number.parse::<u32>().ok());
    let mut next = |default| numbers.next().unwrap_or(default);
    let (connections, destinations, seconds) = (next(64), next(25), next(5));
    let delivered = Arc::new(AtomicU64::new(0));
    let parts = EngineParts {
        store: Arc::new(Counting(AtomicU64::new(0))),
        deliver: Arc::new(Agreeing(Arc::clone(&delivered))),
        clock: Arc::new(SystemClock(Instant::now())),
    };
    let (engine, task) = Engine::start(parts, settings(destinations), Some(Tenure::default()));
    let task = tokio::spawn(task.run());
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let acknowledged = Arc::new(AtomicU64::new(0));
    let clients = (0..connections).map(|number| {
        let (engine, acknowledged) = (engine.clone(), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            while Instant::now() < until {
                engine.submit(InterfaceId(1), Timestamp(0), vec![draft(number)], Unit::Each).await;
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        let _ = client.await;
    }
    let status = engine.status().await;
    engine.shutdown().await;
    let end = task.await;
    let per_second = |count: &AtomicU64| count.load(Ordering::Relaxed) / u64::from(seconds.max(1));
    println!("{} acknowledged/s, {} delivered/s", per_second(&acknowledged), per_second(&delivered));
    if let Ok(status) = status {
        println!("{:?} mean commit, {:?}", status.commits.mean(), status.commits);
        println!("{:?}", status.memory);
    }
    println!("{end:?}");
}

fn draft(number: u32) -> Draft {
    Draft {
        body: vec![b'x'; 1_700].into(),
        key: Key::new(&format!("key-{number}")),
        dedupe: None,
        occurred_at: None,
        attributes: Attributes::new(vec![("type".into(), "ORU^R01".into())]).unwrap_or_default(),
        doubt: None,
    }
}

fn settings(destinations: u32) -> EngineSettings {
    let destination = |number| DestinationSettings {
        id: DestinationId(number),
        name: format!("to-{number}"),
        order: Order::Key,
        concurrency: 4,
        retry: RetryPolicy::default(),
        on_quarantine: OnQuarantine::Continue,
        run_max: 256,
        guarantee: Guarantee::AtLeastOnce,
        send_max: Duration::from_secs(30),
        rate: None,
    };
    let interface = InterfaceSettings {
        id: InterfaceId(1),
        group: GroupId(1),
        name: "in".into(),
        durability: Durability::Strict,
        dedupe_window: None,
        search: vec!["key".to_owned()],
        destinations: (1..=destinations).map(destination).collect(),
    };
    EngineSettings {
        interfaces: vec![interface],
        limits: Limits::default(),
        pauses: Vec::new(),
        retentions: Vec::new(),
        aged_to: None,
    }
}

struct SystemClock(Instant);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000) + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

struct Agreeing(Arc<AtomicU64>);

#[async_trait]
impl Deliver for Agreeing {
    async fn deliver(&self, run: Run) -> RunReport {
        self.0.fetch_add(run.messages.len() as u64, Ordering::Relaxed);
        let verdicts = run.messages.iter().map(|_| Verdict::Sent(Answer::default())).collect();
        RunReport { verdicts, stop: None, go_singly: false, state: Vec::new(), outputs: Vec::new() }
    }
}

/// Gives ids and forgets everything.
struct Counting(AtomicU64);

#[async_trait]
impl Store for Counting {
    async fn register(&self, _topology: &Topology) -> Result<Registered, StoreError> {
        Ok(Registered::default())
    }

    async fn claim(&self, _groups: &[GroupId], _now: Timestamp) -> Result<Claimed, StoreError> {
        Ok(Claimed::Owned(Tenure::default()))
    }

    async fn list_engines(&self) -> Result<Vec<EngineView>, StoreError> {
        Ok(Vec::new())
    }

    async fn news(&self) -> News {
        std::future::pending().await
    }

    async fn write(&self, batch: WriteBatch) -> Result<WriteOutcome, StoreError> {
        if batch.durability == Durability::Strict {
            tokio::time::sleep(FLUSH).await;
        }
        let stored = |_| MessageOutcome::Stored {
            id: MessageId(self.0.fetch_add(1, Ordering::Relaxed) + 1),
            conflict: None,
        };
        Ok(WriteOutcome {
            elsewhere: Vec::new(),
            messages: batch.messages.iter().map(stored).collect(),
            results: batch.results.iter().map(|_| ResultOutcome::Applied(Vec::new())).collect(),
            actions: Vec::new(),
            suspects: batch.suspects.iter().map(|_| 1).collect(),
        })
    }

    async fn find_mark(&self, _mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        Ok(None)
    }

    async fn source_cursor(&self, _interface: InterfaceId) -> Result<Option<bytes::Bytes>, StoreError> {
        Ok(None)
    }

    async fn get_state(
        &self,
        _destination: DestinationId,
        _space: &str,
        _key: &str,
    ) -> Result<Option<bytes::Bytes>, StoreError> {
        Ok(None)
    }

    async fn list_state_keys(&self, _list: &ListStateKeys) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn count_state(
        &self,
        _destination: DestinationId,
        _space: &str,
        _limit: u32,
    ) -> Result<u32, StoreError> {
        Ok(0)
    }

    async fn count_pending(&self, _destinations: &[DestinationId], _limit: u32) -> Result<u32, StoreError> {
        Ok(0)
    }

    async fn destinations_with_work(&self) -> Result<Vec<DestinationId>, StoreError> {
        Ok(Vec::new())
    }

    async fn lane_heads(&self, _destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn held_heads(&self, _destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_suspects(&self, _destination: DestinationId) -> Result<Vec<MessageId>, StoreError> {
        Ok(Vec::new())
    }

    async fn read_lane(
        &self,
        _destination: DestinationId,
        _lane: Lane,
        _after: MessageId,
        _limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        Ok(Vec::new())
    }

    async fn read_due(
        &self,
        _destination: DestinationId,
        _until: Timestamp,
        _limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        Ok(Vec::new())
    }

    async fn next_due(
        &self,
        _destination: DestinationId,
        _after: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn load_messages(&self, _ids: &[MessageId]) -> Result<Vec<StoredMessage>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_queues(&self) -> Result<Vec<QueueView>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_messages(&self, _list: &ListMessages) -> Result<Page<MessageView>, StoreError> {
        Ok(Page { items: Vec::new(), next: None })
    }

    async fn get_message(&self, _id: MessageId) -> Result<Option<MessageView>, StoreError> {
        Ok(None)
    }

    async fn list_deliveries(&self, _id: MessageId) -> Result<Vec<DeliveryView>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_attempts(&self, _id: MessageId) -> Result<Vec<AttemptView>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_outputs(&self, _id: MessageId) -> Result<Vec<OutputView>, StoreError> {
        Ok(Vec::new())
    }

    async fn load_output(
        &self,
        _id: MessageId,
        _destination: DestinationId,
    ) -> Result<Option<bytes::Bytes>, StoreError> {
        Ok(None)
    }

    async fn list_actions(&self, _id: MessageId) -> Result<Vec<ActionView>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_edits(&self, _id: MessageId) -> Result<Vec<MessageId>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_destination_actions(
        &self,
        _destination: DestinationId,
    ) -> Result<Vec<DestinationActionView>, StoreError> {
        Ok(Vec::new())
    }

    async fn expire(&self, _expiry: &Expiry) -> Result<Expired, StoreError> {
        Ok(Expired::default())
    }

    async fn move_retention(&self, _step: &MoveRetention) -> Result<Moved, StoreError> {
        Ok(Moved::nothing(RetentionState::default()))
    }

    async fn confirm_retention(
        &self,
        _confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError> {
        Ok(None)
    }

    async fn list_retention(&self, _age_now: Timestamp) -> Result<Vec<RetentionView>, StoreError> {
        Ok(Vec::new())
    }

    async fn backup(&self, _target: &Path) -> Result<(), StoreError> {
        Ok(())
    }

    async fn maintain(&self, _free_wait: Duration) -> Result<Maintenance, StoreError> {
        Ok(Maintenance::default())
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
