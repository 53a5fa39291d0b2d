//! Ends of processes and of machines: what must be left, and what a new engine starts from.

use portway_model::{DeliveryState, MessageId};
use portway_store::memory::MemoryStore;
use portway_store::{DeliveryView, Store};

use super::books::{Ledger, Shadow};
use super::{Auditor, Verdict};
use crate::content;
use crate::world::now;

/// How the last process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// In order: nothing was in hand.
    Clean,
    Process,
    Power,
}

/// How a suspect is tried next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Recorded before, perhaps together with others.
    Recorded,
    /// Recorded before, by itself: it was recorded already when the process died.
    Singly,
}

impl Auditor {
    /// The process of the engine is gone. What is left is compared with what must be.
    pub fn died(&mut self, death: Death, store: &MemoryStore) -> Verdict {
        let was_owner = self.is_last_owner();
        for slot in &self.own.ever_recorded {
            *self.ends.entry(*slot).or_default() += 1;
        }
        if death != Death::Clean {
            self.suspect_in_hand(death, was_owner);
        }
        self.pardons += u32::from(death != Death::Process);
        self.own.restart();
        if was_owner {
            self.begin_from(store)?;
        }
        self.compare_all(death, store)
    }

    /// What arrives at most once is not sent again, wherever it stood; of the rest only what stands where its engine
    /// knew it to stand is recorded before it is tried. A power loss may take back what was recorded.
    fn suspect_in_hand(&mut self, death: Death, was_owner: bool) {
        let mut suspects = Vec::new();
        for (id, shadow) in self.messages.iter().filter(|_| was_owner) {
            for (destination, duty) in &shadow.duties {
                let is_once = || self.own.ledgers.get(destination).is_some_and(Ledger::is_once);
                if duty.in_hand.is_some() && (is_once() || !self.is_displaced(*destination, *id)) {
                    let was_recorded = self.own.recorded.contains(&(*destination, *id));
                    let is_known = was_recorded && death == Death::Process;
                    let trial = if is_known { Trial::Singly } else { Trial::Recorded };
                    suspects.push(((*destination, *id), trial));
                }
            }
        }
        self.suspects.extend(suspects);
    }

    /// The machine of the store is gone, and what was not flushed. Engines may live on, and do not know it.
    pub fn lost_power(&mut self, store: &MemoryStore) -> Verdict {
        self.unflushed.clear();
        self.pardons += 1;
        self.forget_recorded();
        self.take_back_expired(store)?;
        self.compare_all(Death::Power, store)
    }

    /// What is recorded as suspect need not be flushed; what may not arrive twice is.
    fn forget_recorded(&mut self) {
        self.suspects.values_mut().for_each(|trial| *trial = Trial::Recorded);
        for books in [&mut self.own, &mut self.aside] {
            let ledgers = &books.ledgers;
            books.recorded.retain(|(destination, _)| ledgers.get(destination).is_some_and(Ledger::is_once));
        }
    }

    fn compare_all(&mut self, death: Death, store: &MemoryStore) -> Verdict {
        let ids: Vec<MessageId> = self.messages.keys().copied().collect();
        ids.into_iter().try_for_each(|id| self.compare(id, death, store))
    }

    fn compare(&mut self, id: MessageId, death: Death, store: &MemoryStore) -> Verdict {
        let left = now(store.load_messages(&[id])).map_err(|error| error.to_string())?;
        let Some(shadow) = self.messages.get(&id) else { return Ok(()) };
        let is_left = left.first().is_some_and(|message| message.body == shadow.body);
        if !is_left {
            let must_stay = shadow.acknowledged.is_some() && self.is_strict(shadow.interface);
            if death != Death::Power || must_stay {
                return Err(format!(
                    "rule 1: message {id} was acknowledged and is not there after {death:?}"
                ));
            }
            let shadow = self.forget(id);
            self.vanished.extend(shadow.map(|shadow| (id, shadow)));
            return Ok(());
        }
        let deliveries = now(store.list_deliveries(id)).map_err(|error| error.to_string())?;
        for view in deliveries {
            self.state_is_left(id, &view, store)?;
            self.stands(id, &view, death);
        }
        Ok(())
    }

    /// A power loss may take back results; an engine that lives goes on from what it knew.
    fn stands(&mut self, id: MessageId, view: &DeliveryView, death: Death) {
        let Some(duty) = self.duty(view.destination, id) else { return };
        duty.routed.retain(|round, _| {
            *round <= view.round && (*round < view.round || view.state == DeliveryState::Sent)
        });
        // It may find by reading that this one is pending again.
        let is_behind = duty.is_over || duty.attempts != view.attempts.0;
        if death == Death::Power && is_behind && !view.state.is_final() {
            (duty.was_reverted, duty.is_holding) = (true, false);
        }
        (duty.lane, duty.round, duty.state) = (view.lane, view.round, view.state);
    }

    fn take_back_expired(&mut self, store: &MemoryStore) -> Verdict {
        for (id, shadow) in std::mem::take(&mut self.expired) {
            let left = now(store.load_messages(&[id])).map_err(|error| error.to_string())?;
            if left.first().is_some_and(|message| message.body == shadow.body) {
                let content = content::read(&shadow.body).ok_or("a message without content")?.0;
                self.by_content.entry(content).or_default().push(id);
                self.messages.insert(id, shadow);
            }
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, id: MessageId) -> Option<Shadow> {
        let shadow = self.messages.remove(&id)?;
        self.suspects.retain(|(_, message), _| *message != id);
        if let Some((content, _)) = content::read(&shadow.body)
            && let Some(ids) = self.by_content.get_mut(&content)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_content.remove(&content);
            }
        }
        Some(shadow)
    }

    /// Faults have ceased and nothing waits: every delivery came to an end somebody can answer for.
    pub fn finished(&self, store: &MemoryStore) -> Verdict {
        for (id, shadow) in &self.messages {
            let deliveries = now(store.list_deliveries(*id)).map_err(|error| error.to_string())?;
            if deliveries.len() != shadow.duties.len() {
                return Err(format!("message {id} has {} deliveries", deliveries.len()));
            }
            for view in deliveries {
                let Some(duty) = shadow.duties.get(&view.destination) else { continue };
                let is_right = match view.state {
                    DeliveryState::Pending => false,
                    DeliveryState::Sent => duty.said.sent && (duty.arrived > 0 || !duty.routed.is_empty()),
                    DeliveryState::Filtered => duty.said.filtered,
                    DeliveryState::Quarantined => duty.said.quarantined || duty.said.filtered,
                    DeliveryState::Dismissed => true,
                };
                if !is_right {
                    return Err(format!("rule 2: message {id} ends as {view:?}, but {duty:?}"));
                }
            }
        }
        self.all_moved(store)
    }
}
