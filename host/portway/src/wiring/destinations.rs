//! What delivers for each destination. It can be exchanged while runs are in hand: each run ends
//! with what it began with, so that a change comes between two runs of a lane.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use portway_model::DestinationId;

use super::control::Latencies;
use super::deliver::Destination;

/// See the file.
#[derive(Default)]
pub struct Destinations(RwLock<HashMap<DestinationId, Arc<Destination>>>);

impl Destinations {
    pub fn new(destinations: HashMap<DestinationId, Destination>) -> Destinations {
        let all = Destinations::default();
        all.set(destinations);
        all
    }

    pub fn get(&self, id: DestinationId) -> Option<Arc<Destination>> {
        self.read(|all| all.get(&id).cloned())
    }

    /// Runs that begin from now on go to these. Times that were measured are kept.
    pub fn set(&self, destinations: HashMap<DestinationId, Destination>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (id, mut new) in destinations {
            if let Some(old) = all.get(&id) {
                new.latency = old.latency.clone();
            }
            all.insert(id, Arc::new(new));
        }
    }

    /// Nothing of it is in hand any more. False: another one is in its place.
    pub fn remove(&self, id: DestinationId, was: &Arc<Destination>) -> bool {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = all.get(&id).is_some_and(|now| Arc::ptr_eq(now, was));
        if is_same {
            all.remove(&id);
        }
        is_same
    }

    /// The times of every destination, to be looked at while it runs.
    pub fn latencies(&self) -> Latencies {
        self.read(|all| all.iter().map(|(id, destination)| (*id, destination.latency.clone())).collect())
    }

    fn read<T>(&self, look: impl FnOnce(&HashMap<DestinationId, Arc<Destination>>) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
