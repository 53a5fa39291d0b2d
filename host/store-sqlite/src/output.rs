//! What senders were given: the newest output of each delivery whose destination keeps it.

use bytes::Bytes;
use portway_model::{DestinationId, MessageId, SavedBody, Timestamp};
use portway_store::{DeliveryResult, OutputBody, OutputView, StoreError};
use rusqlite::{Connection, params};

use crate::error::damaged;
use crate::number::{self, stored};
use crate::query::{blob, int, row, rows, text};
use crate::view::attributes;

/// As stored in `kind`; numbers are never reused.
const SAME: i64 = 0;
const KEPT: i64 = 1;
const TOO_LARGE: i64 = 2;
const NO_ROOM: i64 = 3;

const KEEP: &str = "INSERT OR REPLACE INTO outputs
    (message_id, destination_id, round, attempt, saved_at, key, attributes, kind, body_bytes, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Keeps the output of a result that counts, if it has one.
pub(crate) fn keep(connection: &Connection, result: &DeliveryResult, now: Timestamp) -> rusqlite::Result<()> {
    let Some(output) = &result.output else { return Ok(()) };
    let (kind, size, body): (i64, u64, Option<&[u8]>) = match &output.body {
        SavedBody::Same => (SAME, 0, None),
        SavedBody::Kept(bytes) => (KEPT, bytes.len() as u64, Some(bytes)),
        SavedBody::TooLarge(size) => (TOO_LARGE, *size, None),
        SavedBody::NoRoom(size) => (NO_ROOM, *size, None),
    };
    let mut keep = connection.prepare_cached(KEEP)?;
    keep.execute(params![
        stored(result.message.0),
        result.destination.0,
        result.round.0,
        result.attempts.0,
        stored(now.0),
        output.key.as_ref().map(|key| key.as_str()),
        output.attributes.to_bytes(),
        kind,
        stored(size),
        body,
    ])?;
    Ok(())
}

const LIST: &str = "SELECT destination_id, round, attempt, saved_at, key, attributes, kind, body_bytes
    FROM outputs WHERE message_id = ? ORDER BY destination_id";

pub(crate) fn list(connection: &Connection, id: MessageId) -> Result<Vec<OutputView>, StoreError> {
    rows(connection, "list outputs", LIST, [stored(id.0)], |row| {
        let size = number::read(int(row, 7)?)?;
        Ok(OutputView {
            destination: number::destination(int(row, 0)?)?,
            round: number::round(int(row, 1)?)?,
            attempt: number::attempts(int(row, 2)?)?,
            saved_at: number::time(int(row, 3)?)?,
            key: text(row, 4)?.map(str::to_owned),
            attributes: attributes(row, 5)?,
            body: match int(row, 6)? {
                SAME => OutputBody::Same,
                KEPT => OutputBody::Kept(size),
                TOO_LARGE => OutputBody::TooLarge(size),
                NO_ROOM => OutputBody::NoRoom(size),
                _ => return Err(damaged("an output is of an unknown kind")),
            },
        })
    })
}

const LOAD: &str =
    "SELECT body FROM outputs WHERE message_id = ? AND destination_id = ? AND body IS NOT NULL";

pub(crate) fn load(
    connection: &Connection,
    id: MessageId,
    destination: DestinationId,
) -> Result<Option<Bytes>, StoreError> {
    row(connection, "load an output", LOAD, params![stored(id.0), destination.0], |row| {
        Ok(Bytes::copy_from_slice(blob(row, 0)?))
    })
}
