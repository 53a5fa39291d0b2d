//! Why lanes are held: the reasons of the quarantined deliveries at their heads, out of the store.
//!
//! The engine knows which delivery holds a lane and not why: reasons of a thousand held lanes would
//! take memory that nobody looks at.

use portway_engine::Status;
use portway_model::DeliveryState;
use portway_store::StoreError;

use super::EngineControl;

/// Heads whose reason is looked up: of one destination, and of all.
const OF_DESTINATION_MAX: usize = 10;
const OF_ALL_MAX: usize = 100;

impl EngineControl {
    /// Puts the reason of its quarantine to each lane that waits for an operator, as far as those go
    /// that are shown first.
    pub(super) async fn tell_held(&self, status: &mut Status) -> Result<(), StoreError> {
        let mut left = OF_ALL_MAX;
        for destination in &mut status.destinations {
            let held = destination.blocked.iter_mut().filter(|lane| lane.due_at.is_none());
            for lane in held.take(OF_DESTINATION_MAX.min(left)) {
                left -= 1;
                let deliveries = self.store.list_deliveries(lane.message).await?;
                // An operator may have been faster: then what the engine said stays until it knows.
                let head = deliveries.into_iter().find(|delivery| {
                    delivery.destination == destination.id && delivery.state == DeliveryState::Quarantined
                });
                if let Some(head) = head {
                    lane.attempts = head.attempts;
                    lane.reason = format!("quarantined: {}", head.reason.unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}
