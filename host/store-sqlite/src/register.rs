//! Giving numbers to interfaces and destinations.

use std::collections::HashMap;

use portway_model::{DestinationId, InterfaceId};
use portway_store::{Numbers, Registered, StoreError, Topology};
use sqlx::sqlite::SqliteConnection;

use crate::error::{commit_failed, failed};
use crate::number::{destination, interface};
use crate::script::Script;

/// Every name that ever had a number.
#[derive(Default)]
struct Known {
    interfaces: HashMap<String, u32>,
    destinations: HashMap<(u32, String), u32>,
    new_interfaces: Vec<serde_json::Value>,
    new_destinations: Vec<serde_json::Value>,
}

/// Registers a topology in one transaction; `engine` is the name of the running one.
pub(crate) async fn register(
    connection: &mut SqliteConnection,
    topology: &Topology,
    engine: &str,
) -> Result<Registered, StoreError> {
    let (mut known, in_use, store) = read(connection).await?;
    let mut interfaces = Vec::with_capacity(topology.interfaces.len());
    for registration in &topology.interfaces {
        let interface = known.interface(&registration.name);
        let destinations = registration.destinations.iter().map(|name| known.destination(interface, name));
        interfaces.push((interface, destinations.collect()));
    }
    let owned: Vec<u32> = interfaces.iter().map(|(interface, _)| interface.0).collect();
    let mut script = Script::default();
    script
        .step("BEGIN IMMEDIATE")
        .step("INSERT INTO interfaces (id, name) SELECT value ->> 0, value ->> 1 FROM json_each(?)")
        .bind(serde_json::Value::from(known.new_interfaces).to_string())
        .step(
            "INSERT INTO destinations (id, interface_id, name)
            SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
        )
        .bind(serde_json::Value::from(known.new_destinations).to_string())
        .step(
            "INSERT INTO owners (group_id, engine, epoch) SELECT value, ?, 1 FROM json_each(?) WHERE true
            ON CONFLICT DO UPDATE SET epoch = epoch + (engine <> excluded.engine), engine = excluded.engine",
        )
        .bind(engine)
        .bind(serde_json::Value::from(owned).to_string())
        .step("UPDATE last_write SET in_use = 1")
        .step("COMMIT");
    script.run(connection).await.map_err(|error| commit_failed("register interfaces", error))?;
    Ok(Registered { interfaces, unclean: in_use, store })
}

async fn read(connection: &mut SqliteConnection) -> Result<(Known, bool, String), StoreError> {
    let error = |error| failed("read the interfaces", error);
    let (interfaces, destinations, (in_use, store)) = read_rows(connection).await.map_err(error)?;
    let mut known = Known::default();
    for (id, name) in interfaces {
        known.interfaces.insert(name, interface(id)?.0);
    }
    for (id, of, name) in destinations {
        known.destinations.insert((interface(of)?.0, name), destination(id)?.0);
    }
    Ok((known, in_use, store))
}

type Rows = (Vec<(i64, String)>, Vec<(i64, i64, String)>, (bool, String));

async fn read_rows(connection: &mut SqliteConnection) -> Result<Rows, sqlx::Error> {
    let interfaces = sqlx::query_as("SELECT id, name FROM interfaces").fetch_all(&mut *connection).await?;
    let destinations = "SELECT id, interface_id, name FROM destinations";
    let destinations = sqlx::query_as(destinations).fetch_all(&mut *connection).await?;
    let last_write = sqlx::query_as("SELECT in_use, store FROM last_write").fetch_one(connection).await?;
    Ok((interfaces, destinations, last_write))
}

/// All numbers ever given, for what is refused.
pub(crate) async fn numbers(connection: &mut SqliteConnection) -> Result<Numbers, sqlx::Error> {
    let (interfaces, destinations, _) = read_rows(connection).await?;
    let mut numbers = Numbers::new();
    // Numbers out of range were never given; a message for one is refused.
    for id in interfaces.into_iter().filter_map(|(id, _)| u32::try_from(id).ok()) {
        numbers.insert(InterfaceId(id), []);
    }
    for (id, of, _) in destinations {
        if let (Ok(id), Ok(of)) = (u32::try_from(id), u32::try_from(of)) {
            numbers.insert(InterfaceId(of), [DestinationId(id)]);
        }
    }
    Ok(numbers)
}

impl Known {
    // Rows are never removed, so there are as many as the highest number says.
    fn interface(&mut self, name: &str) -> InterfaceId {
        if let Some(id) = self.interfaces.get(name) {
            return InterfaceId(*id);
        }
        let id = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.interfaces.insert(name.to_owned(), id);
        self.new_interfaces.push(serde_json::json!([id, name]));
        InterfaceId(id)
    }

    fn destination(&mut self, interface: InterfaceId, name: &str) -> DestinationId {
        let slot = (interface.0, name.to_owned());
        if let Some(id) = self.destinations.get(&slot) {
            return DestinationId(*id);
        }
        let id = u32::try_from(self.destinations.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.destinations.insert(slot, id);
        self.new_destinations.push(serde_json::json!([id, interface.0, name]));
        DestinationId(id)
    }
}
