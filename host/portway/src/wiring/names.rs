//! Names of the project beside numbers of the store.

use std::collections::HashMap;

use portway_config::Project;
use portway_engine::ports::Clock as _;
use portway_model::{DestinationId, InterfaceId};
use portway_store::{Registered, Registration, Topology};

use super::clock::SystemClock;

/// Both directions, for what the project has now.
#[derive(Clone)]
pub struct Names {
    interfaces: HashMap<InterfaceId, String>,
    destinations: HashMap<DestinationId, (InterfaceId, String)>,
    by_name: HashMap<String, InterfaceNumbers>,
}

#[derive(Clone)]
struct InterfaceNumbers {
    id: InterfaceId,
    destinations: HashMap<String, DestinationId>,
}

/// What the store is asked to number.
pub fn topology(project: &Project) -> Topology {
    let interfaces = project.interfaces.iter().map(|interface| Registration {
        name: interface.name.as_str().to_owned(),
        destinations: interface.destinations.iter().map(|one| one.name.value.as_str().to_owned()).collect(),
        retention: project.retention(interface),
    });
    Topology { interfaces: interfaces.collect(), now: SystemClock::new().now() }
}

impl Names {
    /// `registered` is what the store answered to `topology`.
    pub fn new(topology: &Topology, registered: &Registered) -> Names {
        let mut names =
            Names { interfaces: HashMap::new(), destinations: HashMap::new(), by_name: HashMap::new() };
        for (registration, (id, numbers)) in topology.interfaces.iter().zip(&registered.interfaces) {
            names.interfaces.insert(*id, registration.name.clone());
            let pairs = registration.destinations.iter().zip(numbers);
            for (name, number) in pairs.clone() {
                names.destinations.insert(*number, (*id, name.clone()));
            }
            let destinations = pairs.map(|(name, number)| (name.clone(), *number)).collect();
            names.by_name.insert(registration.name.clone(), InterfaceNumbers { id: *id, destinations });
        }
        names
    }

    pub fn interface(&self, name: &str) -> Option<InterfaceId> {
        self.by_name.get(name).map(|numbers| numbers.id)
    }

    pub fn destination(&self, interface: &str, name: &str) -> Option<DestinationId> {
        self.by_name.get(interface).and_then(|numbers| numbers.destinations.get(name).copied())
    }

    /// The name; an interface the project no longer has is shown by its number.
    pub fn interface_name(&self, id: InterfaceId) -> String {
        self.interfaces.get(&id).cloned().unwrap_or_else(|| format!("#{id}"))
    }

    /// The name; a destination the project no longer has is shown by its number.
    pub fn destination_name(&self, id: DestinationId) -> String {
        self.destinations.get(&id).map_or_else(|| format!("#{id}"), |(_, name)| name.clone())
    }

    pub fn interface_of(&self, id: DestinationId) -> Option<InterfaceId> {
        self.destinations.get(&id).map(|(interface, _)| *interface)
    }
}
