//! The project as the machines use it: interfaces and destinations by number, and how a
//! message of an interface becomes deliveries.

use std::collections::BTreeMap;
use std::ops::Range;

use portway_model::{DestinationId, Draft, InterfaceId, Lane, OnQuarantine, Term, Timestamp};
use portway_store::{DedupeWindow, Durability, NewDelivery, NewMessage, Origin, Pause};

use crate::fact::DestinationName;
use crate::settings::{DestinationSettings, EngineSettings, InterfaceSettings, Limits};

/// The number of a destination in the settings; dense, so that it can index.
pub(crate) type Place = usize;

/// See the file.
#[derive(Debug)]
pub(crate) struct Layout {
    pub limits: Limits,
    interfaces: Vec<InterfaceEntry>,
    destinations: Vec<DestinationSettings>,
    by_interface: BTreeMap<InterfaceId, usize>,
    by_destination: BTreeMap<DestinationId, Place>,
    pauses: BTreeMap<DestinationId, Pause>,
}

#[derive(Debug)]
struct InterfaceEntry {
    settings: InterfaceSettings,
    places: Range<Place>,
}

impl Layout {
    pub fn new(settings: EngineSettings) -> Self {
        let mut layout = Layout {
            limits: settings.limits,
            interfaces: Vec::new(),
            destinations: Vec::new(),
            by_interface: BTreeMap::new(),
            by_destination: BTreeMap::new(),
            pauses: settings.pauses.into_iter().collect(),
        };
        for mut interface in settings.interfaces {
            let first = layout.destinations.len();
            layout.destinations.append(&mut interface.destinations);
            layout.by_interface.insert(interface.id, layout.interfaces.len());
            let places = first..layout.destinations.len();
            layout.interfaces.push(InterfaceEntry { settings: interface, places });
        }
        for (place, destination) in layout.destinations.iter().enumerate() {
            layout.by_destination.insert(destination.id, place);
        }
        layout
    }

    pub fn destinations(&self) -> &[DestinationSettings] {
        &self.destinations
    }

    pub fn destination(&self, place: Place) -> Option<&DestinationSettings> {
        self.destinations.get(place)
    }

    pub fn place(&self, destination: DestinationId) -> Option<Place> {
        self.by_destination.get(&destination).copied()
    }

    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceSettings> {
        self.interfaces.iter().map(|entry| &entry.settings)
    }

    /// The number of an interface.
    pub fn source(&self, interface: InterfaceId) -> Option<usize> {
        self.by_interface.get(&interface).copied()
    }

    pub fn interfaces_count(&self) -> usize {
        self.interfaces.len()
    }

    pub fn interface(&self, source: usize) -> Option<&InterfaceSettings> {
        self.interfaces.get(source).map(|entry| &entry.settings)
    }

    /// Whether a destination was paused when the engine started.
    pub fn pause(&self, destination: DestinationId) -> Option<&Pause> {
        self.pauses.get(&destination)
    }

    /// A destination as people call it.
    pub fn name(&self, place: Place) -> DestinationName {
        let owner = self.interfaces.iter().find(|entry| entry.places.contains(&place));
        DestinationName {
            interface: owner.map(|entry| entry.settings.name.clone()).unwrap_or_default(),
            destination: self.destination(place).map(|settings| settings.name.clone()).unwrap_or_default(),
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
        let entry = self.interfaces.get(source)?;
        let settings = &entry.settings;
        let destinations = self.destinations.get(entry.places.clone())?;
        let lane = |order| Lane::of(order, draft.key.as_ref());
        let deliveries = destinations
            .iter()
            .map(|destination| NewDelivery { destination: destination.id, lane: lane(destination.order) })
            .collect();
        Some(NewMessage {
            interface: settings.id,
            group: settings.group,
            tier: settings.tier,
            received_at,
            terms: Term::of_message(&settings.search, draft.key.as_ref(), &draft.attributes),
            dedupe: settings.dedupe_window.filter(|_| draft.dedupe.is_some()).map(DedupeWindow),
            draft,
            origin: None,
            edited: None,
            deliveries,
        })
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
