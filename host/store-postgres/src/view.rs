//! Messages as people see them, and with their bytes as destinations get them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use portway_model::{Attributes, DeliveryState, Key, MessageId, MessageStatus};
use portway_store::{
    ActionKind, ActionView, AttemptView, DeliveryView, ErrorKind, ListMessages, MessageView, OriginKind,
    Page, StoreError, StoredMessage,
};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgRow;

use crate::day::{self, Days};
use crate::error::{Failed, damaged};
use crate::message::PIECE_BYTES;
use crate::number::{self, small, stored};
use crate::query::{Session, value};
use crate::term;

/// Messages one page looks at, where no index leads to those that fit.
const LOOKED_AT_MAX: i64 = 50_000;
/// Pieces of a large body that are fetched together.
const PIECES: i32 = 4;

const LOAD: &str = "SELECT m.id, m.interface_id, m.received_at, m.key, m.attributes, b.bytes, m.body_bytes,
        m.day
    FROM messages m JOIN bodies b ON b.message_id = m.id AND b.number = 0 AND b.tier = m.tier AND b.day = m.day
    WHERE m.id = ANY ($1) AND m.day >= $2 AND m.day <= $3";

/// A message whose body may have more pieces.
struct Loaded {
    message: StoredMessage,
    body_bytes: usize,
    day: i32,
}

pub(crate) async fn load_messages(
    session: &mut Session,
    ids: &[MessageId],
    days: &Days,
) -> Result<Vec<StoredMessage>, Failed> {
    let mut wanted: BTreeSet<i64> = ids.iter().map(|id| stored(id.0)).collect();
    let range = days.of(wanted.iter().copied());
    let mut loaded = load(session, &wanted, range).await?;
    for Loaded { message, .. } in &loaded {
        wanted.remove(&stored(message.id.0));
    }
    // Gone, without a body, or not where it should be.
    if !wanted.is_empty() && range != day::EVER {
        loaded.extend(load(session, &wanted, day::EVER).await?);
    }
    loaded.sort_unstable_by_key(|loaded| loaded.message.id);
    let mut messages = Vec::with_capacity(loaded.len());
    for loaded in loaded {
        let whole = loaded.message.body.len() >= loaded.body_bytes;
        messages.extend(if whole { Some(loaded.message) } else { load_rest(session, loaded).await? });
    }
    Ok(messages)
}

async fn load(session: &mut Session, ids: &BTreeSet<i64>, range: day::Range) -> Result<Vec<Loaded>, Failed> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = ids.iter().copied().collect();
    let statement = sqlx::query(LOAD).bind(ids).bind(range.0).bind(range.1);
    let loaded = session.read("load messages", statement, |row| {
        let message = StoredMessage {
            id: number::message(value(row, 0)?)?,
            interface: number::interface(value(row, 1)?)?,
            received_at: number::time(value(row, 2)?)?,
            key: key(value(row, 3)?)?.and_then(|key| Key::new(&key)),
            attributes: Arc::new(attributes(value(row, 4)?)?),
            body: Bytes::copy_from_slice(value(row, 5)?),
        };
        let body_bytes = usize::try_from(value::<i64>(row, 6)?).unwrap_or(0);
        Ok(Loaded { message, body_bytes, day: value(row, 7)? })
    });
    loaded.await
}

/// In whatever tier it is: it may be moved to another between two looks. The day stays.
const REST: &str = "SELECT bytes FROM bodies WHERE message_id = $1 AND number >= $2 AND number < $3
    AND day = $4 ORDER BY number";

