//! The engines of one store: their processes, their locks, the news they hear, and the ends of the machine
//! that all of them need.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_engine::{Core, Event, Gate, Ticket};
use portway_model::DestinationId;
use portway_store::memory::MemoryStore;
use portway_store::{ErrorKind, News, Store, StoreError, Tenure, Topology, WriteBatch};
use rand::{Rng, RngExt};

use super::{Phase, START, Step, Task, World, now, storage};
use crate::auditor::Death;

/// An engine's clock is not that of the other.
const CLOCKS_APART_MAX: u64 = 60_000;

/// One engine, as its process and its store have it.
pub(super) struct Engine {
    pub(super) store: MemoryStore,
    /// None: there is no process.
    pub(super) core: Option<Core>,
    pub(super) gate: Gate,
    /// Wall time minus monotonic time, in milliseconds.
    pub(super) wall: u64,
    /// How far the wall clock is wrong beyond that, in milliseconds.
    pub(super) wrong_by: u64,
    /// It was told to drain.
    pub(super) is_draining: bool,
    /// Destinations that are to begin anew.
    pub(super) renewing: BTreeMap<Ticket, DestinationId>,
    /// The write in hand.
    pub(super) in_hand: Option<WriteBatch>,
    /// Something happened since its last turn.
    pub(super) is_due: bool,
}

impl Engine {
    pub(super) fn new(store: MemoryStore, rng: &mut impl Rng) -> Engine {
        Engine {
            store,
            core: None,
            gate: Gate::new(0, []),
            wall: START + rng.random_range(0..CLOCKS_APART_MAX),
            wrong_by: 0,
            is_draining: false,
            renewing: BTreeMap::new(),
            in_hand: None,
            is_due: false,
        }
    }
}

impl World {
    /// The engine in hand is this one from now on.
    pub(super) fn turn_to(&mut self, is_second: bool) {
        if self.is_second != is_second {
            self.is_second = is_second;
            std::mem::swap(&mut self.here, &mut self.there);
            self.auditor.turn_to(is_second);
        }
    }

