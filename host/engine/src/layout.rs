//! The project as the machines use it: interfaces and destinations by number, and how a
//! message of an interface becomes deliveries.
//!
//! It can change while the engine runs; when it does, and what follows for destinations, is
//! decided in `core`. Numbers of what is gone are given again.

use std::collections::{BTreeMap, BTreeSet};

use portway_model::{DestinationId, Draft, GroupId, InterfaceId, Key, Lane, OnQuarantine, Term, Timestamp};
use portway_store::{DedupeWindow, Durability, NewDelivery, NewMessage, Origin, Pause};

use crate::fact::DestinationName;
use crate::settings::{DestinationSettings, EngineSettings, InterfaceSettings, LayoutChange, Limits};

/// The number of a destination; dense, so that it can index.
pub(crate) type Place = usize;

/// See the file.
#[derive(Debug)]
pub(crate) struct Layout {
    pub limits: Limits,
    /// None: the number is free.
    interfaces: Vec<Option<InterfaceEntry>>,
    destinations: Vec<DestinationEntry>,
    by_interface: BTreeMap<InterfaceId, usize>,
    /// Also those that are gone and still have something in hand.
    by_destination: BTreeMap<DestinationId, Place>,
    free_places: Vec<Place>,
    pauses: BTreeMap<DestinationId, Pause>,
}

#[derive(Debug)]
struct InterfaceEntry {
    settings: InterfaceSettings,
    places: Vec<Place>,
}

#[derive(Debug)]
struct DestinationEntry {
    settings: DestinationSettings,
    interface: String,
}

/// What follows from a change.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Destinations that begin: new ones, and those that begin anew.
    pub begin: Vec<Place>,
    /// Destinations that go.
    pub leave: Vec<Place>,
    /// Interfaces that are gone, by their former numbers.
    pub sources_gone: Vec<usize>,
}

impl Layout {
    pub fn new(settings: EngineSettings) -> Self {
        let mut layout = Layout {
            limits: settings.limits,
            interfaces: Vec::new(),
            destinations: Vec::new(),
            by_interface: BTreeMap::new(),
            by_destination: BTreeMap::new(),
            free_places: Vec::new(),
            pauses: settings.pauses.into_iter().collect(),
        };
        let mut changes = Changes::default();
        for interface in settings.interfaces {
            layout.set(interface, &BTreeSet::new(), &mut changes);
        }
        layout
    }

    /// Takes in a change. Destinations that go keep their place until [`Layout::free`].
    pub fn change(&mut self, change: LayoutChange) -> Changes {
        let LayoutChange { interfaces, removed, renewed, pauses } = change;
        self.set_pauses(pauses);
        let mut changes = Changes::default();
        for id in removed {
            let Some(source) = self.by_interface.remove(&id) else { continue };
            if let Some(entry) = self.interfaces.get_mut(source).and_then(Option::take) {
                changes.leave.extend(entry.places);
                changes.sources_gone.push(source);
            }
        }
        for interface in interfaces {
            self.set(interface, &renewed, &mut changes);
        }
        changes
    }

    fn set(
        &mut self,
        mut interface: InterfaceSettings,
        renewed: &BTreeSet<DestinationId>,
        changes: &mut Changes,
    ) {
        let id = interface.id;
        let known = self.by_interface.get(&id).copied();
        let before = known.and_then(|source| self.interfaces.get_mut(source).and_then(Option::take));
        let before = before.map(|entry| entry.places).unwrap_or_default();
        let mut places = Vec::with_capacity(interface.destinations.len());
        for settings in std::mem::take(&mut interface.destinations) {
            let place = self.place(settings.id);
            let is_there = place.filter(|place| before.contains(place));
            let is_same =
                is_there.and_then(|place| self.destination(place)).is_some_and(|own| *own == settings);
            let begins = !is_same || renewed.contains(&settings.id);
            let entry = DestinationEntry { settings, interface: interface.name.clone() };
            let place = self.put(place, entry);
            if begins {
                changes.begin.push(place);
            }
            places.push(place);
        }
        changes.leave.extend(before.into_iter().filter(|place| !places.contains(place)));
        let entry = Some(InterfaceEntry { settings: interface, places });
        let source = known.or_else(|| self.interfaces.iter().position(Option::is_none));
        match source.and_then(|source| self.interfaces.get_mut(source).map(|slot| (source, slot))) {
            Some((source, slot)) => {
                *slot = entry;
                self.by_interface.insert(id, source);
            }
            None => {
                self.by_interface.insert(id, self.interfaces.len());
                self.interfaces.push(entry);
            }
        }
    }