/// The other pieces of a large body, a few at a time, so that it is in memory once; none if it was removed
/// since the first was read.
async fn load_rest(session: &mut Session, loaded: Loaded) -> Result<Option<StoredMessage>, Failed> {
    let Loaded { mut message, body_bytes, day } = loaded;
    if message.body.len() != PIECE_BYTES {
        return Err(damaged("a piece of a body has the wrong size").into());
    }
    let mut body = BytesMut::with_capacity(body_bytes);
    body.extend_from_slice(&message.body);
    let mut number = 1;
    while body.len() < body_bytes {
        let statement =
            sqlx::query(REST).bind(stored(message.id.0)).bind(number).bind(number + PIECES).bind(day);
        let before = body.len();
        let pieces = session.rows("load a large body", statement).await?;
        for piece in &pieces {
            body.extend_from_slice(value(piece, 0)?);
        }
        if body.len() == before {
            return Ok(None);
        }
        number += PIECES;
    }
    message.body = body.freeze();
    Ok(Some(message))
}

const VIEW: &str = "SELECT id, interface_id, status, received_at, stored_at, occurred_at, key, dedupe_key,
    attributes, body_bytes, origin_id, origin_kind FROM messages";

/// Looks at a bounded number of messages at a time, so that a rare one is found without a long
/// read; the page then may hold fewer than was asked for, or none.
pub(crate) async fn list_messages(
    session: &mut Session,
    list: &ListMessages,
) -> Result<Page<MessageView>, Failed> {
    let limit = list.limit.clamp(1, ListMessages::LIMIT_MAX);
    let mut before = list.before.map_or(i64::MAX, |before| stored(before.0));
    if let Some(to) = list.to {
        before = before.min(term::first_since(session, to.0).await?);
    }
    let since = match list.from {
        Some(from) => term::first_since(session, from.0).await?,
        None => i64::MIN,
    };
    if let Some(term) = list.term() {
        return term::list(session, list, term, (since, before)).await;
    }
    let lowest = if is_led_by_index(list) { i64::MIN } else { lowest_looked_at(session, before).await? };
    let lowest = lowest.max(since);
    let statement = sqlx::query(AssertSqlSafe(list_statement(list)))
        .bind(before)
        .bind(lowest)
        .bind(list.interface.map(|interface| small(interface.0)))
        .bind(list.status.map(|status| i16::from(status.number())))
        .bind(list.destination.map(|destination| small(destination.0)))
        .bind(list.text.as_ref().map(|text| text.as_bytes()))
        .bind(i64::from(limit) + 1);
    let mut items = session.read("list messages", statement, message_view).await?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next =
        if more { items.last().map(|last| last.id) } else { (lowest > since).then(|| number::given(lowest)) };
    // The bytes of a text may stand where a length and a value meet.
    items.retain(|view| list.fits(view.key.as_deref(), &view.attributes));
    Ok(Page { items, next })
}

/// Each combination of conditions is a statement of its own, so that each has a plan of its own.
fn list_statement(list: &ListMessages) -> String {
    // Every value is named, so that each has its type whether it is asked for or not.
    let mut sql = format!(
        "{VIEW} WHERE id < $1 AND id >= $2 AND ($3::int4 IS NULL OR true) AND ($4::int2 IS NULL OR true)
        AND ($5::int4 IS NULL OR true) AND ($6::bytea IS NULL OR true)"
    );
    if list.interface.is_some() {
        sql.push_str(" AND interface_id = $3");
    }
    match list.status {
        // As the index says it.
        Some(MessageStatus::Quarantined) => sql.push_str(" AND status = 2"),
        Some(_) => sql.push_str(" AND status = $4"),
        None => {}
    }
    if list.destination.is_some() {
        sql.push_str(
            " AND EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = messages.id
            AND d.destination_id = $5 AND d.tier = messages.tier AND d.day = messages.day OFFSET 0)",
        );
    }
    if list.text.is_some() {
        sql.push_str(" AND position($6 IN attributes) > 0");
    }
    sql.push_str(" ORDER BY id DESC LIMIT $7");
    sql
}

/// Whether an index finds the messages of a list in order.
fn is_led_by_index(list: &ListMessages) -> bool {
    let by_status = matches!(list.status, None | Some(MessageStatus::Quarantined));
    by_status && list.destination.is_none() && list.text.is_none()
}

