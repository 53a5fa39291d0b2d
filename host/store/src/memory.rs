//! The store of the simulation: all in memory, deterministic, with faults on demand.
//!
//! Two states are kept: what is there, and what a power loss leaves (everything up to the last
//! strict write). What each call does to a state is in `state`, what it answers in `views`;
//! which calls fail is decided by the [`Faults`] it was given.

mod destination;
mod faults;
mod ownership;
mod plugin_state;
mod retention;
mod state;
mod views;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::{
    ActionView, AttemptView, Claimed, ConfirmRetention, DeliveryView, DestinationActionView, Durability,
    EngineView, ErrorKind, Expired, Expiry, LaneHead, ListMessages, ListStateKeys, Maintenance, MessageView,
    MoveRetention, Moved, News, OutputView, Page, Pending, QueueView, Registered, RetentionView, Store,
    StoreError, StoredMessage, Topology, WriteBatch, WriteOutcome,
};
use async_trait::async_trait;
use bytes::Bytes;
use portway_model::{
    DestinationId, Epoch, GroupId, InterfaceId, Lane, MessageId, RetentionState, Tier, Timestamp,
};

pub use faults::{Answered, Call, Faults, NoFaults, Step};
use ownership::Claim;
use state::State;

/// Which of the engines that use one store.
type EngineNo = u32;

/// A store in memory, as one engine has it. Clones are the same.
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    faults: Arc<dyn Faults>,
    engine: EngineNo,
}

#[derive(Default)]
struct Inner {
    live: State,
    /// What a power loss leaves, before `unflushed`.
    durable: State,
    /// Changes since then, in order.
    unflushed: Vec<Change>,
    /// Engines that hold their locks, and in which epoch.
    alive: BTreeMap<EngineNo, Epoch>,
    /// Engines that lost theirs and were not told yet.
    lost: BTreeSet<EngineNo>,
    /// Of engines that lost theirs, in which epoch: their processes live.
    survived: BTreeMap<EngineNo, Epoch>,
    /// Engines that may have missed news and were not told yet.
    missed: BTreeSet<EngineNo>,
    /// The first of the numbers that an engine drew for its next write.
    drawn: BTreeMap<EngineNo, MessageId>,
    /// Engines that cannot own anything now.
    cut_off: BTreeSet<EngineNo>,
    engines: EngineNo,
    wakers: Vec<Waker>,
    full: bool,
    backups: HashMap<PathBuf, State>,
}

/// A change of a state, to be made again on the durable one.
#[derive(Clone)]
enum Change {
    Register(Topology),
    Claim(Claim),
    /// With the first of its numbers.
    Write(EngineNo, WriteBatch, MessageId),
    Expire(Expiry),
    MoveRetention(MoveRetention),
    ConfirmRetention(ConfirmRetention),
    Close(EngineNo),
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new(Arc::new(NoFaults))
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(faults: Arc<dyn Faults>) -> Self {
        MemoryStore { inner: Arc::default(), faults, engine: 0 }
    }

    /// The same store as another engine has it.
    pub fn another(&self) -> MemoryStore {
        let mut inner = self.lock();
        inner.engines += 1;
        MemoryStore { engine: inner.engines, ..self.clone() }
    }

    /// The engine's process died: the next [`Store::claim`] is that of a new one.
    pub fn crash(&self) {
        let mut inner = self.lock();
        inner.alive.remove(&self.engine);
        inner.survived.remove(&self.engine);
        inner.lost.remove(&self.engine);
        inner.missed.remove(&self.engine);
        inner.drawn.remove(&self.engine);
    }

    /// The engine is cut off: others may claim what it owns, and it cannot until [`MemoryStore::mend`].
    pub fn lose_lock(&self) {
        let mut inner = self.lock();
        inner.cut_off.insert(self.engine);
        if let Some(epoch) = inner.alive.remove(&self.engine) {
            inner.lost.insert(self.engine);
            inner.survived.insert(self.engine, epoch);
            inner.wake();
        }
    }

    /// The engine can own groups again.
    pub fn mend(&self) {
        self.lock().cut_off.remove(&self.engine);
    }

    /// The engine holds its lock, whether it knows or not.
    pub fn is_alive(&self) -> bool {
        self.lock().alive.contains_key(&self.engine)
    }

    /// The connection that hears of others was gone for some time.
    pub fn miss_news(&self) {
        let mut inner = self.lock();
        inner.missed.insert(self.engine);
        inner.wake();
    }

    /// The engine's next write draws its numbers now: others that are drawn later may be committed before.
    pub fn draw(&self, batch: &WriteBatch) {
        let mut inner = self.lock();
        let first = inner.live.draw(batch.new_messages().count());
        inner.drawn.insert(self.engine, first);
    }