    fn put(&mut self, place: Option<Place>, entry: DestinationEntry) -> Place {
        let id = entry.settings.id;
        let place = place.or_else(|| self.free_places.pop()).unwrap_or(self.destinations.len());
        match self.destinations.get_mut(place) {
            Some(slot) => *slot = entry,
            None => self.destinations.push(entry),
        }
        self.by_destination.insert(id, place);
        place
    }

    /// A destination that went has nothing in hand any more: its place can be another's.
    pub fn free(&mut self, place: Place) {
        if let Some(entry) = self.destinations.get(place)
            && self.by_destination.remove(&entry.settings.id).is_some()
        {
            self.free_places.push(place);
        }
    }

    /// How many places there are, those that are free among them.
    pub fn places_count(&self) -> usize {
        self.destinations.len()
    }

    /// The places of the destinations of groups.
    pub fn places_of(&self, is_meant: impl Fn(GroupId) -> bool) -> Vec<Place> {
        let meant = self.interfaces.iter().flatten().filter(|entry| is_meant(entry.settings.group));
        meant.flat_map(|entry| entry.places.iter().copied()).collect()
    }

    /// Which destinations are paused, of all.
    pub fn set_pauses(&mut self, pauses: Vec<(DestinationId, Pause)>) {
        self.pauses = pauses.into_iter().collect();
    }

    pub fn destinations(&self) -> impl Iterator<Item = &DestinationSettings> {
        self.destinations.iter().map(|entry| &entry.settings)
    }

    pub fn destination(&self, place: Place) -> Option<&DestinationSettings> {
        self.destinations.get(place).map(|entry| &entry.settings)
    }

    pub fn place(&self, destination: DestinationId) -> Option<Place> {
        self.by_destination.get(&destination).copied()
    }

    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceSettings> {
        self.interfaces.iter().flatten().map(|entry| &entry.settings)
    }

    /// The number of an interface.
    pub fn source(&self, interface: InterfaceId) -> Option<usize> {
        self.by_interface.get(&interface).copied()
    }

    /// How many numbers of interfaces there are, those that are free among them.
    pub fn interfaces_count(&self) -> usize {
        self.interfaces.len()
    }

    pub fn interface(&self, source: usize) -> Option<&InterfaceSettings> {
        self.entry(source).map(|entry| &entry.settings)
    }

    fn entry(&self, source: usize) -> Option<&InterfaceEntry> {
        self.interfaces.get(source).and_then(Option::as_ref)
    }

    /// Whether a destination was paused when it was told last.
    pub fn pause(&self, destination: DestinationId) -> Option<&Pause> {
        self.pauses.get(&destination)
    }

    /// A destination as people call it.
    pub fn name(&self, place: Place) -> DestinationName {
        let entry = self.destinations.get(place);
        DestinationName {
            interface: entry.map(|entry| entry.interface.clone()).unwrap_or_default(),
            destination: entry.map(|entry| entry.settings.name.clone()).unwrap_or_default(),
        }
    }

    pub fn holds(&self, place: Place) -> bool {
        self.destination(place).is_some_and(|settings| settings.on_quarantine == OnQuarantine::Hold)
    }

    /// Whether a message of this interface must be flushed before it is acknowledged.
    pub fn is_strict(&self, source: usize) -> bool {
        self.interface(source).is_some_and(|settings| settings.durability == Durability::Strict)
    }

    /// A message of an interface with a delivery to each of its destinations.
    pub fn message(&self, source: usize, received_at: Timestamp, draft: Draft) -> Option<NewMessage> {
        let entry = self.entry(source)?;
        let settings = &entry.settings;
        let deliveries = self.deliveries(entry, draft.key.as_ref());
        Some(NewMessage {
            interface: settings.id,
            group: settings.group,
            received_at,
            terms: Term::of_message(&settings.search, draft.key.as_ref(), &draft.attributes),
            dedupe: settings.dedupe_window.filter(|_| draft.dedupe.is_some()).map(DedupeWindow),
            draft,
            origin: None,
            edited: None,
            deliveries,
        })
    }

    fn deliveries(&self, entry: &InterfaceEntry, key: Option<&Key>) -> Vec<NewDelivery> {
        let settings = entry.places.iter().filter_map(|place| self.destination(*place));
        let delivery = |settings: &DestinationSettings| NewDelivery {
            destination: settings.id,
            lane: Lane::of(settings.order, key),
        };
        settings.map(delivery).collect()
    }

    /// A message that is not stored yet goes to what its interface has now. One of an interface
    /// that is gone stays as it is, and waits for it.
    pub fn readdress(&self, message: &mut NewMessage) {
        if let Some(entry) = self.source(message.interface).and_then(|source| self.entry(source)) {
            message.deliveries = self.deliveries(entry, message.draft.key.as_ref());
        }
    }

