//! Reading deliveries: what is pending where, page by page.
//!
//! Every query names its index, so that none is ever answered by reading the whole table. The
//! conditions are those of the indexes, word for word: SQLite uses a partial index only if it
//! finds them.

use portway_model::{DestinationId, Lane, MessageId, Timestamp};
use portway_store::{LaneHead, Pending, QueueView, StoreError};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::damaged;
use crate::number;
use crate::readers::Reader;

/// Goes from one destination to the next, however much waits at each.
const WITH_WORK: &str = "WITH RECURSIVE
    queued (id) AS (
        SELECT min(destination_id) FROM deliveries INDEXED BY deliveries_queue
            WHERE state = 0 AND (lane < 1024 OR due_at IS NULL)
        UNION ALL
        SELECT (SELECT min(destination_id) FROM deliveries INDEXED BY deliveries_queue
            WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) AND destination_id > id)
        FROM queued WHERE id IS NOT NULL),
    due (id) AS (
        SELECT min(destination_id) FROM deliveries INDEXED BY deliveries_due
            WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL
        UNION ALL
        SELECT (SELECT min(destination_id) FROM deliveries INDEXED BY deliveries_due
            WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id > id)
        FROM due WHERE id IS NOT NULL)
    SELECT id FROM queued WHERE id IS NOT NULL UNION SELECT id FROM due WHERE id IS NOT NULL ORDER BY id";

pub(crate) async fn destinations_with_work(
    reader: &mut Reader<'_>,
) -> Result<Vec<DestinationId>, StoreError> {
    let rows = reader.rows("find destinations with work", sqlx::query(WITH_WORK)).await?;
    rows.iter().map(|row| number::destination(int(row, 0)?)).collect()
}

/// Goes from one lane to the next, however much waits in each.
macro_rules! heads {
    ($index:literal, $condition:literal) => {
        concat!(
            "WITH RECURSIVE head (in_lane, message) AS (
                SELECT * FROM (SELECT lane, message_id FROM deliveries INDEXED BY ",
            $index,
            " WHERE ",
            $condition,
            " AND destination_id = ?1 ORDER BY lane, message_id LIMIT 1)
                UNION ALL
                SELECT (SELECT lane FROM deliveries INDEXED BY ",
            $index,
            " WHERE ",
            $condition,
            " AND destination_id = ?1 AND lane > in_lane ORDER BY lane LIMIT 1), NULL
                FROM head WHERE in_lane < 1024)
            SELECT in_lane, coalesce(message, (SELECT min(message_id) FROM deliveries INDEXED BY ",
            $index,
            " WHERE ",
            $condition,
            " AND destination_id = ?1 AND lane = in_lane))
            FROM head WHERE in_lane < 1024"
        )
    };
}

const LANE_HEADS: &str = heads!("deliveries_queue", "state = 0 AND (lane < 1024 OR due_at IS NULL)");
const HELD_HEADS: &str = heads!("deliveries_held", "state = 3");

pub(crate) async fn lane_heads(
    reader: &mut Reader<'_>,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    heads(reader, LANE_HEADS, destination).await
}

pub(crate) async fn held_heads(
    reader: &mut Reader<'_>,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    heads(reader, HELD_HEADS, destination).await
}

async fn heads(
    reader: &mut Reader<'_>,
    sql: &'static str,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    let query = sqlx::query(sql).bind(i64::from(destination.0));
    let rows = reader.rows("find the heads of lanes", query).await?;
    let head = |row: &SqliteRow| {
        Ok(LaneHead { lane: number::lane(int(row, 0)?)?, message: number::message(int(row, 1)?)? })
    };
    rows.iter().map(head).collect()
}

const READ_LANE: &str = "SELECT group_concat(message_id || ',' || lane || ',' || round || ',' || attempts || ',' ||
        ifnull(due_at, '') || ',' || body_bytes, ';')
    FROM (SELECT message_id, lane, round, attempts, due_at, body_bytes
        FROM deliveries INDEXED BY deliveries_queue CROSS JOIN messages ON messages.id = message_id
        WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) AND destination_id = ? AND lane = ? AND message_id > ?
        ORDER BY message_id LIMIT ?)";

pub(crate) async fn read_lane(
    reader: &mut Reader<'_>,
    destination: DestinationId,
    lane: Lane,
    after: MessageId,
    limit: u32,
) -> Result<Vec<Pending>, StoreError> {
    let query = sqlx::query(READ_LANE)
        .bind(i64::from(destination.0))
        .bind(i64::from(lane.number()))
        .bind(number::stored(after.0))
        .bind(i64::from(limit));
    pending(&reader.rows("read a lane", query).await?)
}

const READ_DUE: &str =
    "SELECT group_concat(message_id || ',' || lane || ',' || round || ',' || attempts || ',' ||
        ifnull(due_at, '') || ',' || body_bytes, ';')
    FROM (SELECT message_id, lane, round, attempts, due_at, body_bytes
        FROM deliveries INDEXED BY deliveries_due CROSS JOIN messages ON messages.id = message_id
        WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = ? AND due_at <= ?
        ORDER BY due_at, message_id LIMIT ?)";