    /// What [`Store::news`] tells next; none: it waits.
    pub fn take_news(&self) -> Option<News> {
        let mut inner = self.lock();
        if inner.lost.remove(&self.engine) {
            // Whatever else there was to tell is about what it does not own any more.
            inner.missed.remove(&self.engine);
            return Some(News::Lost);
        }
        if !inner.alive.contains_key(&self.engine) {
            return None;
        }
        if inner.missed.remove(&self.engine) {
            return Some(News::Missed);
        }
        let elsewhere = inner.live.ownership.take_elsewhere(self.engine);
        (!elsewhere.is_empty()).then_some(News::Elsewhere(elsewhere))
    }

    /// The machine of the store died: of the writes that were not flushed only the first `kept` are left. All
    /// engines lose their locks. Numbers that were given are not given again.
    pub fn lose_power(&self, kept: usize) {
        let mut inner = self.lock();
        let mut unflushed = std::mem::take(&mut inner.unflushed);
        unflushed.truncate(kept);
        for change in &unflushed {
            inner.durable.apply(change);
        }
        let last_id = inner.live.last_id();
        inner.live = inner.durable.clone();
        inner.live.skip_to(last_id);
        inner.drawn.clear();
        let alive = std::mem::take(&mut inner.alive);
        inner.lost.extend(alive.keys());
        inner.survived.extend(alive);
        inner.wake();
    }

    /// How many writes a power loss would lose now.
    pub fn unflushed(&self) -> usize {
        self.lock().unflushed.len()
    }

    /// What [`Store::maintain`] says of the room.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Where a message lies: only this store tells.
    pub fn tier(&self, id: MessageId) -> Option<Tier> {
        self.lock().live.messages.get(&id).map(|message| message.tier)
    }

