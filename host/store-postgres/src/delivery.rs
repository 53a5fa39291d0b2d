//! Reading deliveries: what is pending where, page by page.
//!
//! The conditions are those of the indexes, word for word: PostgreSQL uses a partial index only if it finds
//! them. Every reader of a queue begins at its floor.

use portway_model::{DestinationId, Lane, MessageId, Timestamp};
use portway_store::{LaneHead, Pending, QueueView, StoreError};
use sqlx::postgres::PgRow;

use crate::error::Failed;
use crate::number::{self, small, stored, stored_lane};
use crate::query::{Session, value};

/// Looks at each destination's indexes once, however much waits there.
const WITH_WORK: &str = "SELECT w.id FROM destinations w CROSS JOIN LATERAL (
        (SELECT 1 FROM deliveries WHERE state = 0 AND (lane < 1024 OR due_at IS NULL)
            AND destination_id = w.id AND message_id >= coalesce(
                (SELECT f.message_id FROM queue_floors f WHERE f.destination_id = w.id), 0) LIMIT 1)
        UNION ALL
        (SELECT 1 FROM deliveries WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL
            AND destination_id = w.id LIMIT 1)
        LIMIT 1) AS found
    ORDER BY w.id";

pub(crate) async fn destinations_with_work(session: &mut Session) -> Result<Vec<DestinationId>, Failed> {
    let what = "find destinations with work";
    session.read(what, sqlx::query(WITH_WORK), |row| number::destination(value(row, 0)?)).await
}

const COUNT: &str = "SELECT count(*)::int8 FROM (
    SELECT 1 FROM unnest($1::int4[]) AS w (id) CROSS JOIN LATERAL (
        (SELECT 1 FROM deliveries WHERE state = 0 AND (lane < 1024 OR due_at IS NULL)
            AND destination_id = w.id AND message_id >= coalesce(
                (SELECT f.message_id FROM queue_floors f WHERE f.destination_id = w.id), 0) LIMIT $2)
        UNION ALL
        (SELECT 1 FROM deliveries WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL
            AND destination_id = w.id LIMIT $2)
        LIMIT $2) AS found
    LIMIT $2) AS counted";

/// Looks at no more than `limit` deliveries of each destination.
pub(crate) async fn count_pending(
    session: &mut Session,
    destinations: &[DestinationId],
    limit: u32,
) -> Result<u32, Failed> {
    let destinations: Vec<i32> = destinations.iter().map(|destination| small(destination.0)).collect();
    let statement = sqlx::query(COUNT).bind(destinations).bind(i64::from(limit));
    let count = session.read_one("count what is pending", statement, |row| value::<i64>(row, 0)).await?;
    Ok(u32::try_from(count.unwrap_or(0)).unwrap_or(limit))
}

/// Deliveries that are looked at together for the heads of their lanes.
const WINDOW: i64 = 1_024;
/// Where a lane has more on average, going to the next one by the index costs less than passing them by.
const PASSED_MAX: i64 = 32;

/// How the heads of lanes are found.
struct Heads {
    /// Those among the next deliveries after a lane, and how many each lane has of these.
    window: &'static str,
    /// From one lane to the next, however much is in each.
    steps: &'static str,
}

