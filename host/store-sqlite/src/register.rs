//! Giving numbers to interfaces and destinations.

use std::collections::HashMap;

use portway_model::{DestinationId, InterfaceId};
use portway_store::{Numbers, Registered, Topology};
use rusqlite::{Connection, params};

use crate::retention;

/// Every name that ever had a number.
struct Known {
    interfaces: HashMap<String, u32>,
    destinations: HashMap<(u32, String), u32>,
}

const STORE: &str = "SELECT store FROM last_write";

/// Registers a topology inside the transaction that is open.
pub(crate) fn register(connection: &Connection, topology: &Topology) -> rusqlite::Result<Registered> {
    let mut known = Known::read(connection)?;
    let mut interfaces = Vec::with_capacity(topology.interfaces.len());
    let mut wanted = Vec::with_capacity(topology.interfaces.len());
    for registration in &topology.interfaces {
        let interface = known.interface(connection, &registration.name)?;
        let mut destinations = Vec::with_capacity(registration.destinations.len());
        for name in &registration.destinations {
            destinations.push(known.destination(connection, interface, name)?);
        }
        wanted.push((interface, registration.retention));
        interfaces.push((interface, destinations));
    }
    retention::want(connection, &wanted, topology.now)?;
    let store = connection.query_row(STORE, [], |row| row.get(0))?;
    let retentions = retention::states(connection)?;
    let aged_to = retention::aged_to(connection)?;
    Ok(Registered { interfaces, store, pauses: Vec::new(), retentions, aged_to })
}

/// All numbers ever given, for what is refused.
pub(crate) fn numbers(connection: &Connection) -> rusqlite::Result<Numbers> {
    let known = Known::read(connection)?;
    let mut numbers = Numbers::new();
    for id in known.interfaces.into_values() {
        numbers.insert(InterfaceId(id), []);
    }
    for ((interface, _), id) in known.destinations {
        numbers.insert(InterfaceId(interface), [DestinationId(id)]);
    }
    Ok(numbers)
}

const INTERFACES: &str = "SELECT name, id FROM interfaces";
const DESTINATIONS: &str = "SELECT interface_id, name, id FROM destinations";
const INSERT_INTERFACE: &str = "INSERT INTO interfaces (id, name) VALUES (?, ?)";
const INSERT_DESTINATION: &str = "INSERT INTO destinations (id, interface_id, name) VALUES (?, ?, ?)";

impl Known {
    fn read(connection: &Connection) -> rusqlite::Result<Known> {
        let mut interfaces = connection.prepare_cached(INTERFACES)?;
        let interfaces = interfaces.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut destinations = connection.prepare_cached(DESTINATIONS)?;
        let destinations = destinations.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        Ok(Known {
            interfaces: interfaces.collect::<Result<_, _>>()?,
            destinations: destinations.collect::<Result<_, _>>()?,
        })
    }

    // Rows are never removed, so there are as many as the highest number says.
    fn interface(&mut self, connection: &Connection, name: &str) -> rusqlite::Result<InterfaceId> {
        if let Some(id) = self.interfaces.get(name) {
            return Ok(InterfaceId(*id));
        }
        let id = next_after(self.interfaces.len());
        connection.prepare_cached(INSERT_INTERFACE)?.execute(params![id, name])?;
        self.interfaces.insert(name.to_owned(), id);
        Ok(InterfaceId(id))
    }

    fn destination(
        &mut self,
        connection: &Connection,
        interface: InterfaceId,
        name: &str,
    ) -> rusqlite::Result<DestinationId> {
        let slot = (interface.0, name.to_owned());
        if let Some(id) = self.destinations.get(&slot) {
            return Ok(DestinationId(*id));
        }
        let id = next_after(self.destinations.len());
        connection.prepare_cached(INSERT_DESTINATION)?.execute(params![id, interface.0, name])?;
        self.destinations.insert(slot, id);
        Ok(DestinationId(id))
    }
}

fn next_after(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1)
}
