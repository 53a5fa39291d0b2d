//! Which interface's change of retention is worked at next, and what the store said of all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use portway_model::{InterfaceId, RetentionState};
use portway_store::{ConfirmRetention, Moved};

use crate::event::Ticket;

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Retentions {
    states: BTreeMap<InterfaceId, RetentionState>,
    /// Interfaces to take a step for, with the time from which on there is something to do.
    steps: BTreeMap<InterfaceId, Duration>,
    /// The interface of the last step: others come before it.
    last: InterfaceId,
    confirmations: VecDeque<(Ticket, ConfirmRetention)>,
    /// The one in hand, and whose.
    confirming: Option<(Ticket, InterfaceId)>,
    pub moved: u64,
    pub removed: u64,
}

impl Retentions {
    pub fn new(states: Vec<(InterfaceId, RetentionState)>) -> Retentions {
        let mut retentions = Retentions::default();
        retentions.set_all(states);
        retentions
    }

    /// As the store says of all interfaces.
    pub fn set_all(&mut self, states: Vec<(InterfaceId, RetentionState)>) {
        for (interface, state) in states {
            self.set(interface, state);
        }
    }

    /// As the store says.
    pub fn set(&mut self, interface: InterfaceId, state: RetentionState) {
        self.states.insert(interface, state);
        match state.change {
            Some(_) => drop(self.steps.entry(interface).or_default()),
            None => drop(self.steps.remove(&interface)),
        }
    }

    /// The store may have changed something and could not say so: a step tells.
    pub fn doubt(&mut self, interface: InterfaceId) {
        self.steps.insert(interface, Duration::ZERO);
    }

    pub fn doubt_all(&mut self) {
        let all: BTreeSet<InterfaceId> = self.states.keys().copied().collect();
        all.into_iter().for_each(|interface| self.doubt(interface));
    }

    /// Changes that run, and interfaces where something waits for a confirmation.
    pub fn counts(&self) -> (usize, usize) {
        let changing = self.states.values().filter(|state| state.change.is_some()).count();
        let unconfirmed = self.states.values().filter(|state| state.unconfirmed().is_some()).count();
        (changing, unconfirmed)
    }

    /// The interface whose turn it is.
    pub fn next_step(&mut self, monotonic: Duration) -> Option<InterfaceId> {
        let is_due = |(_, at): &(&InterfaceId, &Duration)| **at <= monotonic;
        let after = self.steps.iter().filter(|(interface, _)| **interface > self.last).find(is_due);
        let next = *after.or_else(|| self.steps.iter().find(is_due))?.0;
        self.last = next;
        Some(next)
    }

    /// When there is something to do.
    pub fn step_at(&self) -> Option<Duration> {
        self.steps.values().min().copied()
    }

    /// What became of a step; none: the store could not. Where it does not go on, though the change is not over,
    /// it is tried again at `again_at`.
    pub fn stepped(&mut self, interface: InterfaceId, moved: Option<&Moved>, again_at: Duration) {
        let Some(moved) = moved else {
            self.steps.insert(interface, again_at);
            return;
        };
        self.moved += moved.moved;
        self.removed += moved.removed;
        self.steps.remove(&interface);
        self.set(interface, moved.state);
        if moved.state.change.is_some() && !moved.goes_on {
            self.steps.insert(interface, again_at);
        }
    }

    pub fn confirm(&mut self, ticket: Ticket, confirm: ConfirmRetention) {
        self.confirmations.push_back((ticket, confirm));
    }

    /// An operator waits for the writer.
    pub fn is_asked(&self) -> bool {
        !self.confirmations.is_empty()
    }

    /// What the store's writer is to record, once it is free.
    pub fn next_confirmation(&mut self) -> Option<ConfirmRetention> {
        let (ticket, confirm) = self.confirmations.pop_front()?;
        self.confirming = Some((ticket, confirm.interface));
        Some(confirm)
    }

    /// Whose confirmation was in hand.
    pub fn confirmed(&mut self) -> Option<(Ticket, InterfaceId)> {
        self.confirming.take()
    }

    /// Who waits in vain.
    pub fn refuse_confirmations(&mut self) -> impl Iterator<Item = Ticket> {
        self.confirmations.drain(..).map(|(ticket, _)| ticket)
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{Quarantined, Retention, RetentionChange, Tier, Timestamp};

    use super::*;

    const NOON: Duration = Duration::from_secs(43_200);

    fn changing() -> RetentionState {
        let to = Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep };
        RetentionState {
            change: Some(RetentionChange { to, since: Timestamp(0) }),
            ..RetentionState::default()
        }
    }

    fn moved(moved: u64, state: RetentionState) -> Moved {
        Moved { moved, removed: 0, state, goes_on: moved > 0 }
    }

    #[test]
    fn changes_take_turns_until_they_are_over() {
        let states = (1..=3).map(|id| (InterfaceId(id), changing())).collect();
        let mut retentions = Retentions::new(states);
        let next = || {
            let next = retentions.next_step(Duration::ZERO)?;
            let is_second = next == InterfaceId(2);
            let state = if is_second { RetentionState::default() } else { changing() };
            retentions.stepped(next, Some(&moved(1, state)), NOON);
            Some(next.0)
        };
        let turns: Vec<_> = std::iter::from_fn(next).take(6).collect();
        assert_eq!(turns, [1, 2, 3, 1, 3, 1]);
        assert_eq!((retentions.counts(), retentions.moved), ((2, 0), 6));
    }

    #[test]
    fn a_change_that_has_nothing_to_do_waits() {
        let mut retentions = Retentions::new(vec![(InterfaceId(1), changing())]);
        assert_eq!(retentions.next_step(Duration::ZERO), Some(InterfaceId(1)));
        retentions.stepped(InterfaceId(1), Some(&moved(0, changing())), NOON);
        assert_eq!((retentions.next_step(Duration::ZERO), retentions.step_at()), (None, Some(NOON)));
        assert_eq!(retentions.next_step(NOON), Some(InterfaceId(1)));
        retentions.stepped(InterfaceId(1), None, NOON * 2);
        assert_eq!(retentions.step_at(), Some(NOON * 2), "and one that failed");
    }

    #[test]
    fn what_the_store_could_not_say_is_asked() {
        let mut retentions = Retentions::new(vec![(InterfaceId(1), RetentionState::default())]);
        assert_eq!(retentions.next_step(NOON), None);
        retentions.doubt_all();
        assert_eq!(retentions.next_step(NOON), Some(InterfaceId(1)));
        retentions.stepped(InterfaceId(1), Some(&moved(0, RetentionState::default())), NOON);
        assert_eq!(retentions.next_step(NOON), None);
    }
}
