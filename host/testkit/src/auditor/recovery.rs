//! Ends of processes and of machines: what must be left, and what a new engine starts from.

use portway_model::{DeliveryState, MessageId};
use portway_store::memory::MemoryStore;
use portway_store::{DeliveryView, Store};

use super::books::Shadow;
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

impl Auditor {
    /// The process is gone. What is left is compared with what must be.
    pub fn died(&mut self, death: Death, store: &MemoryStore) -> Verdict {
        self.submissions.clear();
        self.recorded.clear();
        for (id, shadow) in &self.messages {
            for (destination, duty) in &shadow.duties {
                if duty.in_hand.is_some() && death != Death::Clean {
                    self.suspects.insert((*destination, *id));
                }
            }
        }
        if death == Death::Clean {
            // An end in order speaks for all of them.
            self.suspects.clear();
        }
        self.pardons += u32::from(death != Death::Process);
        self.runs.clear();
        self.lost_runs.clear();
        self.ledgers.values_mut().for_each(super::books::Ledger::restart);
        if death == Death::Power {
            self.unflushed.clear();
            self.take_back_expired(store)?;
        }
        let ids: Vec<MessageId> = self.messages.keys().copied().collect();
        for id in ids {
            self.compare(id, death, store)?;
        }
        Ok(())
    }

    fn compare(&mut self, id: MessageId, death: Death, store: &MemoryStore) -> Verdict {
        let left = now(store.load_messages(&[id])).map_err(|error| error.to_string())?;
        let Some(shadow) = self.messages.get(&id) else { return Ok(()) };
        let is_left = left.first().is_some_and(|message| message.body == shadow.body);
        if !is_left {
            let must_stay = shadow.is_acknowledged && self.is_strict(shadow.interface);
            if death != Death::Power || must_stay {
                return Err(format!(
                    "rule 1: message {id} was acknowledged and is not there after {death:?}"
                ));
            }
            self.forget(id);
            return Ok(());
        }
        let deliveries = now(store.list_deliveries(id)).map_err(|error| error.to_string())?;
        for view in deliveries {
            self.state_is_left(id, &view, store)?;
            self.resume_from(id, &view);
        }
        Ok(())
    }

    fn resume_from(&mut self, id: MessageId, view: &DeliveryView) {
        let holds = self.ledgers.get(&view.destination).is_some_and(super::books::Ledger::holds);
        let Some(duty) = self.duty(view.destination, id) else { return };
        // A power loss may take back what an operator did.
        duty.routed.retain(|round, _| {
            *round <= view.round && (*round < view.round || view.state == DeliveryState::Sent)
        });
        (duty.lane, duty.round, duty.state) = (view.lane, view.round, view.state);
        duty.attempts = view.attempts.0;
        duty.in_hand = None;
        (duty.is_changing, duty.is_unclear, duty.was_lost) = (false, false, false);
        duty.is_over = view.state.is_final();
        duty.is_finished |= view.state.is_final();
        duty.is_holding = view.state == DeliveryState::Quarantined && holds && view.lane.is_ordered();
        duty.not_before = std::time::Duration::ZERO;
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
        self.suspects.retain(|(_, message)| *message != id);
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
