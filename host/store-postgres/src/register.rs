//! Giving numbers to interfaces and destinations.

use std::collections::HashMap;

use portway_model::{DestinationId, InterfaceId};
use portway_store::{Numbers, Registered, Topology};

use crate::error::{Failed, damaged};
use crate::number::{self, small};
use crate::query::{Session, value};
use crate::retention;

/// Every name that ever had a number, and those that get one now.
struct Known {
    interfaces: HashMap<String, u32>,
    destinations: HashMap<(u32, String), u32>,
    new_interfaces: Vec<(u32, String)>,
    new_destinations: Vec<(u32, u32, String)>,
}

/// Of two engines that give numbers the second waits; whoever only reads does not.
const ONE_AT_A_TIME: &str = "LOCK TABLE interfaces, destinations IN SHARE ROW EXCLUSIVE MODE";
const NAME: &str = "SELECT name FROM store_name WHERE id = 1";

/// Registers a topology inside a transaction that is alone.
pub(crate) async fn register(session: &mut Session, topology: &Topology) -> Result<Registered, Failed> {
    let what = "register interfaces";
    session.script(what, ONE_AT_A_TIME).await?;
    let mut known = Known::read(session).await?;
    let mut interfaces = Vec::with_capacity(topology.interfaces.len());
    let mut wanted = Vec::with_capacity(topology.interfaces.len());
    for registration in &topology.interfaces {
        let interface = known.interface(&registration.name);
        let destinations = registration.destinations.iter();
        let destinations = destinations.map(|name| known.destination(interface, name)).collect();
        wanted.push((interface, registration.retention));
        interfaces.push((interface, destinations));
    }
    known.insert_new(session).await?;
    retention::want(session, &wanted, topology.now).await?;
    let store = session.read_one(what, sqlx::query(NAME), |row| value::<String>(row, 0)).await?;
    let store = store.ok_or_else(|| damaged("the store has no name"))?;
    let retentions = retention::states(session).await?;
    let aged_to = retention::aged_to(session).await?;
    Ok(Registered { interfaces, store, pauses: Vec::new(), retentions, aged_to })
}

/// All numbers ever given, for what is refused.
pub(crate) async fn numbers(session: &mut Session) -> Result<Numbers, Failed> {
    let known = Known::read(session).await?;
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
const INSERT_INTERFACES: &str =
    "INSERT INTO interfaces (id, name) SELECT * FROM unnest($1::int4[], $2::text[])";
const INSERT_DESTINATIONS: &str = "INSERT INTO destinations (id, interface_id, name)
    SELECT * FROM unnest($1::int4[], $2::int4[], $3::text[])";

impl Known {
    async fn read(session: &mut Session) -> Result<Known, Failed> {
        let what = "read the numbers of interfaces";
        let interfaces = session.read(what, sqlx::query(INTERFACES), |row| {
            Ok((value(row, 0)?, number::read_u32(value(row, 1)?)?))
        });
        let interfaces = interfaces.await?.into_iter().collect();
        let destinations = session.read(what, sqlx::query(DESTINATIONS), |row| {
            let slot = (number::read_u32(value(row, 0)?)?, value(row, 1)?);
            Ok((slot, number::read_u32(value(row, 2)?)?))
        });
        let destinations = destinations.await?.into_iter().collect();
        Ok(Known { interfaces, destinations, new_interfaces: Vec::new(), new_destinations: Vec::new() })
    }

    // Rows are never removed, so there are as many as the highest number says.
    fn interface(&mut self, name: &str) -> InterfaceId {
        if let Some(id) = self.interfaces.get(name) {
            return InterfaceId(*id);
        }
        let id = next_after(self.interfaces.len());
        self.interfaces.insert(name.to_owned(), id);
        self.new_interfaces.push((id, name.to_owned()));
        InterfaceId(id)
    }

    fn destination(&mut self, interface: InterfaceId, name: &str) -> DestinationId {
        let slot = (interface.0, name.to_owned());
        if let Some(id) = self.destinations.get(&slot) {
            return DestinationId(*id);
        }
        let id = next_after(self.destinations.len());
        self.destinations.insert(slot, id);
        self.new_destinations.push((id, interface.0, name.to_owned()));
        DestinationId(id)
    }

    async fn insert_new(self, session: &mut Session) -> Result<(), Failed> {
        let what = "register interfaces";
        if !self.new_interfaces.is_empty() {
            let (ids, names): (Vec<i32>, Vec<String>) =
                self.new_interfaces.into_iter().map(|(id, name)| (small(id), name)).unzip();
            session.execute(what, sqlx::query(INSERT_INTERFACES).bind(ids).bind(names)).await?;
        }
        if !self.new_destinations.is_empty() {
            let new = &self.new_destinations;
            let statement = sqlx::query(INSERT_DESTINATIONS)
                .bind(new.iter().map(|(id, ..)| small(*id)).collect::<Vec<_>>())
                .bind(new.iter().map(|(_, interface, _)| small(*interface)).collect::<Vec<_>>())
                .bind(new.iter().map(|(.., name)| name.as_str()).collect::<Vec<_>>());
            session.execute(what, statement).await?;
        }
        Ok(())
    }
}

fn next_after(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1)
}
