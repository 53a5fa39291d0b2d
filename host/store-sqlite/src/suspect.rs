//! Deliveries that may have killed the process: how often each was recorded before it was tried.

use portway_model::{DestinationId, MessageId};
use portway_store::{DeliveryResult, StoreError, Suspect};
use rusqlite::{Connection, params};

use crate::error::failed;
use crate::number::{message, read_u32, stored};
use crate::query::{int, row, rows};

const COUNT: &str = "INSERT INTO suspects (message_id, destination_id, tries) VALUES (?, ?, 1)
    ON CONFLICT DO UPDATE SET tries = min(tries + 1, 4294967295) RETURNING tries";

/// Counts suspects inside the transaction that is open; answers each one's count.
pub(crate) fn count(connection: &Connection, suspects: &[Suspect]) -> Result<Vec<u32>, StoreError> {
    let what = "count suspects";
    let mut counts = Vec::with_capacity(suspects.len());
    for suspect in suspects {
        let slot = params![stored(suspect.message.0), suspect.destination.0];
        let tries = row(connection, what, COUNT, slot, |row| read_u32(int(row, 0)?))?;
        counts.push(tries.unwrap_or_default());
    }
    Ok(counts)
}

pub(crate) const FORGET: &str = "DELETE FROM suspects WHERE message_id = ? AND destination_id = ?";

/// Forgets suspects that have a result now.
pub(crate) fn forget<'a>(
    connection: &Connection,
    results: impl Iterator<Item = &'a DeliveryResult>,
) -> Result<(), StoreError> {
    let error = |error| failed("forget suspects", error);
    let mut forget = connection.prepare_cached(FORGET).map_err(error)?;
    for result in results {
        forget.execute(params![stored(result.message.0), result.destination.0]).map_err(error)?;
    }
    Ok(())
}

const LIST: &str = "SELECT message_id FROM suspects WHERE destination_id = ? ORDER BY message_id";

/// Those of a destination.
pub(crate) fn list(
    connection: &Connection,
    destination: DestinationId,
) -> Result<Vec<MessageId>, StoreError> {
    rows(connection, "list suspects", LIST, params![destination.0], |row| message(int(row, 0)?))
}

const ANY: &str = "SELECT EXISTS (SELECT 1 FROM suspects)";

/// Whether there are any.
pub(crate) fn any(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(ANY, [], |row| row.get(0))
}
