//! Who owns the groups: each tenure begins from what is stored, and of one that is over only what is sent
//! counts. Rule 4.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use portway_engine::{DestinationSettings, Run, RunId};
use portway_model::{DeliveryState, DestinationId, Epoch, Lane, MessageId};
use portway_store::memory::MemoryStore;
use portway_store::{DeliveryView, News, Store, Tenure};

use super::books::{Duty, Ledger};
use super::rate::Meter;
use super::{Auditor, Submitted, Verdict};
use crate::world::now;

/// What the auditor keeps of one engine.
#[derive(Debug)]
pub struct Books {
    pub ledgers: BTreeMap<DestinationId, Ledger>,
    pub(super) submissions: BTreeMap<portway_engine::Ticket, Submitted>,
    pub(super) runs: BTreeMap<RunId, Handed>,
    /// Recorded in this process as tried by themselves.
    pub(super) recorded: BTreeSet<(DestinationId, MessageId)>,
    /// The same, whatever became of them.
    pub(super) ever_recorded: BTreeSet<(DestinationId, MessageId)>,
    /// In which it believes to own its groups.
    pub(super) epoch: Option<Epoch>,
    /// In which it did last.
    last_epoch: Option<Epoch>,
    /// Since when its lock is gone, and it was not told.
    lost_at: Option<Duration>,
}

/// A run in hand.
#[derive(Debug)]
pub(super) struct Handed {
    /// In which the engine believed when it began.
    pub epoch: Option<Epoch>,
    /// Its deliveries with their rounds; nobody outside knows those of what an operator just changed.
    pub hints: Vec<(MessageId, u32)>,
}

/// Tenures, as claims in the store decide.
#[derive(Debug, Default)]
pub(super) struct Tenures {
    pub newest: Option<Epoch>,
    before: Option<Epoch>,
    /// Lanes in which the newest owner has sent something.
    begun: BTreeSet<(DestinationId, Lane)>,
}

impl Books {
    pub fn new(destinations: impl Iterator<Item = DestinationSettings>) -> Books {
        Books {
            ledgers: destinations.map(|settings| (settings.id, Ledger::new(settings))).collect(),
            submissions: BTreeMap::new(),
            runs: BTreeMap::new(),
            recorded: BTreeSet::new(),
            ever_recorded: BTreeSet::new(),
            epoch: None,
            last_epoch: None,
            lost_at: None,
        }
    }

    /// A new process knows nothing of the old one.
    pub(super) fn restart(&mut self) {
        *self = Books::new(self.ledgers.values().map(|ledger| ledger.settings.clone()));
    }
}

impl Auditor {
    /// The engine that is looked at owns the groups by its last claim, whether it knows or not.
    pub fn is_owner(&self) -> bool {
        self.own.epoch.is_some() && self.own.epoch == self.tenures.newest
    }

    /// Nobody owned the groups after this engine.
    pub(super) fn is_last_owner(&self) -> bool {
        self.own.last_epoch.is_some() && self.own.last_epoch == self.tenures.newest
    }

    /// A claim is in the store. What the next owner knows it reads after this.
    pub fn claimed(&mut self, epoch: Epoch, store: &MemoryStore) -> Verdict {
        if self.tenures.newest == Some(epoch) {
            return Ok(());
        }
        if self.tenures.newest.is_some_and(|newest| newest > epoch) {
            return Err(format!("rule 4: epoch {epoch:?} begins after {:?}", self.tenures.newest));
        }
        self.own.lost_at = None;
        self.tenures = Tenures { newest: Some(epoch), before: self.tenures.newest, begun: BTreeSet::new() };
        self.begin_from(store)
    }

    /// Everything is as the store says.
    pub(super) fn begin_from(&mut self, store: &MemoryStore) -> Verdict {
        let ids: Vec<MessageId> = self.messages.keys().copied().collect();
        for id in ids {
            for view in now(store.list_deliveries(id)).map_err(|error| error.to_string())? {
                let holds = self.own.ledgers.get(&view.destination).is_some_and(Ledger::holds);
                if let Some(duty) = self.duty(view.destination, id) {
                    duty.begin_from(&view, holds);
                }
            }
        }
        Ok(())
    }

