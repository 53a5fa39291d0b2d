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

/// Deliveries of a destination that are looked at before going from lane to lane. Looking at one
/// costs a thirtieth of going to the next lane.
const LOOKED_AT: i64 = 16_384;

/// The heads of lanes: first by looking at a number of deliveries in order, then, where there are
/// more, by going from one lane to the next.
macro_rules! heads {
    ($index:literal, $condition:literal) => {
        (
            concat!(
                "SELECT group_concat(lane || ',' || head, ';'), sum(count) FROM
                    (SELECT lane, min(message_id) AS head, count(*) AS count FROM
                        (SELECT lane, message_id FROM deliveries INDEXED BY ",
                $index,
                " WHERE ",
                $condition,
                " AND destination_id = ? AND lane < 1024 ORDER BY lane, message_id LIMIT ?)
                    GROUP BY lane)"
            ),
            concat!(
                "WITH RECURSIVE lanes (in_lane) AS (
                    SELECT ?2
                    UNION ALL
                    SELECT (SELECT lane FROM deliveries INDEXED BY ",
                $index,
                " WHERE ",
                $condition,
                " AND destination_id = ?1 AND lane > in_lane ORDER BY lane LIMIT 1)
                    FROM lanes WHERE in_lane < 1024)
                SELECT group_concat(in_lane || ',' || (SELECT min(message_id) FROM deliveries INDEXED BY ",
                $index,
                " WHERE ",
                $condition,
                " AND destination_id = ?1 AND lane = in_lane), ';')
                FROM lanes WHERE in_lane > ?2 AND in_lane < 1024"
            ),
        )
    };
}

/// The two statements that find heads.
type Heads = (&'static str, &'static str);

const LANE_HEADS: Heads = heads!("deliveries_queue", "state = 0 AND (lane < 1024 OR due_at IS NULL)");
const HELD_HEADS: Heads = heads!("deliveries_held", "state = 3");

pub(crate) async fn lane_heads(
    reader: &mut Reader<'_>,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    heads(reader, LANE_HEADS, destination, LOOKED_AT).await
}

pub(crate) async fn held_heads(
    reader: &mut Reader<'_>,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    heads(reader, HELD_HEADS, destination, LOOKED_AT).await
}

async fn heads(
    reader: &mut Reader<'_>,
    (look, go): Heads,
    destination: DestinationId,
    looked_at: i64,
) -> Result<Vec<LaneHead>, StoreError> {
    let what = "find the heads of lanes";
    let query = sqlx::query(look).bind(i64::from(destination.0)).bind(looked_at);
    let rows = reader.rows(what, query).await?;
    let mut heads = heads_of(&rows)?;
    let seen = rows.first().map(|row| maybe_int(row, 1)).transpose()?.flatten();
    if let Some(last) = heads.last().filter(|_| seen == Some(looked_at)) {
        let query = sqlx::query(go).bind(i64::from(destination.0)).bind(i64::from(last.lane.number()));
        heads.extend(heads_of(&reader.rows(what, query).await?)?);
    }
    Ok(heads)
}

fn heads_of(rows: &[SqliteRow]) -> Result<Vec<LaneHead>, StoreError> {
    let head = |fields: &mut Fields<'_>| {
        Ok(LaneHead { lane: number::lane(fields.int()?)?, message: number::message(fields.int()?)? })
    };
    read_packed(rows, head)
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

fn pending(rows: &[SqliteRow]) -> Result<Vec<Pending>, StoreError> {
    read_packed(rows, |fields| {
        Ok(Pending {
            message: number::message(fields.int()?)?,
            lane: number::lane(fields.int()?)?,
            round: number::round(fields.int()?)?,
            attempts: number::attempts(fields.int()?)?,
            due_at: fields.maybe_int()?.map(number::time).transpose()?,
            body_bytes: number::read(fields.int()?)?,
        })
    })
}

/// A page comes as one text, rows between `;` and numbers between `,`: a row of its own costs the
/// driver more than reading it costs SQLite.
fn read_packed<T>(
    rows: &[SqliteRow],
    read: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let text: Option<&str> = row.try_get(0).map_err(|_| damaged("a page cannot be read"))?;
    let rows = text.into_iter().flat_map(|text| text.split(';'));
    rows.map(|text| read(&mut Fields(text.split(',')))).collect()
}

/// The numbers of a packed row.
struct Fields<'a>(std::str::Split<'a, char>);

impl Fields<'_> {
    fn int(&mut self) -> Result<i64, StoreError> {
        self.maybe_int()?.ok_or_else(|| damaged("a number is missing"))
    }

    fn maybe_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.0.next() {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| damaged("a number cannot be read")),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{SqliteSettings, open, writer_options};
    use crate::readers::Readers;
    use sqlx::ConnectOptions as _;

    /// A folder with a store in which these (lane, message) wait for destination 1.
    async fn with_queue(queue: &[(i64, i64)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        assert!(open(&SqliteSettings::new(&path)).await.is_ok());
        let mut connection = writer_options(&path).connect().await.unwrap();
        for (lane, message) in queue {
            let insert = "INSERT INTO deliveries (message_id, destination_id, lane, state, round, attempts, changed_at)
                VALUES (?, 1, ?, 0, 0, 0, 0)";
            sqlx::query(insert).bind(message).bind(lane).execute(&mut connection).await.unwrap();
        }
        folder
    }

    #[tokio::test]
    async fn heads_are_the_same_however_far_one_looks() {
        let queue = [(0, 5), (0, 6), (0, 9), (3, 2), (3, 8), (7, 1), (1023, 4), (1023, 7), (1024, 3)];
        let folder = with_queue(&queue).await;
        let readers = Readers::new(&folder.path().join("store.db"), 1);
        let mut reader = readers.get().await.unwrap();
        for looked_at in 1..10 {
            let heads = heads(&mut reader, LANE_HEADS, DestinationId(1), looked_at).await.unwrap();
            let heads: Vec<_> = heads.iter().map(|head| (head.lane.number(), head.message.0)).collect();
            assert_eq!(heads, [(0, 5), (3, 2), (7, 1), (1023, 4)], "looking at {looked_at}");
        }
    }
}
