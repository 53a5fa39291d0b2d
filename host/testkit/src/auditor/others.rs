//! What another engine on the store does, and what it takes from the one under test.

use portway_model::{DeliveryState, DestinationId, MessageId};
use portway_store::Tenure;

use super::Auditor;

impl Auditor {
    /// The engine hears that it owns nothing any more. What it has in hand may arrive all the same, and
    /// of what it said only what is sent counts: the rest begins again from the store.
    pub fn lost(&mut self) {
        self.lost_runs.extend(self.runs.keys());
        for shadow in self.messages.values_mut() {
            for duty in shadow.duties.values_mut() {
                let was_said = duty.in_hand.is_some() || duty.is_over || duty.attempts > 0;
                if duty.state == DeliveryState::Pending && was_said {
                    duty.in_hand = None;
                    (duty.is_unclear, duty.was_lost) = (true, true);
                    (duty.is_over, duty.is_finished, duty.is_holding) = (false, false, false);
                }
            }
        }
    }

    /// The engine hears that it owns its groups again: every destination begins anew.
    pub fn owned(&mut self, tenure: &Tenure) {
        for (destination, ledger) in &mut self.ledgers {
            ledger.is_paused = tenure.pauses.iter().any(|(paused, _)| paused == destination);
            (ledger.is_stopped, ledger.runaways) = (false, 0);
        }
    }

    /// The other engine brought it to its destination.
    pub fn sent_elsewhere(&mut self, destination: DestinationId, message: MessageId) {
        self.suspects.remove(&(destination, message));
        let Some(duty) = self.duty(destination, message) else { return };
        duty.said.sent = true;
        duty.arrived += 1;
        duty.attempts += 1;
        (duty.is_over, duty.is_finished) = (true, true);
    }

    /// The other engine ended in order, which speaks for everything that may have been in hand before.
    pub fn given_back(&mut self) {
        self.suspects.clear();
        self.pardons += 1;
    }

    pub fn is_paused(&self, destination: DestinationId) -> bool {
        self.paused.contains(&destination)
    }
}