const LOWEST: &str = "SELECT id FROM messages WHERE id < $1 ORDER BY id DESC OFFSET $2 LIMIT 1";

/// The lowest number to look at below `before`; the smallest number of all where that is everything.
async fn lowest_looked_at(session: &mut Session, before: i64) -> Result<i64, Failed> {
    let statement = sqlx::query(LOWEST).bind(before).bind(LOOKED_AT_MAX);
    let beyond = session.read_one("list messages", statement, |row| value::<i64>(row, 0)).await?;
    Ok(beyond.map_or(i64::MIN, |id| id.saturating_add(1)))
}

const ENDS: &str = "SELECT (SELECT id FROM messages ORDER BY id LIMIT 1),
    (SELECT id FROM messages ORDER BY id DESC LIMIT 1)";

/// The lowest and the highest number of a message there is.
pub(crate) async fn ends(session: &mut Session) -> Result<(i64, i64), Failed> {
    let ends = session.read_one("find the newest message", sqlx::query(ENDS), |row| {
        Ok(value::<Option<i64>>(row, 0)?.zip(value::<Option<i64>>(row, 1)?))
    });
    Ok(ends.await?.flatten().unwrap_or((0, -1)))
}

/// Messages that are of the interface, in the status and for the destination that are asked for, and have
/// the values that are asked for; newest first.
pub(crate) async fn get_fitting(
    session: &mut Session,
    ids: &[i64],
    list: &ListMessages,
) -> Result<Vec<MessageView>, Failed> {
    let sql = format!(
        "{VIEW} WHERE id = ANY ($1) AND ($2::int4 IS NULL OR interface_id = $2)
        AND ($3::int2 IS NULL OR status = $3)
        AND ($4::int4 IS NULL OR EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = messages.id
            AND d.destination_id = $4 AND d.tier = messages.tier AND d.day = messages.day OFFSET 0))
        ORDER BY id DESC"
    );
    let statement = sqlx::query(AssertSqlSafe(sql))
        .bind(ids)
        .bind(list.interface.map(|interface| small(interface.0)))
        .bind(list.status.map(|status| i16::from(status.number())))
        .bind(list.destination.map(|destination| small(destination.0)));
    let mut views = session.read("search messages", statement, message_view).await?;
    views.retain(|view| list.fits(view.key.as_deref(), &view.attributes));
    Ok(views)
}

pub(crate) async fn get_message(session: &mut Session, id: MessageId) -> Result<Option<MessageView>, Failed> {
    let sql = format!("{VIEW} WHERE id = $1");
    let statement = sqlx::query(AssertSqlSafe(sql)).bind(stored(id.0));
    session.read_one("read a message", statement, message_view).await
}

fn message_view(row: &PgRow) -> Result<MessageView, StoreError> {
    let status = u8::try_from(value::<i16>(row, 2)?).ok().and_then(MessageStatus::from_number);
    let origin_kind = value::<Option<i16>>(row, 11)?;
    let origin_kind = origin_kind.and_then(|kind| OriginKind::from_number(u8::try_from(kind).ok()?));
    Ok(MessageView {
        id: number::message(value(row, 0)?)?,
        interface: number::interface(value(row, 1)?)?,
        status: status.ok_or_else(|| newer("a status"))?,
        received_at: number::time(value(row, 3)?)?,
        stored_at: number::time(value(row, 4)?)?,
        occurred_at: value::<Option<i64>>(row, 5)?.map(number::time).transpose()?,
        key: key(value(row, 6)?)?,
        dedupe: key(value(row, 7)?)?,
        attributes: attributes(value(row, 8)?)?,
        body_bytes: number::read(value(row, 9)?)?,
        origin: value::<Option<i64>>(row, 10)?.map(number::message).transpose()?,
        origin_kind: origin_kind.map(OriginKind::as_str),
    })
}

const DELIVERIES: &str =
    "SELECT destination_id, lane, state, round, attempts, due_at, changed_at, reason FROM deliveries
    WHERE message_id = $1 ORDER BY destination_id";

