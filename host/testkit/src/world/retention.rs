//! Old messages and their clock: steps of the store, what operators want and confirm, time that leaps
//! by days, and a clock that is wrong by years.

use std::time::Duration;

use portway_engine::{Event, Ticket};
use portway_model::{InterfaceId, OnQuarantine, Quarantined, Retention, Tier, Timestamp};
use portway_store::{ConfirmRetention, ErrorKind, Expiry, MoveRetention, Store, StoreError, Topology};
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{Rng, RngExt};

use super::{Phase, START, Step, Task, World};
use crate::scenario::Destination;

/// How long a clock may be wrong by years: not for a day.
const WRONG_MAX: Duration = Duration::from_secs(20 * 3_600);

/// What holds a lane waits for an operator: no project may purge it.
pub(crate) fn any_retention(destinations: &[Destination], rng: &mut impl Rng) -> Retention {
    let holds = destinations.iter().any(|destination| destination.on_quarantine == OnQuarantine::Hold);
    let purges = rng.random_bool(0.4) && !holds;
    let quarantined = if purges { Quarantined::Purge } else { Quarantined::Keep };
    Retention { tier: *Tier::ALL.choose(rng).unwrap_or(&Tier::LONGEST), quarantined }
}

impl World {
    pub(super) fn register(&mut self, topology: &Topology) -> Step {
        let answer = self.perhaps_lost(|world| super::now(world.here.store.register(topology)));
        self.auditor.retained(&self.here.store)?;
        self.later_by_latency(Task::Engine(Event::Registered(answer)));
        Ok(())
    }

    pub(super) fn expire(&mut self, expiry: &Expiry) -> Step {
        let answer = self.perhaps_lost(|world| super::now(world.here.store.expire(expiry)));
        self.has_aged |= answer.is_ok();
        self.auditor.expired(&self.here.store, self.time())?;
        self.later_by_latency(Task::Engine(Event::Expired(answer)));
        Ok(())
    }

    pub(super) fn move_retention(&mut self, step: &MoveRetention) -> Step {
        let answer = self.perhaps_lost(|world| super::now(world.here.store.move_retention(step)));
        self.auditor.expired(&self.here.store, self.time())?;
        self.auditor.retained(&self.here.store)?;
        self.later_by_latency(Task::Engine(Event::Moved(answer)));
        Ok(())
    }

    pub(super) fn confirm_retention(&mut self, confirm: &ConfirmRetention) -> Step {
        self.auditor.agreeing(confirm.interface, &self.here.store)?;
        let answer = self.perhaps_lost(|world| super::now(world.here.store.confirm_retention(confirm)));
        self.auditor.retained(&self.here.store)?;
        self.later_by_latency(Task::Engine(Event::RetentionConfirmed(answer)));
        Ok(())
    }

    /// A call that is not made, or whose answer is lost.
    fn perhaps_lost<T>(
        &mut self,
        call: impl FnOnce(&World) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = self.unless_faulty(call)?;
        if self.is_faulty() && self.rng.random_bool(self.scenario.rates.read_fault) {
            return Err(StoreError::new(ErrorKind::Unavailable, "the answer was lost"));
        }
        Ok(answer)
    }

    /// An interface is to have another retention from now on; the project says so once more.
    pub(super) fn want_retention(&mut self) {
        if let Some(interface) = self.scenario.interfaces.iter_mut().choose(&mut self.rng) {
            interface.retention = any_retention(&interface.destinations, &mut self.rng);
        }
        self.register_again();
    }

    pub(super) fn confirm_any(&mut self) {
        let interfaces: Vec<InterfaceId> = self.registered.interfaces.iter().map(|(id, _)| *id).collect();
        let Some(interface) = interfaces.choose(&mut self.rng).copied() else { return };
        self.tickets += 1;
        let (author, reason) = ("the operator".into(), "a simulation".into());
        let confirm = ConfirmRetention { interface, now: self.now().wall, author, reason };
        self.tell(Event::ConfirmRetention { ticket: Ticket(self.tickets), confirm });
    }

    pub(super) fn is_changing(&self) -> bool {
        let views = super::now(self.here.store.list_retention(Timestamp(0))).unwrap_or_default();
        views.iter().any(|view| view.state.change.is_some())
    }

    /// Days pass at once.
    pub(super) fn leap(&mut self) {
        self.mend_clock();
        let by = Duration::from_secs(self.rng.random_range(3_600..12 * 86_400));
        self.monotonic += by;
        self.auditor.leapt(by);
        self.auditor.clock_stepped();
        self.note(|world| format!("{:?} days have passed", world.monotonic));
    }

    /// The clock is years ahead, once in a seed and for less than a day.
    pub(super) fn break_clock(&mut self) {
        // Until the store remembers how far messages have aged, nothing tells which of two clocks is right.
        let is_known = self.scenario.is_alone || self.has_aged;
        if self.was_wrong || !is_known || self.phase != Phase::Faulty {
            return;
        }
        self.was_wrong = true;
        self.here.wrong_by = self.rng.random_range(1..10) * 365 * 86_400_000;
        self.auditor.clock_stepped();
        let until = Duration::from_secs(self.rng.random_range(60..WRONG_MAX.as_secs()));
        self.later(until, Task::MendClock);
        self.note(|world| format!("{:?} the clock says {}", world.monotonic, world.now().wall));
        if self.rng.random_bool(0.5) {
            let by = self.rng.random_range(Duration::ZERO..until);
            self.monotonic += by;
            self.auditor.leapt(by);
        }
    }

    pub(super) fn mend_clock(&mut self) {
        if self.here.wrong_by > 0 || self.there.wrong_by > 0 {
            (self.here.wrong_by, self.there.wrong_by) = (0, 0);
            self.note(|world| format!("{:?} the clock is right again", world.monotonic));
        }
    }

    /// Time, which no clock can change.
    fn time(&self) -> Timestamp {
        Timestamp(START) + self.monotonic
    }
}