    /// A backup that was made before, as a store of its own.
    pub fn open_backup(&self, path: &Path) -> Option<MemoryStore> {
        let state = self.lock().backups.get(path)?.clone();
        let inner = Inner { live: state.clone(), durable: state, ..Inner::default() };
        Some(MemoryStore { inner: Arc::new(Mutex::new(inner)), faults: Arc::new(NoFaults), engine: 0 })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A state is changed after all checks only, so it is whole even after a panic elsewhere.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call between its two chances to fail. No lock is held while they are asked.
    async fn call<T>(
        &self,
        call: Call,
        run: impl FnOnce(&mut Inner) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError>
    where
        T: Send,
    {
        match self.faults.before(call).await {
            Step::Go => {}
            Step::Fail(kind) => {
                return Err(StoreError::new(kind, format!("fault before `{}`", call.as_str())));
            }
        }
        let result = run(&mut self.lock())?;
        match self.faults.after(call).await {
            Answered::Given => Ok(result),
            Answered::Lost => {
                Err(StoreError::new(call.kind_of_lost(), format!("`{}` lost its answer", call.as_str())))
            }
        }
    }
}

impl Inner {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// After a change of `live`: remembers it, and makes it durable where it was flushed.
    fn changed(&mut self, change: Change, durability: Durability) {
        self.unflushed.push(change);
        match durability {
            Durability::Relaxed => {}
            Durability::Strict => self.flush(),
        }
    }

    fn flush(&mut self) {
        for change in std::mem::take(&mut self.unflushed) {
            self.durable.apply(&change);
        }
    }
}

impl State {
    /// Makes a change that was already made on an equal state; there it succeeded.
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Register(topology) => {
                self.register(topology);
            }
            Change::Claim(claim) => {
                self.ownership.claim(claim);
            }
            Change::Write(engine, batch, first) => {
                // An equal state gave the same answer before.
                let _ = self.write(*engine, batch, *first);
            }
            Change::Expire(expiry) => {
                self.expire(expiry);
            }
            Change::MoveRetention(step) => {
                self.move_retention(step);
            }
            Change::ConfirmRetention(confirm) => {
                self.confirm_retention(confirm);
            }
            Change::Close(engine) => self.ownership.release(*engine),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn register(&self, topology: &Topology) -> Result<Registered, StoreError> {
        self.call(Call::Register, |inner| {
            let interfaces = inner.live.register(topology);
            inner.changed(Change::Register(topology.clone()), Durability::Strict);
            let live = &inner.live;
            Ok(Registered {
                interfaces,
                store: "memory".into(),
                pauses: live.pauses(),
                retentions: live.retentions.states(),
                aged_to: live.aged_to(),
            })
        })
        .await
    }

    async fn claim(&self, groups: &[GroupId], now: Timestamp) -> Result<Claimed, StoreError> {
        self.call(Call::Claim, |inner| {
            if inner.cut_off.contains(&self.engine) {
                return Err(StoreError::new(ErrorKind::Unavailable, "the engine is cut off"));
            }
            let (engine, alive) = (self.engine, inner.alive.clone());
            let survived = inner.survived.get(&engine).copied();
            let claim = Claim { engine, groups: groups.to_vec(), now, alive, survived };
            let mut claimed = inner.live.ownership.claim(&claim);
            if let Claimed::Owned(tenure) = &mut claimed {
                tenure.pauses = inner.live.pauses();
                inner.alive.insert(engine, tenure.epoch);
                inner.lost.remove(&engine);
                inner.changed(Change::Claim(claim), Durability::Strict);
            }
            Ok(claimed)
        })
        .await
    }

    async fn list_engines(&self) -> Result<Vec<EngineView>, StoreError> {
        self.call(Call::ListEngines, |inner| {
            let view = |engine: &EngineNo| EngineView {
                engine: ownership::name(*engine),
                started_at: Timestamp(0),
                is_self: *engine == self.engine,
                groups: inner.live.ownership.groups_of(*engine),
            };
            Ok(inner.alive.keys().map(view).collect())
        })
        .await
    }

    async fn news(&self) -> News {
        poll_fn(|context| match self.take_news() {
            Some(news) => Poll::Ready(news),
            None => {
                self.lock().wakers.push(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    async fn write(&self, batch: WriteBatch) -> Result<WriteOutcome, StoreError> {
        self.call(Call::Write, |inner| {
            let drawn = inner.drawn.remove(&self.engine);
            let first = drawn.unwrap_or_else(|| inner.live.draw(0));
            let outcome = inner.live.write(self.engine, &batch, first)?;
            let durability = batch.durability;
            inner.changed(Change::Write(self.engine, batch, first), durability);
            inner.wake();
            Ok(outcome)
        })
        .await
    }

    async fn find_mark(&self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        self.call(Call::FindMark, |inner| {
            let last = inner.live.last_writes.get(&self.engine).filter(|last| last.0 == mark);
            Ok(last.map(|last| last.1.clone()))
        })
        .await
    }

    async fn get_state(
        &self,
        destination: DestinationId,
        space: &str,
        key: &str,
    ) -> Result<Option<Bytes>, StoreError> {
        self.call(Call::GetState, |inner| Ok(inner.live.plugin_state.get(destination, space, key))).await
    }

    async fn list_state_keys(&self, list: &ListStateKeys) -> Result<Vec<String>, StoreError> {
        self.call(Call::ListStateKeys, |inner| Ok(inner.live.plugin_state.keys(list))).await
    }

    async fn count_state(
        &self,
        destination: DestinationId,
        space: &str,
        limit: u32,
    ) -> Result<u32, StoreError> {
        self.call(Call::CountState, |inner| Ok(inner.live.plugin_state.count(destination, space, limit)))
            .await
    }

    async fn source_cursor(&self, interface: InterfaceId) -> Result<Option<Bytes>, StoreError> {
        self.call(Call::SourceCursor, |inner| Ok(inner.live.cursors.get(&interface).cloned())).await
    }

    async fn count_pending(&self, destinations: &[DestinationId], limit: u32) -> Result<u32, StoreError> {
        self.call(Call::CountPending, |inner| Ok(inner.live.count_pending(destinations, limit))).await
    }

    async fn destinations_with_work(&self) -> Result<Vec<DestinationId>, StoreError> {
        self.call(Call::DestinationsWithWork, |inner| Ok(inner.live.destinations_with_work())).await
    }

    async fn lane_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        self.call(Call::LaneHeads, |inner| Ok(inner.live.lane_heads(destination))).await
    }

    async fn held_heads(&self, destination: DestinationId) -> Result<Vec<LaneHead>, StoreError> {
        self.call(Call::HeldHeads, |inner| Ok(inner.live.held_heads(destination))).await
    }

    async fn list_suspects(&self, destination: DestinationId) -> Result<Vec<MessageId>, StoreError> {
        self.call(Call::ListSuspects, |inner| Ok(inner.live.list_suspects(destination))).await
    }

    async fn read_lane(
        &self,
        destination: DestinationId,
        lane: Lane,
        after: MessageId,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        self.call(Call::ReadLane, |inner| Ok(inner.live.read_lane(destination, lane, after, limit))).await
    }

    async fn read_due(
        &self,
        destination: DestinationId,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Pending>, StoreError> {
        self.call(Call::ReadDue, |inner| Ok(inner.live.read_due(destination, until, limit))).await
    }

    async fn next_due(
        &self,
        destination: DestinationId,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.call(Call::NextDue, |inner| Ok(inner.live.next_due(destination, after))).await
    }

    async fn load_messages(&self, ids: &[MessageId]) -> Result<Vec<StoredMessage>, StoreError> {
        self.call(Call::LoadMessages, |inner| Ok(inner.live.load_messages(ids))).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueView>, StoreError> {
        self.call(Call::ListQueues, |inner| Ok(inner.live.list_queues())).await
    }

    async fn list_messages(&self, list: &ListMessages) -> Result<Page<MessageView>, StoreError> {
        self.call(Call::ListMessages, |inner| Ok(inner.live.list_messages(list))).await
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<MessageView>, StoreError> {
        self.call(Call::GetMessage, |inner| Ok(inner.live.get_message(id))).await
    }

    async fn list_deliveries(&self, id: MessageId) -> Result<Vec<DeliveryView>, StoreError> {
        self.call(Call::ListDeliveries, |inner| Ok(inner.live.list_deliveries(id))).await
    }

    async fn list_attempts(&self, id: MessageId) -> Result<Vec<AttemptView>, StoreError> {
        self.call(Call::ListAttempts, |inner| Ok(inner.live.list_attempts(id))).await
    }

    async fn list_outputs(&self, id: MessageId) -> Result<Vec<OutputView>, StoreError> {
        self.call(Call::ListOutputs, |inner| Ok(inner.live.list_outputs(id))).await
    }

    async fn load_output(
        &self,
        id: MessageId,
        destination: DestinationId,
    ) -> Result<Option<Bytes>, StoreError> {
        self.call(Call::LoadOutput, |inner| Ok(inner.live.load_output(id, destination))).await
    }

    async fn list_actions(&self, id: MessageId) -> Result<Vec<ActionView>, StoreError> {
        self.call(Call::ListActions, |inner| Ok(inner.live.list_actions(id))).await
    }

    async fn list_edits(&self, id: MessageId) -> Result<Vec<MessageId>, StoreError> {
        self.call(Call::ListEdits, |inner| Ok(inner.live.list_edits(id))).await
    }

    async fn list_destination_actions(
        &self,
        destination: DestinationId,
    ) -> Result<Vec<DestinationActionView>, StoreError> {
        self.call(Call::ListDestinationActions, |inner| Ok(inner.live.list_destination_actions(destination)))
            .await
    }

    async fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError> {
        self.call(Call::Expire, |inner| {
            let expired = inner.live.expire(expiry);
            inner.changed(Change::Expire(*expiry), Durability::Relaxed);
            Ok(expired)
        })
        .await
    }

    async fn move_retention(&self, step: &MoveRetention) -> Result<Moved, StoreError> {
        self.call(Call::MoveRetention, |inner| {
            let moved = inner.live.move_retention(step);
            inner.changed(Change::MoveRetention(*step), Durability::Relaxed);
            Ok(moved)
        })
        .await
    }

    async fn confirm_retention(
        &self,
        confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError> {
        self.call(Call::ConfirmRetention, |inner| {
            let state = inner.live.confirm_retention(confirm);
            inner.changed(Change::ConfirmRetention(confirm.clone()), Durability::Strict);
            Ok(state)
        })
        .await
    }

    async fn list_retention(&self, age_now: Timestamp) -> Result<Vec<RetentionView>, StoreError> {
        self.call(Call::ListRetention, |inner| Ok(inner.live.list_retention(age_now))).await
    }

    async fn backup(&self, target: &Path) -> Result<(), StoreError> {
        self.call(Call::Backup, |inner| {
            if inner.backups.contains_key(target) {
                let text = format!("`{}` exists already", target.display());
                return Err(StoreError::new(ErrorKind::Refused, text));
            }
            let state = inner.live.clone();
            inner.backups.insert(target.to_path_buf(), state);
            Ok(())
        })
        .await
    }

    async fn maintain(&self, _free_wait: Duration) -> Result<Maintenance, StoreError> {
        self.call(Call::Maintain, |inner| Ok(Maintenance { full: inner.full, ..Maintenance::default() }))
            .await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.call(Call::Close, |inner| {
            // Whoever claims next under this number is another process.
            inner.survived.remove(&self.engine);
            // Without its lock it has nothing to give back.
            if inner.alive.remove(&self.engine).is_some() {
                inner.live.ownership.release(self.engine);
                inner.unflushed.push(Change::Close(self.engine));
            }
            inner.flush();
            Ok(())
        })
        .await
    }
}
