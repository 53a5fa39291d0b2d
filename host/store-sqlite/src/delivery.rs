//! Reading deliveries: what is pending where, page by page.
//!
//! Every query names its index, so that none is ever answered by reading the whole table. The
//! conditions are those of the indexes, word for word: SQLite uses a partial index only if it
//! finds them.

use portway_model::{DestinationId, Lane, MessageId, Timestamp};
use portway_store::{LaneHead, Pending, QueueView, StoreError};
use rusqlite::{Connection, Row, params};

use crate::error::failed;
use crate::number::{self, stored};
use crate::query::{int, maybe_int, row, rows};

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

pub(crate) fn destinations_with_work(connection: &Connection) -> Result<Vec<DestinationId>, StoreError> {
    rows(connection, "find destinations with work", WITH_WORK, [], |row| number::destination(int(row, 0)?))
}

const COUNT_QUEUED: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_queue
    WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) AND destination_id = ? LIMIT ?)";
const COUNT_DUE: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_due
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = ? LIMIT ?)";

/// Looks at no more than `limit` deliveries.
pub(crate) fn count_pending(
    connection: &Connection,
    destinations: &[DestinationId],
    limit: u32,
) -> Result<u32, StoreError> {
    let mut counted = 0;
    for destination in destinations {
        for sql in [COUNT_QUEUED, COUNT_DUE] {
            let slot = params![destination.0, limit.saturating_sub(counted)];
            let count =
                row(connection, "count what is pending", sql, slot, |row| number::read_u32(int(row, 0)?))?;
            counted += count.unwrap_or_default();
        }
    }
    Ok(counted)
}

/// Deliveries of one lane that are passed by before its rest is skipped: going to the next lane by
/// the index costs as much as looking at a few dozen.
const PASSED_MAX: usize = 32;

/// Without a limit: a reader that has seen enough of a lane asks again from the next one on.
const LANE_HEADS: &str = "SELECT lane, message_id FROM deliveries INDEXED BY deliveries_queue
    WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) AND destination_id = ? AND lane > ? AND lane < 1024
    ORDER BY lane, message_id";
const HELD_HEADS: &str = "SELECT lane, message_id FROM deliveries INDEXED BY deliveries_held
    WHERE state = 3 AND destination_id = ? AND lane > ? AND lane < 1024
    ORDER BY lane, message_id";

pub(crate) fn lane_heads(
    connection: &Connection,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    heads(connection, LANE_HEADS, destination, PASSED_MAX)
}

pub(crate) fn held_heads(
    connection: &Connection,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, StoreError> {
    heads(connection, HELD_HEADS, destination, PASSED_MAX)
}

fn heads(
    connection: &Connection,
    sql: &str,
    destination: DestinationId,
    passed_max: usize,
) -> Result<Vec<LaneHead>, StoreError> {
    let error = |error| failed("find the heads of lanes", error);
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let mut heads: Vec<LaneHead> = Vec::new();
    loop {
        let last = heads.last().map_or(-1, |head| i64::from(head.lane.number()));
        let mut rows = statement.query(params![destination.0, last]).map_err(error)?;
        let mut passed = 0;
        while let Some(row) = rows.next().map_err(error)?.filter(|_| passed < passed_max) {
            let lane = number::lane(int(row, 0)?)?;
            if heads.last().is_some_and(|head| head.lane == lane) {
                passed += 1;
            } else {
                passed = 0;
                heads.push(LaneHead { lane, message: number::message(int(row, 1)?)? });
            }
        }
        if passed < passed_max {
            return Ok(heads);
        }
    }
}

const READ_LANE: &str = "SELECT message_id, lane, round, attempts, due_at, body_bytes
    FROM deliveries INDEXED BY deliveries_queue CROSS JOIN messages ON messages.id = message_id
    WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) AND destination_id = ? AND lane = ? AND message_id > ?
    ORDER BY message_id LIMIT ?";

pub(crate) fn read_lane(
    connection: &Connection,
    destination: DestinationId,
    lane: Lane,
    after: MessageId,
    limit: u32,
) -> Result<Vec<Pending>, StoreError> {
    let wanted = params![destination.0, lane.number(), stored(after.0), limit];
    rows(connection, "read a lane", READ_LANE, wanted, pending)
}

const READ_DUE: &str = "SELECT message_id, lane, round, attempts, due_at, body_bytes
    FROM deliveries INDEXED BY deliveries_due CROSS JOIN messages ON messages.id = message_id
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = ? AND due_at <= ?
    ORDER BY due_at, message_id LIMIT ?";

pub(crate) fn read_due(
    connection: &Connection,
    destination: DestinationId,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<Pending>, StoreError> {
    let wanted = params![destination.0, stored(until.0), limit];
    rows(connection, "read what is due", READ_DUE, wanted, pending)
}

fn pending(row: &Row<'_>) -> Result<Pending, StoreError> {
    Ok(Pending {
        message: number::message(int(row, 0)?)?,
        lane: number::lane(int(row, 1)?)?,
        round: number::round(int(row, 2)?)?,
        attempts: number::attempts(int(row, 3)?)?,
        due_at: maybe_int(row, 4)?.map(number::time).transpose()?,
        body_bytes: number::read(int(row, 5)?)?,
    })
}

const NEXT_DUE: &str = "SELECT min(due_at) FROM deliveries INDEXED BY deliveries_due
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = ? AND due_at > ?";

pub(crate) fn next_due(
    connection: &Connection,
    destination: DestinationId,
    after: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let wanted = params![destination.0, stored(after.0)];
    let next = row(connection, "find what is due next", NEXT_DUE, wanted, |row| maybe_int(row, 0))?;
    next.flatten().map(number::time).transpose()
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

pub(crate) fn list_queues(connection: &Connection) -> Result<Vec<QueueView>, StoreError> {
    rows(connection, "list what waits", QUEUES, [], |row| {
        Ok(QueueView {
            destination: number::destination(int(row, 0)?)?,
            waiting: number::read(int(row, 1)?)?,
            quarantined: number::read(int(row, 2)?)?,
            oldest: maybe_int(row, 3)?.map(number::time).transpose()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{SqliteSettings, open};

    /// A store in which these (lane, message) wait for destination 1.
    fn with_queue(folder: &tempfile::TempDir, queue: &[(i64, i64)]) -> Connection {
        let path = folder.path().join("store.db");
        let Ok(opened) = open(&SqliteSettings::new(&path)) else { panic!("not opened") };
        for slot in queue {
            let insert = "INSERT INTO deliveries (lane, message_id, destination_id, state, round, attempts, changed_at)
                VALUES (?, ?, 1, 0, 0, 0, 0)";
            opened.writer.execute(insert, *slot).unwrap();
        }
        opened.writer
    }

    #[test]
    fn heads_are_the_same_however_many_are_passed_by() {
        let queue = [(0, 5), (0, 6), (0, 9), (3, 2), (3, 8), (7, 1), (1023, 4), (1023, 7), (1024, 3)];
        let folder = tempfile::tempdir().unwrap();
        let connection = with_queue(&folder, &queue);
        for passed_max in 1..10 {
            let heads = heads(&connection, LANE_HEADS, DestinationId(1), passed_max).unwrap();
            let heads: Vec<_> = heads.iter().map(|head| (head.lane.number(), head.message.0)).collect();
            assert_eq!(heads, [(0, 5), (3, 2), (7, 1), (1023, 4)], "passing by {passed_max}");
        }
    }
}
