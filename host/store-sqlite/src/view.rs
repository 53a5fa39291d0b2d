//! Messages as people see them, and with their bytes as destinations get them.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use portway_model::{Attributes, DeliveryState, Key, MessageId, MessageStatus};
use portway_store::{
    ActionKind, ActionView, AttemptView, DeliveryView, ErrorKind, ListMessages, MessageView, OriginKind,
    Page, StoreError, StoredMessage,
};
use rusqlite::{Connection, Row, params};

use crate::error::{damaged, failed};
use crate::number::{self, stored};
use crate::query::{blob, int, maybe_int, row, rows, text};
use crate::term;

/// Messages one page looks at, where no index leads to those that fit.
const LOOKED_AT_MAX: i64 = 50_000;

const LOAD: &str = "SELECT messages.id, interface_id, received_at, messages.key, attributes, body, body_id
    FROM messages LEFT JOIN bodies ON message_id = messages.id
    WHERE messages.id = ? AND (body IS NOT NULL OR body_id IS NOT NULL)";

pub(crate) fn load_messages(
    connection: &Connection,
    ids: &[MessageId],
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut ids: Vec<i64> = ids.iter().map(|id| stored(id.0)).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut messages = Vec::with_capacity(ids.len());
    let mut large = Vec::new();
    let error = |error| failed("load messages", error);
    // One look for all of them: beginning to read costs about as much as reading a message.
    let look = connection.unchecked_transaction().map_err(error)?;
    for id in ids {
        let Some((message, body_id)) = row(&look, "load messages", LOAD, [id], stored_message)? else {
            continue;
        };
        large.extend(body_id.map(|body_id| (messages.len(), body_id)));
        messages.push(message);
    }
    look.commit().map_err(error)?;
    let mut gone = Vec::new();
    for (index, body_id) in large {
        match (messages.get_mut(index), load_large_body(connection, body_id)?) {
            (Some(message), Some(body)) => message.body = body,
            // Pruned since the look.
            (message, _) => gone.extend(message.map(|message| message.id)),
        }
    }
    messages.retain(|message| !gone.contains(&message.id));
    Ok(messages)
}

/// A message and, if its body is a large one, where that is: it is not loaded yet.
fn stored_message(row: &Row<'_>) -> Result<(StoredMessage, Option<i64>), StoreError> {
    let body_id = maybe_int(row, 6)?;
    let body = if body_id.is_some() { Bytes::new() } else { Bytes::copy_from_slice(blob(row, 5)?) };
    let message = StoredMessage {
        id: number::message(int(row, 0)?)?,
        interface: number::interface(int(row, 1)?)?,
        received_at: number::time(int(row, 2)?)?,
        key: text(row, 3)?.and_then(Key::new),
        attributes: Arc::new(attributes(row, 4)?),
        body,
    };
    Ok((message, body_id))
}

const SIZE: &str = "SELECT body_bytes FROM messages WHERE body_id = ?";
const PIECE: &str = "SELECT bytes FROM body_chunks WHERE body_id = ? AND number = ?";

/// A large body from its pieces, one at a time, so that it is in memory once.
fn load_large_body(connection: &Connection, body_id: i64) -> Result<Option<Bytes>, StoreError> {
    let what = "load a large body";
    let Some(size) = row(connection, what, SIZE, [body_id], |row| int(row, 0))? else { return Ok(None) };
    let size = usize::try_from(size).map_err(|_| damaged("a size is negative"))?;
    let mut body = BytesMut::with_capacity(size);
    for number in 0_i64.. {
        if body.len() >= size {
            break;
        }
        let piece = row(connection, what, PIECE, params![body_id, number], |row| {
            body.extend_from_slice(blob(row, 0)?);
            Ok(())
        });
        if piece?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(body.freeze()))
}

const VIEW: &str =
    "SELECT id, interface_id, status, received_at, stored_at, occurred_at, key, dedupe_key, attributes,
    body_bytes, origin_id, origin_kind FROM messages";

