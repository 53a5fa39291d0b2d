//! A store with two interfaces, and short ways to write to it and to look at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, Attributes, DeliveryState, DestinationId, Draft, Epoch, Failure, GroupId, InterfaceId,
    Key, Lane, MessageId, MessageStatus, Round, Timestamp,
};

use super::Harness;
use crate::{
    Action, ActionKind, ActionOutcome, Attempted, Claimed, DedupeWindow, DeliveryResult, DeliveryView,
    Durability, ErrorKind, Expiry, MessageOutcome, NewDelivery, NewMessage, Registered, Registration,
    ResultOutcome, Settled, Store, Tenure, Topology, WriteBatch, WriteOutcome,
};

/// When a fixture begins.
pub(super) const START: Timestamp = Timestamp(1_700_000_000_000);

/// Interface `a` with the destinations `x` and `y`, interface `b` with `z`.
pub(super) struct Fixture {
    pub(super) store: Arc<dyn Store>,
    pub(super) a: InterfaceId,
    pub(super) b: InterfaceId,
    pub(super) x: DestinationId,
    pub(super) y: DestinationId,
    pub(super) z: DestinationId,
    pub(super) epoch: Epoch,
    mark: AtomicU64,
    now: AtomicU64,
}

pub(super) fn topology() -> Topology {
    let registration = |name: &str, destinations: &[&str]| Registration {
        name: name.into(),
        destinations: destinations.iter().map(|name| (*name).into()).collect(),
        ..Registration::default()
    };
    let interfaces = vec![registration("a", &["x", "y"]), registration("b", &["z"])];
    Topology { interfaces, now: START }
}

impl Fixture {
    pub(super) async fn open(harness: &dyn Harness) -> Fixture {
        Fixture::of(harness.open().await).await
    }

    /// Registers the usual topology and owns it.
    pub(super) async fn of(store: Arc<dyn Store>) -> Fixture {
        let registered = store.register(&topology()).await.unwrap();
        let epoch = claim(&*store, &registered).await.epoch;
        let [(a, of_a), (b, of_b)] = registered.interfaces.try_into().unwrap();
        let ([x, y], [z]) = (of_a.try_into().unwrap(), of_b.try_into().unwrap());
        Fixture { store, a, b, x, y, z, epoch, mark: AtomicU64::new(1), now: AtomicU64::new(START.0) }
    }