    /// A message that a route brings into an interface.
    pub fn routed(
        &self,
        target: InterfaceId,
        now: Timestamp,
        draft: Draft,
        origin: Origin,
    ) -> Option<NewMessage> {
        let message = self.message(self.source(target)?, now, draft)?;
        Some(NewMessage { origin: Some(origin), ..message })
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{GroupId, Guarantee, Order, RetryPolicy};
    use std::time::Duration;

    use super::*;

    fn destination(id: u32, run_max: u32) -> DestinationSettings {
        DestinationSettings {
            id: DestinationId(id),
            name: format!("to-{id}"),
            order: Order::Strict,
            concurrency: 1,
            retry: RetryPolicy::default(),
            on_quarantine: OnQuarantine::Continue,
            run_max,
            guarantee: Guarantee::AtLeastOnce,
            send_max: Duration::ZERO,
            rate: None,
        }
    }

    fn interface(id: u32, destinations: &[(u32, u32)]) -> InterfaceSettings {
        InterfaceSettings {
            id: InterfaceId(id),
            group: GroupId(id),
            name: format!("in-{id}"),
            durability: Durability::Strict,
            dedupe_window: None,
            search: Vec::new(),
            destinations: destinations.iter().map(|(id, run_max)| destination(*id, *run_max)).collect(),
        }
    }

    fn layout() -> Layout {
        let interfaces = vec![interface(1, &[(11, 1), (12, 1)]), interface(2, &[(21, 1)])];
        Layout::new(EngineSettings {
            interfaces,
            limits: Limits::default(),
            pauses: Vec::new(),
            retentions: Vec::new(),
            aged_to: None,
        })
    }

    fn change(interfaces: Vec<InterfaceSettings>, removed: &[u32]) -> LayoutChange {
        let removed = removed.iter().map(|id| InterfaceId(*id)).collect();
        LayoutChange { interfaces, removed, ..LayoutChange::default() }
    }

    fn places(mut of: Vec<Place>) -> Vec<Place> {
        of.sort_unstable();
        of
    }

    fn goes_to(layout: &Layout, id: u32) -> Option<Vec<u32>> {
        let draft = Draft {
            body: "".into(),
            key: None,
            dedupe: None,
            occurred_at: None,
            attributes: portway_model::Attributes::default(),
            doubt: None,
        };
        let message = layout.message(layout.source(InterfaceId(id))?, Timestamp(0), draft)?;
        Some(message.deliveries.iter().map(|delivery| delivery.destination.0).collect())
    }

    #[test]
    fn only_what_changed_begins_anew() {
        let mut layout = layout();
        let same = layout.change(change(vec![interface(1, &[(12, 1), (11, 1)])], &[]));
        assert_eq!((same.begin, same.leave), (vec![], vec![]), "another sequence is no change");
        let changed = layout.change(change(vec![interface(1, &[(11, 1), (12, 2), (13, 1)])], &[]));
        assert_eq!((changed.begin, changed.leave), (vec![1, 3], vec![]));
        assert_eq!(goes_to(&layout, 1), Some(vec![11, 12, 13]));
        let renewed = BTreeSet::from([DestinationId(21)]);
        let again = LayoutChange { renewed, ..change(vec![interface(2, &[(21, 1)])], &[]) };
        assert_eq!(layout.change(again).begin, [2]);
    }

    #[test]
    fn what_is_gone_keeps_its_place_until_it_is_free() {
        let mut layout = layout();
        let gone = layout.change(change(vec![interface(2, &[(22, 1)])], &[1]));
        assert_eq!((places(gone.leave), gone.begin, gone.sources_gone), (vec![0, 1, 2], vec![3], vec![0]));
        assert_eq!((goes_to(&layout, 1), goes_to(&layout, 2)), (None, Some(vec![22])));
        assert_eq!(layout.place(DestinationId(11)), Some(0), "it may still have something in hand");
        layout.free(0);
        assert_eq!(layout.place(DestinationId(11)), None);
        layout.free(0);
        let back = layout.change(change(vec![interface(3, &[(31, 1), (32, 1)])], &[]));
        assert_eq!(back.begin, [0, 4], "each place is given once");
        assert_eq!(layout.source(InterfaceId(3)), Some(0));
    }

    #[test]
    fn what_comes_back_before_it_ended_begins_anew_in_its_place() {
        let mut layout = layout();
        layout.change(change(vec![], &[2]));
        let back = layout.change(change(vec![interface(2, &[(21, 1)])], &[]));
        assert_eq!((back.begin, back.leave), (vec![2], vec![]));
        assert_eq!(goes_to(&layout, 2), Some(vec![21]));
    }
}
