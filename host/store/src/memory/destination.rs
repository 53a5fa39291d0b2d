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
        // Never the newest word on whether it is paused.
        let standing = actions.iter().position(says_if_paused);
        let mut place = 0..;
        actions.retain(|_| {
            let place = place.next();
            place < Some(DestinationActionView::KEPT_MAX as usize) || place == standing
        });
        match &action.kind {
            DestinationActionKind::RemoveState(at) => {
                self.plugin_state.remove(action.destination, &at.space, &at.key);
            }
            // Whether it is paused is read from the record.
            DestinationActionKind::Pause | DestinationActionKind::Resume => {}
        }
    }

    pub(super) fn list_destination_actions(&self, destination: DestinationId) -> Vec<DestinationActionView> {
        let actions = self.destination_actions.get(&destination).into_iter().flatten();
        actions.take(DestinationActionView::KEPT_MAX as usize).cloned().collect()
    }

    /// The newest pause or resume of a destination counts.
    pub(super) fn pauses(&self) -> Vec<(DestinationId, Pause)> {
        let pause = |action: &DestinationActionView| Pause {
            since: action.at,
            author: action.author.clone(),
            reason: action.reason.clone(),
        };
        let newest = |actions: &'_ Vec<DestinationActionView>| actions.iter().position(says_if_paused);
        let words = self.destination_actions.iter();
        words
            .filter_map(|(id, actions)| Some((*id, actions.get(newest(actions)?)?)))
            .filter(|(_, action)| action.action == DestinationActionKind::Pause.as_str())
            .map(|(id, action)| (id, pause(action)))
            .collect()
    }
}

fn says_if_paused(action: &DestinationActionView) -> bool {
    [DestinationActionKind::Pause.as_str(), DestinationActionKind::Resume.as_str()].contains(&action.action)
}