    pub(super) fn numbers(&self) -> &'static [bool] {
        if self.scenario.is_alone { &[false] } else { &[false, true] }
    }

    pub(super) fn any_engine(&mut self) -> bool {
        !self.scenario.is_alone && self.rng.random_bool(0.5)
    }

    /// Does something with each engine, one after the other.
    pub(super) fn with_each(&mut self, mut act: impl FnMut(&mut World) -> Step) -> Step {
        let before = self.is_second;
        for number in self.numbers() {
            self.turn_to(*number);
            act(self)?;
        }
        self.turn_to(before);
        Ok(())
    }

    pub(super) fn start_core(&mut self, tenure: Option<Tenure>) {
        let settings = self.scenario.settings(&self.registered);
        let core = Core::new(settings, tenure, self.rng.next_u64(), self.now());
        self.here.gate = core.gate();
        self.here.is_draining = false;
        self.here.renewing.clear();
        self.here.is_due = true;
        self.here.core = Some(core);
    }

    /// The process is gone, and everything in hand with it; with the power also what was not flushed, and the
    /// process of the other.
    pub(super) fn die(&mut self, death: Death) -> Step {
        if death != Death::Power {
            return self.end_process(death);
        }
        self.stats.power_losses += 1;
        let kept = self.rng.random_range(0..=self.here.store.unflushed());
        self.here.store.lose_power(kept);
        self.with_each(|world| {
            world.here.store.crash();
            world.end_process(Death::Power)
        })?;
        self.auditor.lost_power(&self.here.store)
    }

    fn end_process(&mut self, death: Death) -> Step {
        if self.here.core.take().is_none() {
            return Ok(());
        }
        self.note(|world| format!("{:?} the end of the process: {death:?}", world.monotonic));
        self.stats.deaths += 1;
        if death == Death::Process {
            self.here.store.crash();
        }
        self.auditor.died(death, &self.here.store)?;
        let is_second = self.is_second;
        self.waiting.retain(|_, (number, task)| *number != is_second || !task.is_of_process());
        self.here.in_hand = None;
        self.disconnect_clients();
        let after = Duration::from_millis(self.rng.random_range(1..3_000));
        self.later(after, Task::Start);
        Ok(())
    }

    pub(super) fn restart(&mut self) -> Step {
        if self.here.core.is_some() {
            return Ok(());
        }
        let topology = Topology { now: self.now().wall, ..self.scenario.topology() };
        let registered = match self.is_away {
            true => None,
            false => now(self.here.store.register(&topology)).ok(),
        };
        let Some(registered) = registered else {
            self.later(Duration::from_millis(500), Task::Start);
            return Ok(());
        };
        let tenure = storage::claim(&self.here.store, &registered, self.now().wall);
        self.note(|world| format!("{:?} a new process, {tenure:?}", world.monotonic));
        self.auditor.started(&registered.pauses, self.monotonic)?;
        self.auditor.retained(&self.here.store)?;
        self.registered = registered;
        if let Some(tenure) = &tenure {
            self.auditor.claimed(tenure.epoch, &self.here.store)?;
            self.auditor.owned(tenure);
        }
        self.start_core(tenure);
        if self.phase == Phase::Stopping {
            // The end came while it stopped: once more from the beginning of the end.
            self.phase = Phase::Calm(self.monotonic);
            self.later(Duration::from_secs(1), Task::Settle);
        }
        Ok(())
    }

    pub(super) fn ended(&mut self, result: Result<(), String>) -> Step {
        self.note(|world| format!("{:?} the engine ended: {result:?}", world.monotonic));
        match (self.phase, result) {
            (Phase::Stopping, Ok(())) => {
                self.here.core = None;
                self.auditor.died(Death::Clean, &self.here.store)?;
                if self.there.core.is_some() {
                    return Ok(());
                }
                self.phase = Phase::Over;
                self.auditor.finished(&self.here.store)
            }
            (Phase::Stopping, Err(text)) => Err(format!("the engine ended by itself: {text}")),
            (_, Ok(())) => self.die(Death::Clean),
            (_, Err(_)) => self.die(Death::Process),
        }
    }

    /// The engine closes its store.
    pub(super) fn close(&mut self) {
        if self.here.store.is_alive() {
            self.auditor.gave_back();
        }
        let closed = now(self.here.store.close());
        self.tell(Event::Closed(closed));
    }

    /// The engine hears what others did, if it did not hear of it with a write.
    pub(super) fn tell_news(&mut self) {
        while self.here.core.is_some()
            && let Some(news) = self.here.store.take_news()
        {
            if news == News::Lost {
                self.auditor.lost();
            }
            self.tell(Event::News(news));
        }
    }

    /// The connection that hears of others is made anew.
    pub(super) fn reconnect(&mut self) {
        self.here.store.miss_news();
        self.tell_news();
    }

    /// The other is told that something was stored for it: at once, or some time later, or when the
    /// connection that listens is made anew.
    pub(super) fn notify(&mut self) {
        let is_second = self.is_second;
        self.turn_to(!is_second);
        if self.is_faulty() && self.rng.random_bool(self.scenario.rates.locks) {
            let after = self.rng.random_range(Duration::ZERO..Duration::from_secs(6));
            self.later(after, Task::Reconnect);
        } else {
            self.later_by_latency(Task::TellNews);
        }
        self.turn_to(is_second);
    }

    /// The engine is cut off from its lock, and hears of it a little later.
    pub(super) fn lose_lock(&mut self) {
        if !self.here.store.is_alive() {
            return;
        }
        self.here.store.lose_lock();
        self.stats.locks_lost += 1;
        self.note(|world| format!("{:?} the lock is lost", world.monotonic));
        let told = self.lock_is_gone();
        let mended = told + self.rng.random_range(Duration::ZERO..Duration::from_secs(10));
        self.later(mended, Task::Mend);
    }

    fn lock_is_gone(&mut self) -> Duration {
        self.auditor.lock_is_gone(self.monotonic);
        let told = self.rng.random_range(Duration::ZERO..News::LOST_WITHIN);
        self.later(told, Task::TellNews);
        told
    }

    /// The machine of the store ends hard and comes back: every connection of every engine breaks, and what
    /// was not flushed is gone. The engines live on.
    pub(super) fn end_server(&mut self) -> Step {
        self.stats.server_ends += 1;
        let kept = self.rng.random_range(0..=self.here.store.unflushed());
        self.note(|world| format!("{:?} the end of the server, {kept} are kept", world.monotonic));
        self.with_each(|world| {
            if world.here.store.is_alive() {
                world.lock_is_gone();
            }
            Ok(())
        })?;
        self.here.store.lose_power(kept);
        self.auditor.lost_power(&self.here.store)?;
        self.break_calls();
        self.is_away = true;
        let after = Duration::from_millis(self.rng.random_range(1..1_500));
        self.later(after, Task::ServerIsBack);
        Ok(())
    }

    /// Of what was asked nobody knows what became; an answer may have been on its way.
    fn break_calls(&mut self) {
        let broken = |kind| StoreError::new(kind, "the connection broke");
        for (_, task) in self.waiting.values_mut() {
            let is_over = self.rng.random_bool(0.7);
            let event = match task {
                Task::Commit(_) => Event::Wrote(Err(broken(ErrorKind::Unknown))),
                Task::Engine(Event::Wrote(Ok(_))) if is_over => Event::Wrote(Err(broken(ErrorKind::Unknown))),
                Task::FindMark(_) => Event::Found(Err(broken(ErrorKind::Unavailable))),
                Task::Claim(_) => Event::Claimed(Err(broken(ErrorKind::Unavailable))),
                Task::Engine(Event::Claimed(Ok(_))) if is_over => {
                    Event::Claimed(Err(broken(ErrorKind::Unavailable)))
                }
                Task::Engine(Event::Read { id, answer: Ok(_) }) if is_over => {
                    Event::Read { id: *id, answer: Err(broken(ErrorKind::Unavailable)) }
                }
                Task::Read(id, _) => Event::Read { id: *id, answer: Err(broken(ErrorKind::Unavailable)) },
                _ => continue,
            };
            *task = Task::Engine(event);
        }
    }
}
