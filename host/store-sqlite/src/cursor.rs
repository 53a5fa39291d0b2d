//! How far sources have come.

use bytes::Bytes;
use portway_model::{InterfaceId, Timestamp};
use portway_store::{SourceCursor, StoreError};
use rusqlite::{Connection, params};

use crate::error::failed;
use crate::number::stored;
use crate::query::{blob, row};

const KEEP: &str = "INSERT INTO source_cursors (interface_id, cursor, changed_at) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET cursor = excluded.cursor, changed_at = excluded.changed_at";

/// Replaces cursors inside the transaction that is open.
pub(crate) fn keep(
    connection: &Connection,
    cursors: &[SourceCursor],
    now: Timestamp,
) -> Result<(), StoreError> {
    let error = |error| failed("keep the cursor of a source", error);
    for SourceCursor { interface, cursor } in cursors {
        let mut keep = connection.prepare_cached(KEEP).map_err(error)?;
        keep.execute(params![interface.0, &cursor[..], stored(now.0)]).map_err(error)?;
    }
    Ok(())
}

const READ: &str = "SELECT cursor FROM source_cursors WHERE interface_id = ?";

pub(crate) fn read(connection: &Connection, interface: InterfaceId) -> Result<Option<Bytes>, StoreError> {
    row(connection, "read the cursor of a source", READ, [interface.0], |row| {
        Ok(Bytes::copy_from_slice(blob(row, 0)?))
    })
}