pub(crate) async fn read_due(
    reader: &mut Reader<'_>,
    destination: DestinationId,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<Pending>, StoreError> {
    let query = sqlx::query(READ_DUE)
        .bind(i64::from(destination.0))
        .bind(number::stored(until.0))
        .bind(i64::from(limit));
    pending(&reader.rows("read what is due", query).await?)
}

/// A page comes as one text: a row of its own costs the driver more than reading it costs SQLite.
fn pending(rows: &[SqliteRow]) -> Result<Vec<Pending>, StoreError> {
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let text: Option<&str> = row.try_get(0).map_err(|_| damaged("a page cannot be read"))?;
    text.map_or(Ok(Vec::new()), |text| text.split(';').map(one_pending).collect())
}

fn one_pending(text: &str) -> Result<Pending, StoreError> {
    let mut fields = text.split(',');
    let mut field = || fields.next().unwrap_or_default();
    let int = |text: &str| text.parse::<i64>().map_err(|_| damaged("a delivery cannot be read"));
    Ok(Pending {
        message: number::message(int(field())?)?,
        lane: number::lane(int(field())?)?,
        round: number::round(int(field())?)?,
        attempts: number::attempts(int(field())?)?,
        due_at: match field() {
            "" => None,
            text => Some(number::time(int(text)?)?),
        },
        body_bytes: number::read(int(field())?)?,
    })
}

pub(crate) async fn next_due(
    reader: &mut Reader<'_>,
    destination: DestinationId,
    after: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let query = sqlx::query(
        "SELECT min(due_at) FROM deliveries INDEXED BY deliveries_due
        WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = ? AND due_at > ?",
    );
    let query = query.bind(i64::from(destination.0)).bind(number::stored(after.0));
    let rows = reader.rows("find what is due next", query).await?;
    let next = rows.first().map(|row| maybe_int(row, 0)).transpose()?.flatten();
    next.map(number::time).transpose()
}

/// Reads the whole of the small indexes; for people.
const QUEUES: &str = "SELECT destination_id, waiting, quarantined, (SELECT stored_at FROM messages WHERE id = oldest)
    FROM (SELECT destination_id, sum(waiting) AS waiting, sum(quarantined) AS quarantined, min(oldest) AS oldest
    FROM (
        SELECT destination_id, count(*) AS waiting, 0 AS quarantined, min(message_id) AS oldest
            FROM deliveries INDEXED BY deliveries_queue
            WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) GROUP BY destination_id
        UNION ALL
        SELECT destination_id, count(*), 0, min(message_id) FROM deliveries INDEXED BY deliveries_due
            WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL GROUP BY destination_id
        UNION ALL
        SELECT destination_id, 0, count(*), NULL FROM deliveries INDEXED BY deliveries_held
            WHERE state = 3 GROUP BY destination_id)
    GROUP BY destination_id) ORDER BY destination_id";

pub(crate) async fn list_queues(reader: &mut Reader<'_>) -> Result<Vec<QueueView>, StoreError> {
    let rows = reader.rows("list what waits", sqlx::query(QUEUES)).await?;
    let view = |row: &SqliteRow| {
        Ok(QueueView {
            destination: number::destination(int(row, 0)?)?,
            waiting: number::read(int(row, 1)?)?,
            quarantined: number::read(int(row, 2)?)?,
            oldest: maybe_int(row, 3)?.map(number::time).transpose()?,
        })
    };
    rows.iter().map(view).collect()
}

/// An integer of a row.
pub(crate) fn int(row: &SqliteRow, column: usize) -> Result<i64, StoreError> {
    row.try_get(column).map_err(|_| damaged("a number cannot be read"))
}

/// An integer of a row, or none.
pub(crate) fn maybe_int(row: &SqliteRow, column: usize) -> Result<Option<i64>, StoreError> {
    row.try_get(column).map_err(|_| damaged("a number cannot be read"))
}
