//! What operators did to destinations, and which are paused because of it.

use portway_model::{DestinationId, Timestamp};

use super::state::State;
use crate::{DestinationAction, DestinationActionKind, DestinationActionView, Pause};

impl State {
    pub(super) fn act_on_destination(&mut self, action: &DestinationAction, now: Timestamp) {
        let actions = self.destination_actions.entry(action.destination).or_default();
        actions.insert(
            0,
            DestinationActionView {
                at: now,
                action: action.kind.as_str(),
                author: action.author.clone(),
                reason: action.reason.clone(),
            },
        );
        actions.truncate(DestinationActionView::KEPT_MAX as usize);
    }

    pub(super) fn list_destination_actions(&self, destination: DestinationId) -> Vec<DestinationActionView> {
        self.destination_actions.get(&destination).cloned().unwrap_or_default()
    }

    /// The newest word on a destination counts.
    pub(super) fn pauses(&self) -> Vec<(DestinationId, Pause)> {
        let pause = |action: &DestinationActionView| Pause {
            since: action.at,
            author: action.author.clone(),
            reason: action.reason.clone(),
        };
        let newest =
            self.destination_actions.iter().filter_map(|(id, actions)| Some((*id, actions.first()?)));
        newest
            .filter(|(_, action)| action.action == DestinationActionKind::Pause.as_str())
            .map(|(id, action)| (id, pause(action)))
            .collect()
    }
}
