//! Owning groups: in one file one engine owns whatever it asks for.

use portway_model::{Epoch, GroupId};
use portway_store::StoreError;
use rusqlite::{Connection, params};

use crate::error::failed;
use crate::number::stored;

const LAST_EPOCH: &str = "SELECT coalesce(max(epoch), 0) FROM owners";
const OWN: &str = "INSERT INTO owners (group_id, engine, epoch) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET engine = excluded.engine, epoch = excluded.epoch";
const IN_USE: &str = "SELECT in_use FROM last_write";
const USE: &str = "UPDATE last_write SET in_use = 1";

/// Makes an engine the owner of groups in the transaction that is open. `epoch` is the one it owns
/// others in. Says in which it owns these, and whether the store was in use before.
pub(crate) fn claim(
    connection: &Connection,
    groups: &[GroupId],
    engine: &str,
    epoch: Option<Epoch>,
) -> rusqlite::Result<(Epoch, bool)> {
    let epoch = match epoch {
        Some(epoch) => epoch,
        None => {
            Epoch(connection.query_row::<i64, _, _>(LAST_EPOCH, [], |row| row.get(0))?.cast_unsigned() + 1)
        }
    };
    let mut own = connection.prepare_cached(OWN)?;
    for group in groups {
        own.execute(params![group.0, engine, stored(epoch.0)])?;
    }
    let in_use = connection.query_row(IN_USE, [], |row| row.get(0))?;
    connection.execute(USE, [])?;
    Ok((epoch, in_use))
}

const GROUPS: &str = "SELECT group_id FROM owners WHERE engine = ? ORDER BY group_id";

/// What an engine owns.
pub(crate) fn groups(connection: &Connection, engine: &str) -> Result<Vec<GroupId>, StoreError> {
    let read = || {
        let mut groups = connection.prepare_cached(GROUPS)?;
        groups.query_map([engine], |row| Ok(GroupId(row.get(0)?)))?.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|error| failed("read what the engine owns", error))
}
