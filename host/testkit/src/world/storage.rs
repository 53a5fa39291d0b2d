//! The store's side of the world: calls that take time, fail, or lose their answers.

use futures::FutureExt;
use portway_engine::{Event, Read, ReadId};
use portway_model::{GroupId, Timestamp};
use portway_store::memory::MemoryStore;
use portway_store::{
    Claimed, ErrorKind, Registered, ResultOutcome, Settled, Store, StoreError, Tenure, WriteBatch,
    WriteOutcome,
};
use rand::RngExt;

use super::{Step, Task, World};
use crate::content::{self, Kind};

/// What becomes of a write.
enum Luck {
    Good,
    Fails(ErrorKind),
    /// It is stored, and nobody knows.
    AnswerLost,
}

/// Owns every interface; none: another engine does.
pub(super) fn claim(store: &MemoryStore, registered: &Registered, now: Timestamp) -> Option<Tenure> {
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    match super::now(store.claim(&groups, now)) {
        Ok(Claimed::Owned(tenure)) => Some(tenure),
        Ok(Claimed::Refused(_)) | Err(_) => None,
    }
}

impl World {
    /// The moment of a write's commit.
    pub(super) fn commit(&mut self, batch: &WriteBatch) -> Step {
        let answer = match self.luck(batch) {
            Luck::Fails(kind) => Err(StoreError::new(kind, "a fault of the simulation")),
            luck @ (Luck::Good | Luck::AnswerLost) => {
                let outcome =
                    super::now(self.here.store.write(batch.clone())).map_err(|error| error.to_string())?;
                self.stats.commits += 1;
                if !self.auditor.is_owner() {
                    self.stats.stored_elsewhere += batch.messages.len() as u64;
                }
                self.auditor.committed(batch, &outcome)?;
                self.auditor.state_follows(batch, &outcome, &self.here.store)?;
                self.auditor.outputs_follow(batch, &outcome, &self.here.store)?;
                if !self.scenario.is_alone {
                    self.notify();
                }
                match luck {
                    Luck::AnswerLost => Err(StoreError::new(ErrorKind::Unknown, "the answer was lost")),
                    Luck::Good | Luck::Fails(_) => Ok(outcome),
                }
            }
        };
        self.note(|world| format!("{:?} the write {}", world.monotonic, super::short(&answer)));
        self.later_by_latency(Task::Engine(Event::Wrote(answer)));
        Ok(())
    }

    fn luck(&mut self, batch: &WriteBatch) -> Luck {
        if self.is_away {
            return Luck::Fails(ErrorKind::Unavailable);
        }
        if self.is_refused(batch) {
            return Luck::Fails(ErrorKind::Refused);
        }
        if !self.is_faulty() || !self.rng.random_bool(self.scenario.rates.write_fault) {
            return Luck::Good;
        }
        match self.rng.random_range(0..20) {
            0..8 => Luck::Fails(ErrorKind::Unavailable),
            8..11 => Luck::Fails(ErrorKind::Full),
            11..14 => Luck::Fails(ErrorKind::Unknown),
            14..19 => Luck::AnswerLost,
            _ => Luck::Fails(ErrorKind::Fatal),
        }
    }

    /// Rows the store never takes.
    fn is_refused(&self, batch: &WriteBatch) -> bool {
        let unstorable = |body| content::read(body).is_some_and(|(_, kind)| kind == Kind::Unstorable);
        let refuses_filtered = self.scenario.refuses_filtered;
        batch.messages.iter().any(|message| unstorable(message.body()))
            || (refuses_filtered
                && batch.results.iter().any(|result| matches!(result.settled, Settled::Filtered(_))))
    }

    /// The engine is about to hear of its write.
    pub(super) fn hear_write(&mut self, event: &Event) -> Step {
        let outcome: Option<&WriteOutcome> = match event {
            Event::Wrote(Ok(outcome)) | Event::Found(Ok(Some(outcome))) => Some(outcome),
            _ => None,
        };
        if let Some(outcome) = outcome
            && let Some(batch) = self.here.in_hand.take()
        {
            self.auditor.told(&batch, outcome)?;
            // A result of the tenure that the engine believes in does not count for it.
            let mut pairs = batch.results.iter().zip(&outcome.results);
            if pairs.any(|(result, outcome)| {
                *outcome == ResultOutcome::Disowned && self.auditor.believes_in(result.epoch)
            }) {
                self.auditor.lost();
            }
        }
        Ok(())
    }

    pub(super) fn find_mark(&mut self, mark: u64) {
        let answer = self.unless_faulty(|world| super::now(world.here.store.find_mark(mark)));
        self.later_by_latency(Task::Engine(Event::Found(answer)));
    }

    pub(super) fn read(&mut self, id: ReadId, read: &Read) {
        let late = || Err(StoreError::new(ErrorKind::Fatal, "the store in memory had to wait"));
        let answer =
            self.unless_faulty(|world| read.run(&world.here.store).now_or_never().unwrap_or_else(late));
        self.later_by_latency(Task::Engine(Event::Read { id, answer }));
    }

    pub(super) fn maintain(&mut self) {
        let answer =
            self.unless_faulty(|world| super::now(world.here.store.maintain(std::time::Duration::ZERO)));
        self.later_by_latency(Task::Engine(Event::Maintained(answer)));
    }

    pub(super) fn claim(&mut self, groups: &[GroupId]) -> Step {
        let now = self.now().wall;
        let answer = self.unless_faulty(|world| super::now(world.here.store.claim(groups, now)));
        if let Ok(Claimed::Owned(tenure)) = &answer {
            self.note(|world| format!("{:?} the claim {}", world.monotonic, super::short(tenure)));
            self.stats.takeovers += u64::from(tenure.overlaps);
            self.auditor.claimed(tenure.epoch, &self.here.store)?;
        }
        self.later_by_latency(Task::Engine(Event::Claimed(answer)));
        Ok(())
    }

    pub(super) fn unless_faulty<T>(
        &mut self,
        call: impl FnOnce(&World) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let is_broken = self.is_faulty() && self.rng.random_bool(self.scenario.rates.read_fault);
        if self.is_away || is_broken {
            return Err(StoreError::new(ErrorKind::Unavailable, "a fault of the simulation"));
        }
        call(self)
    }
}
