//! Results of deliveries: which count, and what they change.
//!
//! A result counts if it changes its delivery, which must be pending and in the same round; one of an
//! earlier owner only if it is sent. They are applied in order: an earlier result of the batch decides
//! about a later one of the same delivery.

use std::collections::BTreeSet;

use portway_model::{Epoch, Timestamp};
use portway_store::{DeliveryResult, NewMessage, Settled};
use rusqlite::{Connection, params};

use crate::number::stored;
use crate::output;

const SETTLE: &str =
    "UPDATE deliveries SET state = ?4, attempts = ?5, due_at = ?6, changed_at = ?7, reason = ?8
    WHERE message_id = ?1 AND destination_id = ?2 AND round = ?3 AND state = 0";

/// Changes the delivery of each result; tells which counted.
pub(crate) fn settle(
    connection: &Connection,
    results: &[DeliveryResult],
    epoch: Option<Epoch>,
    now: Timestamp,
) -> rusqlite::Result<Vec<bool>> {
    let mut settle = connection.prepare_cached(SETTLE)?;
    let mut counted = Vec::with_capacity(results.len());
    for result in results {
        if is_disowned(result, epoch) {
            counted.push(false);
            continue;
        }
        let reason = result.settled.reason();
        let changed = settle.execute(params![
            stored(result.message.0),
            result.destination.0,
            result.round.0,
            result.settled.state().number(),
            result.attempts.0,
            result.settled.due_at().map(|due_at| stored(due_at.0)),
            stored(now.0),
            reason,
        ])?;
        counted.push(changed == 1);
        if changed == 1 {
            record_attempt(connection, result, reason.as_deref())?;
            output::keep(connection, result, now)?;
        }
    }
    Ok(counted)
}

/// Whether it is of a tenure that is over, and does not count for that.
pub(crate) fn is_disowned(result: &DeliveryResult, epoch: Option<Epoch>) -> bool {
    epoch != Some(result.epoch) && !result.settled.outlives_owner()
}

// A try that did not count has the number of the one before: the newer one stays.
const RECORD: &str = "INSERT OR REPLACE INTO attempts
    (message_id, destination_id, round, number, started_at, took_ms, outcome, text)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

fn record_attempt(
    connection: &Connection,
    result: &DeliveryResult,
    reason: Option<&str>,
) -> rusqlite::Result<()> {
    let Some(attempted) = result.recorded() else { return Ok(()) };
    let took_ms = u64::try_from(attempted.took.as_millis()).unwrap_or(u64::MAX);
    let mut record = connection.prepare_cached(RECORD)?;
    record.execute(params![
        stored(result.message.0),
        result.destination.0,
        result.round.0,
        result.attempts.0,
        stored(attempted.started_at.0),
        stored(took_ms),
        result.settled.state().number(),
        reason.unwrap_or_default(),
    ])?;
    Ok(())
}

const FOLLOW: &str = "UPDATE messages SET status = CASE WHEN EXISTS
        (SELECT 1 FROM deliveries WHERE message_id = ?1 AND state = 3) THEN 2 ELSE 1 END
    WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message_id = ?1 AND state = 0)";

/// Sets the status of messages that have finished deliveries, each once.
pub(crate) fn follow_deliveries<'a>(
    connection: &Connection,
    counting: impl Iterator<Item = &'a DeliveryResult>,
) -> rusqlite::Result<()> {
    let finished = counting.filter(|result| result.settled.state().is_final());
    let ids: BTreeSet<i64> = finished.map(|result| stored(result.message.0)).collect();
    let mut follow = connection.prepare_cached(FOLLOW)?;
    ids.into_iter().try_for_each(|id| follow.execute([id]).map(drop))
}

/// The messages of a result's routes.
pub(crate) fn routes(result: &DeliveryResult) -> &[NewMessage] {
    match &result.settled {
        Settled::Routed(messages) => messages,
        Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => &[],
    }
}
