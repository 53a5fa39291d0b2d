//! The head of a lane that is blocked: which delivery an operator means.

use portway_admin::{ControlError, ControlErrorKind, Head, LaneAction};
use portway_engine::status::BlockedLane;
use portway_model::{DeliveryState, DestinationId, Lane, MessageId, code};

use super::{EngineControl, chain, failed, unavailable};

/// Lanes that an answer names.
const NAMED_MAX: usize = 5;

/// The delivery at the head of a lane.
pub(super) struct Found {
    pub message: MessageId,
    pub state: DeliveryState,
}

impl EngineControl {
    pub(super) async fn head(&self, action: &LaneAction) -> Result<Found, ControlError> {
        let destination = self.destination_id(&action.interface, &action.destination)?;
        let name = format!("{}/{}", action.interface, action.destination);
        let message = match action.head {
            Head::Message(message) => message,
            Head::Lane(number) => self.head_of(destination, number, &name).await?,
            Head::Only => self.only_head(destination, &name).await?,
        };
        let deliveries = self.store.list_deliveries(message).await.map_err(unavailable)?;
        let delivery = deliveries.into_iter().find(|delivery| delivery.destination == destination);
        let state = delivery.map(|delivery| delivery.state);
        let is_open =
            |state: &DeliveryState| matches!(state, DeliveryState::Pending | DeliveryState::Quarantined);
        let text = || format!("message {message} blocks no lane of {name}");
        let state = state.filter(is_open).ok_or_else(|| conflict(code::NOTHING_FITS, text()))?;
        Ok(Found { message, state })
    }

    /// What is first in a lane, by the store: pending, or quarantined where that holds it.
    async fn head_of(&self, id: DestinationId, number: u16, name: &str) -> Result<MessageId, ControlError> {
        let lane = Lane::from_number(number).filter(|lane| lane.is_ordered());
        let invalid = || {
            let text = format!("there is no lane {number}: they go from 0 to {}", Lane::APART.number() - 1);
            ControlError::new(ControlErrorKind::Invalid, code::INVALID, text)
        };
        let lane = lane.ok_or_else(invalid)?;
        let mut heads = self.store.lane_heads(id).await.map_err(unavailable)?;
        if self.holds(name) {
            heads.extend(self.store.held_heads(id).await.map_err(unavailable)?);
        }
        let of_lane = heads.iter().filter(|head| head.lane == lane).map(|head| head.message);
        let text = || format!("nothing waits in lane {number} of {name}");
        of_lane.min().ok_or_else(|| conflict(code::NOTHING_FITS, text()))
    }

    async fn only_head(&self, id: DestinationId, name: &str) -> Result<MessageId, ControlError> {
        let status = self.engine.status().await.map_err(|error| failed(code::ENGINE, chain(&error)))?;
        let found = status.destinations.into_iter().find(|status| status.id == id);
        let blocked = found.map(|status| status.blocked).unwrap_or_default();
        match blocked.as_slice() {
            [] => Err(conflict(code::NOTHING_FITS, format!("no lane of {name} is blocked"))),
            [only] => Ok(only.message),
            several => {
                let show =
                    |lane: &BlockedLane| format!("lane {} by message {}", lane.lane.number(), lane.message);
                let named: Vec<String> = several.iter().take(NAMED_MAX).map(show).collect();
                let more = if several.len() > NAMED_MAX { ", …" } else { "" };
                let text =
                    format!("several lanes of {name} are blocked, name one: {}{more}", named.join(", "));
                Err(conflict(code::LANE_UNCLEAR, text))
            }
        }
    }

    fn holds(&self, name: &str) -> bool {
        let of = |interface: &portway_config::InterfaceSettings| {
            let destinations = interface.destinations.iter();
            destinations
                .filter(|one| format!("{}/{}", interface.name, one.name.value) == name)
                .any(|one| one.on_quarantine == portway_model::OnQuarantine::Hold)
        };
        self.project.interfaces.iter().any(of)
    }
}

fn conflict(code: &'static str, text: String) -> ControlError {
    ControlError::new(ControlErrorKind::Conflict, code, text)
}