    /// The engine hears that it owns its groups: every destination begins anew.
    pub fn owned(&mut self, tenure: &Tenure) {
        self.own.epoch = Some(tenure.epoch);
        self.own.last_epoch = self.own.epoch;
        for (destination, ledger) in &mut self.own.ledgers {
            let was_paused = tenure.pauses.iter().any(|(paused, _)| paused == destination);
            // Or that changed since.
            ledger.is_paused = (was_paused || ledger.is_paused) && self.paused.contains(destination);
            (ledger.is_stopped, ledger.runaways) = (false, 0);
        }
    }

    /// The engine believes in this tenure.
    pub fn believes_in(&self, epoch: Epoch) -> bool {
        self.own.epoch == Some(epoch)
    }

    /// The owner ended in order, which speaks for everything that may have been in hand before.
    pub fn gave_back(&mut self) {
        self.suspects.clear();
        self.pardons += 1;
    }

    /// The engine hears that it owns nothing any more.
    pub fn lost(&mut self) {
        (self.own.epoch, self.own.lost_at) = (None, None);
    }

    /// Its lock is gone, and it does not know.
    pub fn lock_is_gone(&mut self, monotonic: Duration) {
        self.own.lost_at.get_or_insert(monotonic);
        // Two may have the same in hand before either records it; and what an engine recorded it does not
        // record again, though its results may be gone.
        self.pardons += 1;
    }

    /// Time went on by so much at once: nobody could be told meanwhile.
    pub fn leapt(&mut self, by: Duration) {
        for books in [&mut self.own, &mut self.aside] {
            books.lost_at = books.lost_at.map(|at| at + by);
        }
    }

    /// Rule 4: nobody sends who owns nothing, or was to know that by now.
    pub(super) fn may_send(&self, monotonic: Duration) -> Verdict {
        if self.own.epoch.is_none() {
            return Err("rule 4: a run is sent by an engine that owns nothing".into());
        }
        match self.own.lost_at {
            Some(lost_at) if monotonic > lost_at + News::LOST_WITHIN => {
                Err(format!("rule 4: a run is sent though the lock is gone since {lost_at:?}"))
            }
            _ => Ok(()),
        }
    }

    /// The owner begins to send in a lane.
    pub(super) fn begins_in(&mut self, destination: DestinationId, lane: Lane) {
        if self.is_owner() && lane.is_ordered() {
            self.tenures.begun.insert((destination, lane));
        }
    }

    /// What the owner before sent does not arrive behind what its successor sent.
    pub(super) fn arrives_in_time(&self, id: RunId, run: &Run) -> Verdict {
        let epoch = self.own.runs.get(&id).and_then(|handed| handed.epoch);
        if epoch.is_none() || epoch != self.tenures.before || epoch == self.tenures.newest {
            return Ok(());
        }
        for envelope in &run.messages {
            let shadow = self.messages.get(&envelope.id);
            let lane = shadow.and_then(|shadow| shadow.duties.get(&run.destination)).map(|duty| duty.lane);
            if lane.is_some_and(|lane| self.tenures.begun.contains(&(run.destination, lane))) {
                return Err(format!(
                    "rule 3: message {} of the owner before arrives at destination {} after its successor began",
                    envelope.id, run.destination
                ));
            }
        }
        Ok(())
    }

    /// The engine that is looked at is this one from now on.
    pub fn turn_to(&mut self, is_second: bool) {
        if self.is_second != is_second {
            self.is_second = is_second;
            std::mem::swap(&mut self.own, &mut self.aside);
        }
    }

    /// A new process is where the engine was.
    pub(super) fn begin_process(&mut self, monotonic: Duration) {
        for (destination, ledger) in &mut self.own.ledgers {
            ledger.is_paused = self.paused.contains(destination);
            ledger.meter = Meter::new(monotonic);
        }
    }
}

impl Duty {
    /// A tenure begins: what was said in the one before counts only if it was sent, or is stored.
    fn begin_from(&mut self, view: &DeliveryView, holds: bool) {
        let is_final = view.state.is_final();
        (self.lane, self.round, self.state) = (view.lane, view.round, view.state);
        self.attempts = view.attempts.0;
        self.in_hand = None;
        (self.is_changing, self.is_unclear, self.was_reverted) = (false, false, false);
        self.is_over = is_final;
        self.is_finished = is_final || (self.is_finished && self.said.sent);
        self.is_holding = view.state == DeliveryState::Quarantined && holds && view.lane.is_ordered();
        self.not_before = Duration::ZERO;
        if view.state == DeliveryState::Pending {
            let sent = self.said.sent;
            self.said = super::books::Said { sent, ..Default::default() };
        }
    }
}