pub(crate) async fn list_deliveries(
    session: &mut Session,
    id: MessageId,
) -> Result<Vec<DeliveryView>, Failed> {
    let statement = sqlx::query(DELIVERIES).bind(stored(id.0));
    let deliveries = session.read("list deliveries", statement, |row| {
        let state = u8::try_from(value::<i16>(row, 2)?).ok().and_then(DeliveryState::from_number);
        let state = state.ok_or_else(|| newer("a state"))?;
        let changed_at = number::time(value(row, 6)?)?;
        Ok(DeliveryView {
            destination: number::destination(value(row, 0)?)?,
            lane: number::lane(value(row, 1)?)?,
            state,
            round: number::round(value(row, 3)?)?,
            attempts: number::attempts(value(row, 4)?)?,
            due_at: value::<Option<i64>>(row, 5)?.map(number::time).transpose()?,
            finished_at: state.is_final().then_some(changed_at),
            reason: value(row, 7)?,
        })
    });
    deliveries.await
}

const ATTEMPTS: &str =
    "SELECT destination_id, round, number, started_at, took_ms, outcome, text FROM attempts
    WHERE message_id = $1 ORDER BY destination_id, round, number";

pub(crate) async fn list_attempts(session: &mut Session, id: MessageId) -> Result<Vec<AttemptView>, Failed> {
    let statement = sqlx::query(ATTEMPTS).bind(stored(id.0));
    let attempts = session.read("list attempts", statement, |row| {
        Ok(AttemptView {
            destination: number::destination(value(row, 0)?)?,
            round: number::round(value(row, 1)?)?,
            number: number::attempts(value(row, 2)?)?,
            started_at: number::time(value(row, 3)?)?,
            took_ms: number::read(value(row, 4)?)?,
            outcome: outcome_name(value(row, 5)?),
            text: value(row, 6)?,
        })
    });
    attempts.await
}

/// The state a delivery had after the attempt, as the history calls it.
fn outcome_name(number: i16) -> &'static str {
    match u8::try_from(number).ok().and_then(DeliveryState::from_number) {
        Some(DeliveryState::Pending) => "retry",
        Some(state) => state.as_str(),
        None => "unknown",
    }
}

const ACTIONS: &str = "SELECT at, destination_id, action, author, reason FROM message_actions WHERE message_id = $1 ORDER BY id";

pub(crate) async fn list_actions(session: &mut Session, id: MessageId) -> Result<Vec<ActionView>, Failed> {
    let statement = sqlx::query(ACTIONS).bind(stored(id.0));
    let actions = session.read("list actions", statement, |row| {
        Ok(ActionView {
            at: number::time(value(row, 0)?)?,
            destination: value::<Option<i32>>(row, 1)?.map(number::destination).transpose()?,
            action: u8::try_from(value::<i16>(row, 2)?).map_or("unknown", ActionKind::name_of),
            author: value(row, 3)?,
            reason: value(row, 4)?,
        })
    });
    actions.await
}

const EDITS: &str = "SELECT id FROM messages WHERE origin_id = $1 AND origin_kind = 4 ORDER BY id";

pub(crate) async fn list_edits(session: &mut Session, id: MessageId) -> Result<Vec<MessageId>, Failed> {
    let statement = sqlx::query(EDITS).bind(stored(id.0));
    session.read("list corrected copies", statement, |row| number::message(value(row, 0)?)).await
}

fn key(bytes: Option<Vec<u8>>) -> Result<Option<String>, StoreError> {
    let read = |bytes| String::from_utf8(bytes).map_err(|_| damaged("a key cannot be read"));
    bytes.map(read).transpose()
}

pub(crate) fn attributes(bytes: &[u8]) -> Result<Attributes, StoreError> {
    Attributes::from_bytes(bytes).map_err(|_| damaged("attributes cannot be read"))
}

/// A row of a newer binary is left alone, also by people's eyes.
fn newer(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, format!("{what} was written by a newer program"))
}
