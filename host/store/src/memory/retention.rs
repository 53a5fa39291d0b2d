//! Retention in the in-memory store. A message has a tier of its own here, as in a store with
//! partitions, so that the simulation sees what becomes of messages that were not moved.

use std::collections::{BTreeMap, BTreeSet};

use portway_model::{
    InterfaceId, MessageId, MessageStatus, Quarantined, Retention, RetentionState, Tier, Timestamp,
};

use super::state::{Message, State};
use crate::{
    ConfirmRetention, Counted, Expired, Expiry, KeptBeyond, MoveRetention, Moved, RetentionConfirmed,
    RetentionView,
};

/// What is known of the retention of all interfaces.
#[derive(Clone, Default)]
pub(super) struct Retentions {
    states: BTreeMap<InterfaceId, RetentionState>,
    confirmed: BTreeMap<InterfaceId, RetentionConfirmed>,
    aged_to: Option<Timestamp>,
    /// When the last whole pass ended.
    counted_at: Option<Timestamp>,
}

impl Retentions {
    /// The project says what it wants.
    pub(super) fn want(&mut self, interface: InterfaceId, wanted: Retention, now: Timestamp) {
        self.states.entry(interface).or_insert_with(|| RetentionState::new(wanted)).want(wanted, now);
    }

    pub(super) fn states(&self) -> Vec<(InterfaceId, RetentionState)> {
        self.states.iter().map(|(interface, state)| (*interface, *state)).collect()
    }

    /// What new messages get.
    pub(super) fn tier(&self, interface: InterfaceId) -> Tier {
        self.of(interface).in_force().tier
    }

    fn of(&self, interface: InterfaceId) -> RetentionState {
        self.states.get(&interface).copied().unwrap_or_default()
    }
}

impl State {
    pub(super) fn aged_to(&self) -> Option<Timestamp> {
        let oldest = || self.messages.first_key_value().map(|(_, message)| message.stored_at);
        self.retentions.aged_to.or_else(oldest)
    }

    pub(super) fn expire(&mut self, expiry: &Expiry) -> Expired {
        self.retentions.aged_to = Some(expiry.aged_to);
        self.forget_expired_keys(expiry.now);
        let is_due = |message: &&Message| {
            let state = self.retentions.of(message.interface);
            let waits_for_move = state.change.is_some_and(|change| change.to.tier != message.tier);
            let is_old = message.stored_at < expiry.now - message.tier.window();
            is_old && !waits_for_move && goes(message.status, state.in_force())
        };
        let due: Vec<MessageId> = self
            .messages
            .iter()
            .filter(|(_, message)| is_due(message))
            .map(|(id, _)| *id)
            .take(expiry.limit as usize)
            .collect();
        let goes_on = !due.is_empty() && due.len() == expiry.limit as usize;
        let messages = due.len() as u64;
        self.remove(due);
        if !goes_on {
            self.retentions.counted_at = Some(expiry.now);
        }
        Expired { messages, goes_on }
    }

    pub(super) fn move_retention(&mut self, step: &MoveRetention) -> Moved {
        let mut state = self.retentions.of(step.interface);
        let Some(change) = state.change else { return Moved::nothing(state) };
        let before = step.age_now - change.to.tier.window();
        let (mut gone, mut moved, mut is_cut) = (Vec::new(), 0, false);
        for (id, message) in &mut self.messages {
            let is_gone = message.stored_at < before && goes(message.status, change.to);
            let stays = message.tier == change.to.tier && !is_gone;
            if message.interface != step.interface || stays {
                continue;
            }
            if moved + gone.len() >= step.limit as usize {
                is_cut = true;
                break;
            }
            if is_gone {
                gone.push(*id);
            } else {
                message.tier = change.to.tier;
                moved += 1;
            }
        }
        let removed = gone.len() as u64;
        self.remove(gone);
        if !is_cut {
            state.finish(step.now);
            self.retentions.states.insert(step.interface, state);
        }
        Moved { moved: moved as u64, removed, state, goes_on: state.change.is_some() }
    }

    /// None: nothing waits.
    pub(super) fn confirm_retention(&mut self, confirm: &ConfirmRetention) -> Option<RetentionState> {
        let ConfirmRetention { interface, now, author, reason } = confirm.clone();
        let state = self.retentions.states.get_mut(&interface)?;
        state.unconfirmed()?;
        state.confirm(now);
        let state = *state;
        self.retentions.confirmed.insert(interface, RetentionConfirmed { at: now, author, reason });
        Some(state)
    }

    pub(super) fn list_retention(&self, age_now: Timestamp) -> Vec<RetentionView> {
        let names: BTreeMap<InterfaceId, &String> = self.interfaces().map(|(name, id)| (id, name)).collect();
        let view = |(interface, state): (&InterfaceId, &RetentionState)| RetentionView {
            interface: *interface,
            name: names.get(interface).map(|name| (*name).clone()).unwrap_or_default(),
            state: *state,
            confirmed: self.retentions.confirmed.get(interface).cloned(),
            oldest: self.of_interface(*interface).next().map(|(_, message)| message.stored_at),
            left: self.left(*interface, state, age_now),
            kept: self.retentions.counted_at.map(|at| self.kept(*interface, state, at)),
        };
        self.retentions.states.iter().map(view).collect()
    }

    fn of_interface(&self, interface: InterfaceId) -> impl Iterator<Item = (&MessageId, &Message)> {
        self.messages.iter().filter(move |(_, message)| message.interface == interface)
    }

    fn left(&self, interface: InterfaceId, state: &RetentionState, age_now: Timestamp) -> Option<Counted> {
        let is_left: Box<dyn Fn(&Message) -> bool> = match (state.change, state.unconfirmed()) {
            (Some(change), _) => Box::new(move |message| message.tier != change.to.tier),
            (None, Some(waiting)) => Box::new(move |message| {
                message.stored_at < age_now - waiting.to.tier.window() && goes(message.status, waiting.to)
            }),
            (None, None) => return None,
        };
        let count = self.of_interface(interface).filter(|(_, message)| is_left(message)).count();
        let most = RetentionView::LOOKED_AT_MAX as usize;
        Some(Counted { count: count.min(most) as u64, is_cut: count > most })
    }

    fn kept(&self, interface: InterfaceId, state: &RetentionState, at: Timestamp) -> KeptBeyond {
        let before = at - state.in_force().tier.window();
        let mut kept = KeptBeyond { at, ..KeptBeyond::default() };
        for (_, message) in self.of_interface(interface).filter(|(_, message)| message.stored_at < before) {
            match message.status {
                MessageStatus::Pending => kept.pending += 1,
                MessageStatus::Quarantined => kept.quarantined += 1,
                MessageStatus::Finished | MessageStatus::Duplicate => {}
            }
        }
        kept
    }

    /// Messages go with all that belongs to them.
    fn remove(&mut self, ids: Vec<MessageId>) {
        let gone: BTreeSet<MessageId> = ids.into_iter().collect();
        if !gone.is_empty() {
            self.forget_messages(&gone);
        }
    }
}

/// Whether a message that is old enough goes.
fn goes(status: MessageStatus, retention: Retention) -> bool {
    match status {
        MessageStatus::Finished | MessageStatus::Duplicate => true,
        MessageStatus::Pending => false,
        MessageStatus::Quarantined => retention.quarantined == Quarantined::Purge,
    }
}