const LANE_HEADS: Heads = Heads {
    window: "SELECT lane, min(message_id), count(*) FROM (
            SELECT lane, message_id FROM deliveries WHERE state = 0 AND (lane < 1024 OR due_at IS NULL)
                AND destination_id = $1 AND lane > $2 AND lane < 1024 AND message_id >= coalesce(
                    (SELECT f.message_id FROM queue_floors f WHERE f.destination_id = $1), 0)
            ORDER BY lane, message_id LIMIT $3) AS next
        GROUP BY lane ORDER BY lane",
    steps: "WITH RECURSIVE heads (lane, message_id) AS (
            (SELECT lane, message_id FROM deliveries WHERE state = 0 AND (lane < 1024 OR due_at IS NULL)
                AND destination_id = $1 AND lane > $2 AND lane < 1024 AND message_id >= coalesce(
                    (SELECT f.message_id FROM queue_floors f WHERE f.destination_id = $1), 0)
                ORDER BY lane, message_id LIMIT 1)
            UNION ALL
            SELECT next.lane, next.message_id FROM heads CROSS JOIN LATERAL (
                SELECT d.lane, d.message_id FROM deliveries d
                WHERE d.state = 0 AND (d.lane < 1024 OR d.due_at IS NULL)
                    AND d.destination_id = $1 AND d.lane > heads.lane AND d.lane < 1024
                    AND d.message_id >= coalesce(
                        (SELECT f.message_id FROM queue_floors f WHERE f.destination_id = $1), 0)
                ORDER BY d.lane, d.message_id LIMIT 1) AS next)
        SELECT lane, message_id FROM heads",
};
const HELD_HEADS: Heads = Heads {
    window: "SELECT lane, min(message_id), count(*) FROM (
            SELECT lane, message_id FROM deliveries WHERE state = 3
                AND destination_id = $1 AND lane > $2 AND lane < 1024
            ORDER BY lane, message_id LIMIT $3) AS held
        GROUP BY lane ORDER BY lane",
    steps: "WITH RECURSIVE held (lane, message_id) AS (
            (SELECT lane, message_id FROM deliveries WHERE state = 3
                AND destination_id = $1 AND lane > $2 AND lane < 1024
                ORDER BY lane, message_id LIMIT 1)
            UNION ALL
            SELECT next.lane, next.message_id FROM held CROSS JOIN LATERAL (
                SELECT d.lane, d.message_id FROM deliveries d
                WHERE d.state = 3 AND d.destination_id = $1 AND d.lane > held.lane AND d.lane < 1024
                ORDER BY d.lane, d.message_id LIMIT 1) AS next)
        SELECT lane, message_id FROM held",
};

pub(crate) async fn lane_heads(
    session: &mut Session,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, Failed> {
    LANE_HEADS.find(session, destination, WINDOW).await
}

pub(crate) async fn held_heads(
    session: &mut Session,
    destination: DestinationId,
) -> Result<Vec<LaneHead>, Failed> {
    HELD_HEADS.find(session, destination, WINDOW).await
}

impl Heads {
    async fn find(
        &self,
        session: &mut Session,
        destination: DestinationId,
        window: i64,
    ) -> Result<Vec<LaneHead>, Failed> {
        let what = "find the heads of lanes";
        let mut heads: Vec<LaneHead> = Vec::new();
        loop {
            let last = heads.last().map_or(-1, |head| stored_lane(head.lane));
            let next = sqlx::query(self.window).bind(small(destination.0)).bind(last).bind(window);
            let next = session.read(what, next, |row| Ok((head(row)?, value::<i64>(row, 2)?))).await?;
            let (lanes, seen) = (next.len() as i64, next.iter().map(|(_, count)| count).sum::<i64>());
            heads.extend(next.into_iter().map(|(head, _)| head));
            if seen < window {
                return Ok(heads);
            }
            if seen / lanes.max(1) > PASSED_MAX {
                break;
            }
        }
        let last = heads.last().map_or(-1, |head| stored_lane(head.lane));
        let rest = sqlx::query(self.steps).bind(small(destination.0)).bind(last);
        heads.extend(session.read(what, rest, head).await?);
        Ok(heads)
    }
}

fn head(row: &PgRow) -> Result<LaneHead, StoreError> {
    Ok(LaneHead { lane: number::lane(value(row, 0)?)?, message: number::message(value(row, 1)?)? })
}

/// The lowest number in the queue of a destination, over all its lanes.
pub(crate) async fn first_queued(
    session: &mut Session,
    destination: DestinationId,
) -> Result<Option<i64>, Failed> {
    let ordered = lane_heads(session, destination).await?;
    let apart = read_lane(session, destination, Lane::APART, MessageId::ZERO, 1).await?;
    let first = ordered.iter().map(|head| head.message).chain(apart.iter().map(|pending| pending.message));
    Ok(first.min().map(|id| stored(id.0)))
}

const READ_LANE: &str = "SELECT message_id, lane, round, attempts, due_at, body_bytes FROM deliveries
    WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) AND destination_id = $1 AND lane = $2
        AND message_id > $3 AND message_id >= coalesce(
            (SELECT f.message_id FROM queue_floors f WHERE f.destination_id = $1), 0)
    ORDER BY message_id LIMIT $4";