/// Looks at a bounded number of messages at a time, so that a rare one is found without a long
/// read; the page then may hold fewer than was asked for, or none.
pub(crate) fn list_messages(
    connection: &Connection,
    list: &ListMessages,
) -> Result<Page<MessageView>, StoreError> {
    let limit = list.limit.clamp(1, ListMessages::LIMIT_MAX);
    let mut before = list.before.map_or(i64::MAX, |before| stored(before.0));
    if let Some(to) = list.to {
        before = before.min(term::first_since(connection, to.0)?);
    }
    let since = list.from.map(|from| term::first_since(connection, from.0)).transpose()?;
    let since = since.unwrap_or(i64::MIN);
    if let Some(term) = list.term() {
        return term::list(connection, list, term, (since, before));
    }
    let lowest = if is_led_by_index(list) { i64::MIN } else { lowest_looked_at(connection, before)? };
    let lowest = lowest.max(since);
    let mut sql = format!("{VIEW} WHERE id < ?1 AND id >= ?2");
    if list.interface.is_some() {
        sql.push_str(" AND interface_id = ?3");
    }
    match list.status {
        // As the index says it.
        Some(MessageStatus::Quarantined) => sql.push_str(" AND status = 2"),
        Some(_) => sql.push_str(" AND status = ?4"),
        None => {}
    }
    if list.destination.is_some() {
        sql.push_str(
            " AND EXISTS (SELECT 1 FROM deliveries WHERE message_id = messages.id AND destination_id = ?5)",
        );
    }
    if list.text.is_some() {
        sql.push_str(" AND instr(attributes, CAST(?6 AS BLOB)) > 0");
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?7");
    let wanted = params![
        before,
        lowest,
        list.interface.map(|interface| interface.0),
        list.status.map(MessageStatus::number),
        list.destination.map(|destination| destination.0),
        list.text,
        i64::from(limit) + 1,
    ];
    let mut items = rows(connection, "list messages", &sql, wanted, message_view)?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next =
        if more { items.last().map(|last| last.id) } else { (lowest > since).then(|| number::given(lowest)) };
    // The bytes of a text may stand where a length and a value meet.
    items.retain(|view| list.fits(view.key.as_deref(), &view.attributes));
    Ok(Page { items, next })
}

/// Whether an index finds the messages of a list in order.
fn is_led_by_index(list: &ListMessages) -> bool {
    let by_status = matches!(list.status, None | Some(MessageStatus::Quarantined));
    by_status && list.destination.is_none() && list.text.is_none()
}

const LOWEST: &str = "SELECT lowest, EXISTS (SELECT 1 FROM messages WHERE id < lowest) FROM
    (SELECT min(id) AS lowest FROM (SELECT id FROM messages WHERE id < ? ORDER BY id DESC LIMIT ?))";

/// The lowest number to look at below `before`; the smallest number of all where that is everything.
fn lowest_looked_at(connection: &Connection, before: i64) -> Result<i64, StoreError> {
    let wanted = params![before, LOOKED_AT_MAX];
    let lowest = row(connection, "list messages", LOWEST, wanted, |row| {
        let more = int(row, 1)? != 0;
        Ok(maybe_int(row, 0)?.filter(|_| more))
    })?;
    Ok(lowest.flatten().unwrap_or(i64::MIN))
}

/// A message, if it is of the interface, in the status and for the destination that are asked for.
pub(crate) fn get_fitting(
    connection: &Connection,
    id: i64,
    list: &ListMessages,
) -> Result<Option<MessageView>, StoreError> {
    let sql = format!(
        "{VIEW} WHERE id = ?1 AND (?2 IS NULL OR interface_id = ?2) AND (?3 IS NULL OR status = ?3)
        AND (?4 IS NULL OR EXISTS (SELECT 1 FROM deliveries WHERE message_id = ?1 AND destination_id = ?4))"
    );
    let wanted = params![
        id,
        list.interface.map(|interface| interface.0),
        list.status.map(MessageStatus::number),
        list.destination.map(|destination| destination.0),
    ];
    row(connection, "search messages", &sql, wanted, message_view)
}

pub(crate) fn get_message(connection: &Connection, id: MessageId) -> Result<Option<MessageView>, StoreError> {
    let sql = format!("{VIEW} WHERE id = ?");
    row(connection, "read a message", &sql, [stored(id.0)], message_view)
}

fn message_view(row: &Row<'_>) -> Result<MessageView, StoreError> {
    let status = u8::try_from(int(row, 2)?).ok().and_then(MessageStatus::from_number);
    let origin_kind = maybe_int(row, 11)?.and_then(|kind| OriginKind::from_number(u8::try_from(kind).ok()?));
    Ok(MessageView {
        id: number::message(int(row, 0)?)?,
        interface: number::interface(int(row, 1)?)?,
        status: status.ok_or_else(|| newer("a status"))?,
        received_at: number::time(int(row, 3)?)?,
        stored_at: number::time(int(row, 4)?)?,
        occurred_at: maybe_int(row, 5)?.map(number::time).transpose()?,
        key: text(row, 6)?.map(str::to_owned),
        dedupe: text(row, 7)?.map(str::to_owned),
        attributes: attributes(row, 8)?,
        body_bytes: number::read(int(row, 9)?)?,
        origin: maybe_int(row, 10)?.map(number::message).transpose()?,
        origin_kind: origin_kind.map(OriginKind::as_str),
    })
}

const DELIVERIES: &str =
    "SELECT destination_id, lane, state, round, attempts, due_at, changed_at, reason FROM deliveries
    WHERE message_id = ? ORDER BY destination_id";

pub(crate) fn list_deliveries(
    connection: &Connection,
    id: MessageId,
) -> Result<Vec<DeliveryView>, StoreError> {
    rows(connection, "list deliveries", DELIVERIES, [stored(id.0)], |row| {
        let state = u8::try_from(int(row, 2)?).ok().and_then(DeliveryState::from_number);
        let state = state.ok_or_else(|| newer("a state"))?;
        let changed_at = number::time(int(row, 6)?)?;
        Ok(DeliveryView {
            destination: number::destination(int(row, 0)?)?,
            lane: number::lane(int(row, 1)?)?,
            state,
            round: number::round(int(row, 3)?)?,
            attempts: number::attempts(int(row, 4)?)?,
            due_at: maybe_int(row, 5)?.map(number::time).transpose()?,
            finished_at: state.is_final().then_some(changed_at),
            reason: text(row, 7)?.map(str::to_owned),
        })
    })
}

const ATTEMPTS: &str =
    "SELECT destination_id, round, number, started_at, took_ms, outcome, text FROM attempts
    WHERE message_id = ? ORDER BY destination_id, round, number";

pub(crate) fn list_attempts(connection: &Connection, id: MessageId) -> Result<Vec<AttemptView>, StoreError> {
    rows(connection, "list attempts", ATTEMPTS, [stored(id.0)], |row| {
        Ok(AttemptView {
            destination: number::destination(int(row, 0)?)?,
            round: number::round(int(row, 1)?)?,
            number: number::attempts(int(row, 2)?)?,
            started_at: number::time(int(row, 3)?)?,
            took_ms: number::read(int(row, 4)?)?,
            outcome: outcome_name(int(row, 5)?),
            text: text(row, 6)?.unwrap_or_default().to_owned(),
        })
    })
}

/// The state a delivery had after the attempt, as the history calls it.
fn outcome_name(number: i64) -> &'static str {
    match u8::try_from(number).ok().and_then(DeliveryState::from_number) {
        Some(DeliveryState::Pending) => "retry",
        Some(state) => state.as_str(),
        None => "unknown",
    }
}

