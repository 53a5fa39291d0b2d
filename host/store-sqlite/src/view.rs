//! Messages as people see them, and with their bytes as destinations get them.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use portway_model::{Attributes, DeliveryState, Key, MessageId, MessageStatus};
use portway_store::{
    ActionView, AttemptView, DeliveryView, ErrorKind, ListMessages, MessageView, OriginKind, Page,
    StoreError, StoredMessage,
};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::action;
use crate::delivery::{int, maybe_int};
use crate::error::damaged;
use crate::number;
use crate::readers::Reader;
use crate::script::IntArray;

/// Messages one page looks at, where no index leads to those that fit.
const LOOKED_AT_MAX: i64 = 50_000;

pub(crate) async fn load_messages(
    reader: &mut Reader<'_>,
    ids: &[MessageId],
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut ids: Vec<i64> = ids.iter().map(|id| number::stored(id.0)).collect();
    ids.sort_unstable();
    ids.dedup();
    let ids: IntArray = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query(
        "SELECT messages.id, interface_id, received_at, messages.key, attributes, body, body_id
        FROM json_each(?) CROSS JOIN messages ON messages.id = value LEFT JOIN bodies ON message_id = messages.id
        WHERE body IS NOT NULL OR body_id IS NOT NULL",
    );
    let rows = reader.rows("load messages", query.bind(ids.into_json())).await?;
    let mut messages = Vec::with_capacity(rows.len());
    for row in &rows {
        let body = match maybe_int(row, 6)? {
            None => Some(Bytes::copy_from_slice(blob(row, 5)?)),
            Some(body_id) => load_large_body(reader, body_id).await?,
        };
        // None: pruned since the first query.
        if let Some(body) = body {
            messages.push(stored_message(row, body)?);
        }
    }
    Ok(messages)
}

fn stored_message(row: &SqliteRow, body: Bytes) -> Result<StoredMessage, StoreError> {
    Ok(StoredMessage {
        id: number::message(int(row, 0)?)?,
        interface: number::interface(int(row, 1)?)?,
        received_at: number::time(int(row, 2)?)?,
        key: text(row, 3)?.and_then(Key::new),
        attributes: Arc::new(attributes(row, 4)?),
        body,
    })
}

/// A large body from its pieces, one at a time, so that it is in memory once.
async fn load_large_body(reader: &mut Reader<'_>, body_id: i64) -> Result<Option<Bytes>, StoreError> {
    let size = sqlx::query("SELECT body_bytes FROM messages WHERE body_id = ?").bind(body_id);
    let rows = reader.rows("load a large body", size).await?;
    let Some(size) = rows.first().map(|row| int(row, 0)).transpose()? else { return Ok(None) };
    let size = usize::try_from(size).map_err(|_| damaged("a size is negative"))?;
    let mut body = BytesMut::with_capacity(size);
    for number in 0.. {
        if body.len() >= size {
            break;
        }
        let piece = sqlx::query("SELECT bytes FROM body_chunks WHERE body_id = ? AND number = ?");
        let rows = reader.rows("load a large body", piece.bind(body_id).bind(number)).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        body.extend_from_slice(blob(row, 0)?);
    }
    Ok(Some(body.freeze()))
}

const VIEW: &str =
    "SELECT id, interface_id, status, received_at, stored_at, occurred_at, key, dedupe_key, attributes,
    body_bytes, origin_id, origin_kind FROM messages";

/// Looks at a bounded number of messages at a time, so that a rare one is found without a long
/// read; the page then may hold fewer than was asked for, or none.
pub(crate) async fn list_messages(
    reader: &mut Reader<'_>,
    list: &ListMessages,
) -> Result<Page<MessageView>, StoreError> {
    let limit = list.limit.clamp(1, ListMessages::LIMIT_MAX);
    let before = list.before.map_or(i64::MAX, |before| number::stored(before.0));
    let lowest = if is_led_by_index(list) { i64::MIN } else { lowest_looked_at(reader, before).await? };
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
    sql.push_str(" ORDER BY id DESC LIMIT ?6");
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(before)
        .bind(lowest)
        .bind(list.interface.map(|interface| i64::from(interface.0)))
        .bind(list.status.map(|status| i64::from(status.number())))
        .bind(list.destination.map(|destination| i64::from(destination.0)))
        .bind(i64::from(limit) + 1);
    let rows = reader.rows("list messages", query).await?;
    let mut items = rows.iter().map(message_view).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = if more {
        items.last().map(|last| last.id)
    } else {
        (lowest > i64::MIN).then(|| number::given(lowest))
    };
    Ok(Page { items, next })
}

