//! What operators do to destinations as a whole, and which are paused because of it.

use portway_model::{DestinationId, Timestamp};
use portway_store::{DestinationAction, DestinationActionKind, DestinationActionView, Pause, StoreError};
use rusqlite::{Connection, params};

use crate::error::failed;
use crate::number::{self, stored};
use crate::query::{int, rows, text};
use crate::state;

const RECORD: &str = "INSERT INTO destination_actions (destination_id, at, action, author, reason)
    VALUES (?, ?, ?, ?, ?)";
/// Never the newest word on whether it is paused.
const FORGET: &str = "DELETE FROM destination_actions WHERE destination_id = ?1 AND id <=
    (SELECT id FROM destination_actions WHERE destination_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
    AND id <> (SELECT ifnull(max(id), 0) FROM destination_actions
        WHERE destination_id = ?1 AND action IN (1, 2))";

/// Does and records actions inside the transaction that is open, in order.
pub(crate) fn act(
    connection: &Connection,
    actions: &[DestinationAction],
    now: Timestamp,
) -> Result<(), StoreError> {
    let error = |error| failed("store an action on a destination", error);
    for action in actions {
        let values =
            params![action.destination.0, stored(now.0), action.kind.number(), action.author, action.reason];
        connection.prepare_cached(RECORD).and_then(|mut record| record.execute(values)).map_err(error)?;
        let kept = params![action.destination.0, DestinationActionView::KEPT_MAX];
        connection.prepare_cached(FORGET).and_then(|mut forget| forget.execute(kept)).map_err(error)?;
        match &action.kind {
            DestinationActionKind::RemoveState(at) => {
                state::remove(connection, action.destination, &at.space, &at.key).map_err(error)?;
            }
            // Whether it is paused is read from the record.
            DestinationActionKind::Pause | DestinationActionKind::Resume => {}
        }
    }
    Ok(())
}

const LIST: &str = "SELECT at, action, author, reason FROM destination_actions
    WHERE destination_id = ? ORDER BY id DESC LIMIT ?";

pub(crate) fn list_actions(
    connection: &Connection,
    destination: DestinationId,
) -> Result<Vec<DestinationActionView>, StoreError> {
    let wanted = params![destination.0, DestinationActionView::KEPT_MAX];
    rows(connection, "list actions on a destination", LIST, wanted, |row| {
        let kind = u8::try_from(int(row, 1)?).unwrap_or_default();
        Ok(DestinationActionView {
            at: number::time(int(row, 0)?)?,
            action: DestinationActionKind::name_of(kind),
            author: text(row, 2)?.unwrap_or_default().to_owned(),
            reason: text(row, 3)?.unwrap_or_default().to_owned(),
        })
    })
}

/// The newest pause or resume of a destination counts.
const PAUSES: &str = "SELECT destination_id, at, author, reason FROM destination_actions
    WHERE id IN (SELECT max(id) FROM destination_actions WHERE action IN (1, 2) GROUP BY destination_id)
        AND action = ?
    ORDER BY destination_id";

pub(crate) fn pauses(connection: &Connection) -> Result<Vec<(DestinationId, Pause)>, StoreError> {
    let pause = params![DestinationActionKind::Pause.number()];
    rows(connection, "read which destinations are paused", PAUSES, pause, |row| {
        let pause = Pause {
            since: number::time(int(row, 1)?)?,
            author: text(row, 2)?.unwrap_or_default().to_owned(),
            reason: text(row, 3)?.unwrap_or_default().to_owned(),
        };
        Ok((number::destination(int(row, 0)?)?, pause))
    })
}