    /// The same store in a new process.
    pub(super) async fn reopen(self, harness: &dyn Harness) -> Fixture {
        let (mark, now) = (self.mark.load(Ordering::Relaxed), self.now());
        let fixture = Fixture::of(harness.reopen(self.store).await).await;
        fixture.mark.store(mark, Ordering::Relaxed);
        fixture.now.store(now.0, Ordering::Relaxed);
        fixture
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Relaxed))
    }

    pub(super) fn wait(&self, seconds: u64) {
        self.now.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    /// Somebody sets the clock back.
    pub(super) fn set_back(&self, seconds: u64) {
        self.now.fetch_sub(seconds * 1000, Ordering::Relaxed);
    }

    /// Removes what is old by now.
    pub(super) async fn expire(&self) {
        let now = self.now();
        for _ in 0..1_000 {
            if !self.store.expire(&Expiry { now, aged_to: now, limit: 100 }).await.unwrap().goes_on {
                return;
            }
        }
        panic!("there is always more that is old")
    }

    /// Waits until everything is past its window, also in a store that drops a week at once, and removes
    /// it.
    pub(super) async fn outlive(&self) {
        self.wait(63 * 86_400);
        self.expire().await;
    }

    /// A batch with the next mark, now.
    pub(super) fn batch(&self) -> WriteBatch {
        let mark = self.mark.fetch_add(1, Ordering::Relaxed);
        WriteBatch { mark, now: self.now(), ..WriteBatch::default() }
    }

    /// A message of `a` for `x` in the first lane.
    pub(super) fn message(&self, body: &str) -> NewMessage {
        NewMessage {
            interface: self.a,
            group: GroupId(self.a.0),
            received_at: self.now(),
            deliveries: vec![delivery(self.x, 0)],
            ..Fixture::bare(Bytes::copy_from_slice(body.as_bytes()))
        }
    }

    /// A message of the first interface for nobody.
    pub(super) fn bare(body: Bytes) -> NewMessage {
        NewMessage {
            interface: InterfaceId(1),
            group: GroupId(1),
            received_at: START,
            draft: Draft {
                body,
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
            deliveries: Vec::new(),
        }
    }

    /// A message of `a` for these destinations and lanes.
    pub(super) fn message_to(&self, deliveries: &[(DestinationId, u16)]) -> NewMessage {
        let deliveries = deliveries.iter().map(|(destination, lane)| delivery(*destination, *lane)).collect();
        NewMessage { deliveries, ..self.message("body") }
    }

    /// A message of `a` with a dedupe key, remembered for a minute.
    pub(super) fn keyed(&self, key: &str, body: &str) -> NewMessage {
        let mut message = self.message(body);
        message.draft.dedupe = Key::new(key);
        message.dedupe = Some(DedupeWindow(Duration::from_secs(60)));
        message
    }

    pub(super) async fn write(&self, batch: WriteBatch) -> WriteOutcome {
        self.store.write(batch).await.unwrap()
    }

    pub(super) async fn store(&self, messages: Vec<NewMessage>) -> Vec<MessageOutcome> {
        self.write(WriteBatch { messages, durability: Durability::Strict, ..self.batch() }).await.messages
    }

    /// Stores one message; it is new.
    pub(super) async fn store_one(&self, message: NewMessage) -> MessageId {
        match self.store(vec![message]).await.as_slice() {
            [MessageOutcome::Stored { id, .. }] => *id,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn settle(&self, results: Vec<DeliveryResult>) -> Vec<ResultOutcome> {
        self.write(WriteBatch { results, ..self.batch() }).await.results
    }

    /// The first attempt of the first round at `x`.
    pub(super) async fn settle_one(&self, message: MessageId, settled: Settled) -> ResultOutcome {
        let [outcome] = self.settle(vec![self.result(message, self.x, settled)]).await.try_into().unwrap();
        outcome
    }

    /// A first attempt of the first round that took 5 ms.
    pub(super) fn result(
        &self,
        message: MessageId,
        destination: DestinationId,
        settled: Settled,
    ) -> DeliveryResult {
        let attempted = Some(Attempted { started_at: self.now(), took: Duration::from_millis(5) });
        DeliveryResult {
            destination,
            message,
            epoch: self.epoch,
            round: Round(0),
            attempts: AttemptNo(1),
            settled,
            attempted,
            state: Vec::new(),
            output: None,
        }
    }

    pub(super) async fn act(
        &self,
        message: MessageId,
        to: Option<DestinationId>,
        kind: ActionKind,
    ) -> ActionOutcome {
        let batch = WriteBatch { actions: vec![action(message, to, kind)], ..self.batch() };
        let [outcome] = self.write(batch).await.actions.try_into().unwrap();
        outcome
    }

    pub(super) async fn status(&self, id: MessageId) -> Option<MessageStatus> {
        self.store.get_message(id).await.unwrap().map(|message| message.status)
    }

    pub(super) async fn delivery(&self, id: MessageId, destination: DestinationId) -> DeliveryView {
        let deliveries = self.store.list_deliveries(id).await.unwrap();
        deliveries.into_iter().find(|delivery| delivery.destination == destination).unwrap()
    }

    pub(super) async fn state(&self, id: MessageId, destination: DestinationId) -> DeliveryState {
        self.delivery(id, destination).await.state
    }

    pub(super) async fn lane(&self, destination: DestinationId, number: u16) -> Vec<MessageId> {
        let pending = self.store.read_lane(destination, lane(number), MessageId::ZERO, 1000).await.unwrap();
        pending.into_iter().map(|pending| pending.message).collect()
    }

    /// All messages there are, newest first.
    pub(super) async fn all(&self) -> Vec<MessageId> {
        let mut list = crate::ListMessages { limit: 500, ..crate::ListMessages::default() };
        let mut ids = Vec::new();
        loop {
            let page = self.store.list_messages(&list).await.unwrap();
            ids.extend(page.items.iter().map(|message| message.id));
            list.before = page.next;
            if list.before.is_none() {
                return ids;
            }
        }
    }

    /// What a write that must fail fails with.
    pub(super) async fn refused(&self, messages: Vec<NewMessage>) {
        let error = self.store.write(WriteBatch { messages, ..self.batch() }).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
}

/// Owns every interface's group.
pub(super) async fn claim(store: &dyn Store, registered: &Registered) -> Tenure {
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    match store.claim(&groups, START).await.unwrap() {
        Claimed::Owned(tenure) => tenure,
        Claimed::Refused(others) => panic!("{others:?}"),
    }
}

pub(super) fn lane(number: u16) -> Lane {
    Lane::from_number(number).unwrap()
}

pub(super) fn delivery(destination: DestinationId, number: u16) -> NewDelivery {
    NewDelivery { destination, lane: lane(number) }
}

pub(super) fn action(message: MessageId, destination: Option<DestinationId>, kind: ActionKind) -> Action {
    Action { message, destination, kind, author: "ann".into(), reason: "they asked".into(), request: None }
}

pub(super) fn stored(id: u64) -> MessageOutcome {
    MessageOutcome::Stored { id: MessageId(id), conflict: None }
}

pub(super) fn applied() -> ResultOutcome {
    ResultOutcome::Applied(Vec::new())
}

pub(super) fn sent() -> Settled {
    Settled::Sent(Answer::default())
}

pub(super) fn quarantined() -> Settled {
    Settled::Quarantined(Failure::new("bad", "no good"))
}

pub(super) fn retry(due_at: Timestamp) -> Settled {
    Settled::Retry { due_at, failure: Failure::new("away", "not there") }
}

pub(super) const RESEND: ActionKind = ActionKind::Resend { keep_lane: false };
