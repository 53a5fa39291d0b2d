//! What plugins keep.

use bytes::Bytes;
use portway_model::{DestinationId, StateWrite};
use portway_store::{DeliveryResult, ListStateKeys, StoreError};
use rusqlite::{Connection, Row, params};

use crate::query::{blob, int, row, rows, text};

const PUT: &str = "INSERT INTO plugin_state (destination_id, space, key, value) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET value = excluded.value";
const REMOVE: &str = "DELETE FROM plugin_state WHERE destination_id = ? AND space = ? AND key = ?";

/// Keeps what came with results that count, inside the transaction that is open.
pub(crate) fn keep<'a>(
    connection: &Connection,
    counting: impl Iterator<Item = &'a DeliveryResult>,
) -> rusqlite::Result<()> {
    for result in counting.filter(|result| !result.state.is_empty()) {
        for write in &result.state {
            let (destination, space, key) = (result.destination.0, &*write.space, &write.key);
            match &write.value {
                Some(value) => {
                    let mut put = connection.prepare_cached(PUT)?;
                    put.execute(params![destination, space, key, &value[..]])?;
                }
                None => remove(connection, result.destination, space, key)?,
            }
        }
    }
    Ok(())
}

/// Removes a value, inside the transaction that is open.
pub(crate) fn remove(
    connection: &Connection,
    destination: DestinationId,
    space: &str,
    key: &str,
) -> rusqlite::Result<()> {
    connection.prepare_cached(REMOVE)?.execute(params![destination.0, space, key]).map(drop)
}

const GET: &str = "SELECT value FROM plugin_state WHERE destination_id = ? AND space = ? AND key = ?";

pub(crate) fn get(
    connection: &Connection,
    destination: DestinationId,
    space: &str,
    key: &str,
) -> Result<Option<Bytes>, StoreError> {
    let what = "read the state of a plugin";
    row(connection, what, GET, params![destination.0, space, key], |row| {
        Ok(Bytes::copy_from_slice(blob(row, 0)?))
    })
}

const KEYS: &str = "SELECT key FROM plugin_state
    WHERE destination_id = ?1 AND space = ?2 AND key >= ?3 AND key <= ?4 AND key > ?5
    ORDER BY key LIMIT ?6";
/// More of it than a key has room for is behind every key with the same beginning.
const LAST_CHARACTER: &str = "\u{10FFFF}";

pub(crate) fn list_keys(connection: &Connection, list: &ListStateKeys) -> Result<Vec<String>, StoreError> {
    // No key is empty, so that all come after this.
    let after = list.after.as_deref().unwrap_or_default();
    let last = format!("{}{}", list.prefix, LAST_CHARACTER.repeat(StateWrite::KEY_BYTES_MAX / 4));
    let values = params![list.destination.0, list.space, list.prefix, last, after, list.limit];
    let key = |row: &Row<'_>| Ok(text(row, 0)?.unwrap_or_default().to_owned());
    rows(connection, "list the state of a plugin", KEYS, values, key)
}

const COUNT: &str = "SELECT count(*) FROM
    (SELECT 1 FROM plugin_state WHERE destination_id = ? AND space = ? LIMIT ?)";

pub(crate) fn count(
    connection: &Connection,
    destination: DestinationId,
    space: &str,
    limit: u32,
) -> Result<u32, StoreError> {
    let values = params![destination.0, space, limit];
    let counted = row(connection, "count the state of a plugin", COUNT, values, |row| int(row, 0))?;
    Ok(counted.and_then(|count| u32::try_from(count).ok()).unwrap_or(0))
}
