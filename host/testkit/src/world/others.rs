//! Another engine on the same store: it stores messages for the one under test, takes over what that
//! one lost, delivers some of it, and gives it back.

use std::time::Duration;

use portway_engine::Event;
use portway_model::{Answer, AttemptNo, DestinationId, GroupId, InterfaceId, Lane, MessageId, Timestamp};
use portway_store::{
    Attempted, Claimed, DeliveryResult, Durability, MessageOutcome, NewDelivery, NewMessage, News, Pending,
    Settled, Store, WriteBatch, WriteOutcome,
};
use rand::RngExt;

use super::{Phase, Step, Task, World};
use crate::auditor::written_for;
use crate::content::{self, Content, Kind};

/// Longer than what was in hand when the lock was lost can take.
const QUIET: Duration = Duration::from_secs(65);
/// Deliveries that it brings of each destination, at most.
const DELIVERED_MAX: u32 = 3;

impl World {
    /// With each submission the other may do something.
    pub(super) fn others_act(&mut self, soon: Duration) {
        let rate = self.scenario.rates.others;
        if self.rng.random_bool(rate) {
            let interface = self.rng.random_range(0..self.scenario.interfaces.len());
            self.later(soon, Task::StoreElsewhere(interface));
        }
        if self.rng.random_bool(rate / 5.0) {
            self.later(soon, Task::LoseLock);
        }
    }

    /// It stores a message of an interface and acknowledges it.
    pub(super) fn store_elsewhere(&mut self, interface: usize) -> Step {
        let Some((id, destinations)) = self.registered.interfaces.get(interface).cloned() else {
            return Ok(());
        };
        self.contents += 1;
        let draft = content::draft(Content(self.contents), Kind::Plain, None, &mut self.rng);
        let settings = self.scenario.interfaces.get(interface).map(|interface| &interface.destinations);
        let lanes = settings.into_iter().flatten().map(|to| Lane::of(to.order, draft.key.as_ref()));
        let deliveries = destinations
            .iter()
            .zip(lanes)
            .map(|(destination, lane)| NewDelivery { destination: *destination, lane });
        let message = NewMessage {
            interface: id,
            group: GroupId(id.0),
            received_at: self.now().wall,
            deliveries: deliveries.collect(),
            draft,
            dedupe: None,
            origin: None,
            edited: None,
            terms: Vec::new(),
        };
        let batch = WriteBatch { messages: vec![message], ..self.batch_of_other() };
        let outcome = self.write_as_other(&batch)?;
        for outcome in outcome.messages {
            if let MessageOutcome::Stored { id, .. } = outcome
                && let Some(shadow) = self.auditor.messages.get_mut(&id)
            {
                shadow.is_acknowledged = true;
                self.stats.stored_elsewhere += 1;
            }
        }
        // At once, or some time later.
        self.later_by_latency(Task::TellNews);
        Ok(())
    }

    /// The engine hears what others did, if it did not hear of it with a write.
    pub(super) fn tell_news(&mut self) {
        if self.core.is_none() {
            return;
        }
        if let Some(news) = self.store.take_news() {
            if news == News::Lost {
                self.auditor.lost();
            }
            self.tell(Event::News(news));
        }
    }

    /// The engine is cut off from its lock, and hears of it a little later. Sometimes the other takes
    /// over, sometimes nobody does.
    pub(super) fn lose_lock(&mut self) {
        self.store.lose_lock();
        self.stats.locks_lost += 1;
        self.note(|world| format!("{:?} the lock is lost", world.monotonic));
        let told = self.rng.random_range(Duration::ZERO..News::LOST_WITHIN);
        self.later(told, Task::TellNews);
        if self.rng.random_bool(0.5) {
            let after = self.rng.random_range(Duration::ZERO..News::LOST_WITHIN);
            self.later(after, Task::TakeOver);
        } else {
            self.later(told + Duration::from_secs(1), Task::GiveBack);
        }
    }

    pub(super) fn take_over(&mut self) {
        let now = self.now().wall;
        if self.phase == Phase::Faulty
            && let Ok(Claimed::Owned(tenure)) = super::now(self.other.claim(&self.groups(), now))
        {
            self.note(|world| format!("{:?} the other took over: {tenure:?}", world.monotonic));
            self.stats.takeovers += 1;
            self.later(QUIET, Task::DeliverElsewhere(tenure.epoch));
        }
        self.later(QUIET + Duration::from_secs(1), Task::GiveBack);
    }

    /// It brings the first of each lane, as far as they are due.
    pub(super) fn deliver_elsewhere(&mut self, epoch: portway_model::Epoch) -> Step {
        let engines = super::now(self.other.list_engines()).unwrap_or_default();
        if !engines.iter().any(|engine| engine.is_self && !engine.groups.is_empty()) {
            return Ok(());
        }
        let all = self.auditor.ledgers.keys().copied();
        let destinations: Vec<DestinationId> = all.filter(|to| !self.auditor.is_paused(*to)).collect();
        for destination in destinations {
            let held = super::now(self.other.held_heads(destination)).unwrap_or_default();
            for head in super::now(self.other.lane_heads(destination)).unwrap_or_default() {
                let after = MessageId::ZERO;
                let rows = super::now(self.other.read_lane(destination, head.lane, after, DELIVERED_MAX));
                let is_free = |row: &Pending| {
                    row.due_at.is_none()
                        && !held.iter().any(|held| held.lane == head.lane && held.message < row.message)
                };
                let rows: Vec<Pending> = rows.unwrap_or_default().into_iter().take_while(is_free).collect();
                let results = rows.iter().map(|row| self.sent(destination, epoch, row)).collect();
                for row in &rows {
                    self.auditor.sent_elsewhere(destination, row.message);
                }
                let batch = WriteBatch { results, ..self.batch_of_other() };
                self.write_as_other(&batch)?;
            }
        }
        Ok(())
    }

    fn sent(&self, destination: DestinationId, epoch: portway_model::Epoch, row: &Pending) -> DeliveryResult {
        DeliveryResult {
            destination,
            message: row.message,
            epoch,
            round: row.round,
            attempts: AttemptNo(row.attempts.0 + 1),
            settled: Settled::Sent(Answer::default()),
            attempted: Some(Attempted { started_at: self.now().wall, took: Duration::ZERO }),
            state: written_for(destination, row.message),
            output: None,
        }
    }

    /// The other stops in order, or dies; the engine may own its groups again.
    pub(super) fn give_back(&mut self) {
        self.store.mend();
        if self.rng.random_bool(0.3) {
            self.other.crash();
        } else if super::now(self.other.close()).is_ok() {
            self.auditor.given_back();
        }
    }

    fn groups(&self) -> Vec<GroupId> {
        let group = |(id, _): &(InterfaceId, Vec<DestinationId>)| GroupId(id.0);
        self.registered.interfaces.iter().map(group).collect()
    }

    fn batch_of_other(&mut self) -> WriteBatch {
        self.marks_of_other += 1;
        let (mark, now): (u64, Timestamp) = (self.marks_of_other, self.now().wall);
        WriteBatch { mark, now, durability: Durability::Strict, ..WriteBatch::default() }
    }

    fn write_as_other(&mut self, batch: &WriteBatch) -> Result<WriteOutcome, String> {
        let outcome = super::now(self.other.write(batch.clone())).map_err(|error| error.to_string())?;
        self.note(|world| format!("{:?} the other wrote {}", world.monotonic, super::short(batch)));
        self.auditor.committed(batch, &outcome)?;
        Ok(outcome)
    }
}