pub(crate) async fn read_lane(
    session: &mut Session,
    destination: DestinationId,
    lane: Lane,
    after: MessageId,
    limit: u32,
) -> Result<Vec<Pending>, Failed> {
    let statement = sqlx::query(READ_LANE)
        .bind(small(destination.0))
        .bind(stored_lane(lane))
        .bind(stored(after.0))
        .bind(i64::from(limit));
    session.read("read a lane", statement, pending).await
}

const READ_DUE: &str = "SELECT message_id, lane, round, attempts, due_at, body_bytes FROM deliveries
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = $1 AND due_at <= $2
    ORDER BY due_at, message_id LIMIT $3";

pub(crate) async fn read_due(
    session: &mut Session,
    destination: DestinationId,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<Pending>, Failed> {
    let statement =
        sqlx::query(READ_DUE).bind(small(destination.0)).bind(stored(until.0)).bind(i64::from(limit));
    session.read("read what is due", statement, pending).await
}

fn pending(row: &PgRow) -> Result<Pending, StoreError> {
    Ok(Pending {
        message: number::message(value(row, 0)?)?,
        lane: number::lane(value(row, 1)?)?,
        round: number::round(value(row, 2)?)?,
        attempts: number::attempts(value(row, 3)?)?,
        due_at: value::<Option<i64>>(row, 4)?.map(number::time).transpose()?,
        body_bytes: number::read(value(row, 5)?)?,
    })
}

const NEXT_DUE: &str = "SELECT due_at FROM deliveries
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL AND destination_id = $1 AND due_at > $2
    ORDER BY due_at LIMIT 1";

pub(crate) async fn next_due(
    session: &mut Session,
    destination: DestinationId,
    after: Timestamp,
) -> Result<Option<Timestamp>, Failed> {
    let statement = sqlx::query(NEXT_DUE).bind(small(destination.0)).bind(stored(after.0));
    session.read_one("find what is due next", statement, |row| number::time(value(row, 0)?)).await
}

/// Reads the whole of the small indexes; for people.
const QUEUES: &str = "SELECT destination_id, waiting, quarantined,
        (SELECT stored_at FROM messages WHERE id = oldest LIMIT 1)
    FROM (SELECT destination_id, sum(waiting)::int8 AS waiting, sum(quarantined)::int8 AS quarantined,
        min(oldest) AS oldest
    FROM (
        SELECT destination_id, count(*) AS waiting, 0 AS quarantined, min(message_id) AS oldest
            FROM deliveries WHERE state = 0 AND (lane < 1024 OR due_at IS NULL) GROUP BY destination_id
        UNION ALL
        SELECT destination_id, count(*), 0, min(message_id) FROM deliveries
            WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL GROUP BY destination_id
        UNION ALL
        SELECT destination_id, 0, count(*), NULL FROM deliveries
            WHERE state = 3 GROUP BY destination_id) AS each
    GROUP BY destination_id) AS sums ORDER BY destination_id";

pub(crate) async fn list_queues(session: &mut Session) -> Result<Vec<QueueView>, Failed> {
    let queues = session.read("list what waits", sqlx::query(QUEUES), |row| {
        Ok(QueueView {
            destination: number::destination(value(row, 0)?)?,
            waiting: number::read(value(row, 1)?)?,
            quarantined: number::read(value(row, 2)?)?,
            oldest: value::<Option<i64>>(row, 3)?.map(number::time).transpose()?,
        })
    });
    queues.await
}