const ACTIONS: &str =
    "SELECT at, destination_id, action, author, reason FROM message_actions WHERE message_id = ? ORDER BY id";

pub(crate) fn list_actions(connection: &Connection, id: MessageId) -> Result<Vec<ActionView>, StoreError> {
    rows(connection, "list actions", ACTIONS, [stored(id.0)], |row| {
        Ok(ActionView {
            at: number::time(int(row, 0)?)?,
            destination: maybe_int(row, 1)?.map(number::destination).transpose()?,
            action: u8::try_from(int(row, 2)?).map_or("unknown", ActionKind::name_of),
            author: text(row, 3)?.unwrap_or_default().to_owned(),
            reason: text(row, 4)?.unwrap_or_default().to_owned(),
        })
    })
}

const EDITS: &str = "SELECT id FROM messages INDEXED BY messages_edited
    WHERE origin_id = ? AND origin_kind = 4 ORDER BY id";

pub(crate) fn list_edits(connection: &Connection, id: MessageId) -> Result<Vec<MessageId>, StoreError> {
    rows(connection, "list corrected copies", EDITS, [stored(id.0)], |row| number::message(int(row, 0)?))
}

pub(crate) fn attributes(row: &Row<'_>, column: usize) -> Result<Attributes, StoreError> {
    Attributes::from_bytes(blob(row, column)?).map_err(|_| damaged("attributes cannot be read"))
}

/// A row of a newer binary is left alone, also by people's eyes.
fn newer(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, format!("{what} was written by a newer program"))
}