/// Whether an index finds the messages of a list in order.
fn is_led_by_index(list: &ListMessages) -> bool {
    let by_status = matches!(list.status, None | Some(MessageStatus::Quarantined));
    by_status && list.destination.is_none()
}

/// The lowest number to look at below `before`; the smallest number of all where that is everything.
async fn lowest_looked_at(reader: &mut Reader<'_>, before: i64) -> Result<i64, StoreError> {
    let query = sqlx::query(
        "SELECT lowest, EXISTS (SELECT 1 FROM messages WHERE id < lowest) FROM
            (SELECT min(id) AS lowest FROM (SELECT id FROM messages WHERE id < ? ORDER BY id DESC LIMIT ?))",
    );
    let rows = reader.rows("list messages", query.bind(before).bind(LOOKED_AT_MAX)).await?;
    let Some(row) = rows.first() else { return Ok(i64::MIN) };
    let more = int(row, 1)? != 0;
    Ok(maybe_int(row, 0)?.filter(|_| more).unwrap_or(i64::MIN))
}

pub(crate) async fn get_message(
    reader: &mut Reader<'_>,
    id: MessageId,
) -> Result<Option<MessageView>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!("{VIEW} WHERE id = ?"))).bind(number::stored(id.0));
    reader.rows("read a message", query).await?.first().map(message_view).transpose()
}

fn message_view(row: &SqliteRow) -> Result<MessageView, StoreError> {
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

pub(crate) async fn list_deliveries(
    reader: &mut Reader<'_>,
    id: MessageId,
) -> Result<Vec<DeliveryView>, StoreError> {
    let query = sqlx::query(
        "SELECT destination_id, lane, state, round, attempts, due_at, changed_at, reason FROM deliveries
        WHERE message_id = ? ORDER BY destination_id",
    );
    let rows = reader.rows("list deliveries", query.bind(number::stored(id.0))).await?;
    let view = |row: &SqliteRow| {
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
    };
    rows.iter().map(view).collect()
}

pub(crate) async fn list_attempts(
    reader: &mut Reader<'_>,
    id: MessageId,
) -> Result<Vec<AttemptView>, StoreError> {
    let query = sqlx::query(
        "SELECT destination_id, round, number, started_at, took_ms, outcome, text FROM attempts
        WHERE message_id = ? ORDER BY destination_id, round, number",
    );
    let rows = reader.rows("list attempts", query.bind(number::stored(id.0))).await?;
    let view = |row: &SqliteRow| {
        Ok(AttemptView {
            destination: number::destination(int(row, 0)?)?,
            round: number::round(int(row, 1)?)?,
            number: number::attempts(int(row, 2)?)?,
            started_at: number::time(int(row, 3)?)?,
            took_ms: number::read(int(row, 4)?)?,
            outcome: outcome_name(int(row, 5)?),
            text: text(row, 6)?.unwrap_or_default().to_owned(),
        })
    };
    rows.iter().map(view).collect()
}

/// The state a delivery had after the attempt, as the history calls it.
fn outcome_name(number: i64) -> &'static str {
    match u8::try_from(number).ok().and_then(DeliveryState::from_number) {
        Some(DeliveryState::Pending) => "retry",
        Some(state) => state.as_str(),
        None => "unknown",
    }
}

pub(crate) async fn list_actions(
    reader: &mut Reader<'_>,
    id: MessageId,
) -> Result<Vec<ActionView>, StoreError> {
    let query = sqlx::query(
        "SELECT at, destination_id, action, author, reason FROM message_actions WHERE message_id = ? ORDER BY id",
    );
    let rows = reader.rows("list actions", query.bind(number::stored(id.0))).await?;
    let view = |row: &SqliteRow| {
        Ok(ActionView {
            at: number::time(int(row, 0)?)?,
            destination: maybe_int(row, 1)?.map(number::destination).transpose()?,
            action: action::name(int(row, 2)?),
            author: text(row, 3)?.unwrap_or_default().to_owned(),
            reason: text(row, 4)?.unwrap_or_default().to_owned(),
        })
    };
    rows.iter().map(view).collect()
}

fn attributes(row: &SqliteRow, column: usize) -> Result<Attributes, StoreError> {
    Attributes::from_bytes(blob(row, column)?).map_err(|_| damaged("attributes cannot be read"))
}

fn blob(row: &SqliteRow, column: usize) -> Result<&[u8], StoreError> {
    row.try_get(column).map_err(|_| damaged("bytes cannot be read"))
}

fn text(row: &SqliteRow, column: usize) -> Result<Option<&str>, StoreError> {
    row.try_get(column).map_err(|_| damaged("a text cannot be read"))
}

/// A row of a newer binary is left alone, also by people's eyes.
fn newer(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, format!("{what} was written by a newer program"))
}
