//! Results of deliveries: which count, and what they change.
//!
//! The engine is nearly always right about what is pending, so a batch is first written as if every
//! result counted, and the number of changed rows tells whether they did. If not, the transaction is
//! made again with what is stored read before ([`judge`]).

use std::collections::{HashMap, HashSet};

use portway_model::{DeliveryState, Timestamp};
use portway_store::{DeliveryResult, Settled, StoreError};
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use crate::error::{damaged, failed};
use crate::number::{read_u32, stored};
use crate::pair::Pairs;
use crate::script::{IntArray, Script};

/// Groups of equal results that get a statement of their own.
const GROUPS_MAX: usize = 4;
/// Smaller groups go with the mixed ones.
const GROUP_MIN: usize = 4;

/// Results that change their deliveries in the same way.
pub(crate) struct Group<'a> {
    like: &'a DeliveryResult,
    reason: Option<String>,
    results: Vec<&'a DeliveryResult>,
}

/// Which results count, by reading what is stored. In order: an earlier result of the batch decides
/// about a later one of the same delivery.
pub(crate) async fn judge(
    connection: &mut SqliteConnection,
    results: &[DeliveryResult],
) -> Result<Vec<bool>, StoreError> {
    let mut standing = HashMap::new();
    for pairs in Pairs::of(results.iter().map(|result| (result.message, result.destination))) {
        let query = sqlx::query(
            "SELECT message_id, destination_id, round FROM deliveries
            WHERE (message_id, destination_id) IN
                (SELECT ? + (value >> 32), value & 4294967295 FROM json_each(?)) AND state = 0",
        );
        let rows = query.bind(pairs.first).bind(pairs.json.as_str()).fetch_all(&mut *connection).await;
        for row in rows.map_err(|error| failed("read deliveries", error))? {
            let read = || -> Result<(i64, i64, i64), sqlx::Error> {
                Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
            };
            let (message, destination, round) = read().map_err(|_| damaged("a delivery cannot be read"))?;
            standing.insert((message, destination), read_u32(round)?);
        }
    }
    Ok(results
        .iter()
        .map(|result| {
            let slot = (stored(result.message.0), i64::from(result.destination.0));
            let counts = standing.get(&slot) == Some(&result.round.0);
            if counts && result.settled.state() != DeliveryState::Pending {
                standing.remove(&slot);
            }
            counts
        })
        .collect())
}

/// Of results that count, the last of each delivery: what is left when all were applied in order.
pub(crate) fn last_of_each<'a>(results: &[&'a DeliveryResult]) -> Vec<&'a DeliveryResult> {
    let mut seen = HashSet::new();
    let mut last: Vec<_> = results
        .iter()
        .rev()
        .filter(|result| seen.insert((result.message, result.destination)))
        .copied()
        .collect();
    last.reverse();
    last
}

/// Adds the statement for results that are like each other; counts the rows it changes.
pub(crate) fn apply_group(script: &mut Script, group: &Group<'_>, now: Timestamp) {
    for pairs in Pairs::of(group.results.iter().map(|result| (result.message, result.destination))) {
        script
            .step(
                "UPDATE deliveries SET state = ?, attempts = ?, due_at = NULL, changed_at = ?, reason = ?
                WHERE (message_id, destination_id) IN
                    (SELECT ? + (value >> 32), value & 4294967295 FROM json_each(?))
                AND state = 0 AND round = ?",
            )
            .bind(i64::from(group.like.settled.state().number()))
            .bind(i64::from(group.like.attempts.0))
            .bind(stored(now.0))
            .bind(group.reason.as_deref())
            .bind(pairs.first)
            .bind(pairs.json.as_str())
            .bind(i64::from(group.like.round.0))
            .count_changed();
    }
}

/// Results that are like many others, and the rest.
pub(crate) fn sort<'a>(results: &[&'a DeliveryResult]) -> (Vec<Group<'a>>, Vec<&'a DeliveryResult>) {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut mixed = Vec::new();
    for &result in results {
        if result.settled.due_at().is_some() {
            mixed.push(result);
            continue;
        }
        let reason = result.settled.reason();
        // The newest group first: runs come one after another.
        let same = groups.iter().rposition(|group| {
            group.like.round == result.round
                && group.like.attempts == result.attempts
                && group.like.settled.state() == result.settled.state()
                && group.reason == reason
        });
        let is_room = groups.len() < GROUPS_MAX;
        match same.and_then(|index| groups.get_mut(index)) {
            Some(group) => group.results.push(result),
            None if is_room => groups.push(Group { like: result, reason, results: vec![result] }),
            None => mixed.push(result),
        }
    }
    let (groups, small): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| group.results.len() >= GROUP_MIN);
    mixed.extend(small.into_iter().flat_map(|group| group.results));
    (groups, mixed)
}

const MIXED_COLUMNS: usize = 7;

/// Adds a statement for at most `ROWS_MAX` results; counts the rows it changes.
pub(crate) fn apply_mixed(script: &mut Script, rows: &[&DeliveryResult], now: Timestamp) {
    let size = script.step_rows(
        "WITH settled (message, destination, in_round, state, attempts, due_at, reason) AS ",
        MIXED_COLUMNS,
        rows.len(),
        " UPDATE deliveries SET state = settled.state, attempts = settled.attempts, due_at = settled.due_at,
            changed_at = ?, reason = settled.reason FROM settled
        WHERE message_id = message AND destination_id = destination AND round = in_round AND deliveries.state = 0",
    );
    for result in rows {
        script
            .bind(stored(result.message.0))
            .bind(i64::from(result.destination.0))
            .bind(i64::from(result.round.0))
            .bind(i64::from(result.settled.state().number()))
            .bind(i64::from(result.attempts.0))
            .bind(result.settled.due_at().map(|due_at| stored(due_at.0)))
            .bind(result.settled.reason());
    }
    script.bind_empty((size - rows.len()) * MIXED_COLUMNS);
    script.bind(stored(now.0)).count_changed();
}

/// Adds the attempts to record, of results that count.
pub(crate) fn record_attempts(script: &mut Script, results: &[&DeliveryResult]) {
    let rows: Vec<serde_json::Value> = results
        .iter()
        .filter_map(|result| {
            let attempted = result.recorded()?;
            let took_ms = u64::try_from(attempted.took.as_millis()).unwrap_or(u64::MAX);
            Some(serde_json::json!([
                stored(result.message.0),
                result.destination.0,
                result.round.0,
                result.attempts.0,
                stored(attempted.started_at.0),
                stored(took_ms),
                result.settled.state().number(),
                result.settled.reason().unwrap_or_default(),
            ]))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    // A try that did not count has the number of the one before: the newer one stays.
    script
        .step(
            "INSERT OR REPLACE INTO attempts
                (message_id, destination_id, round, number, started_at, took_ms, outcome, text)
            SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7 FROM json_each(?)",
        )
        .bind(serde_json::Value::from(rows).to_string());
}

/// Adds the new status of messages that have finished deliveries.
pub(crate) fn follow_deliveries(script: &mut Script, results: &[&DeliveryResult]) {
    let finished = results.iter().filter(|result| result.settled.state().is_final());
    let mut ids: Vec<i64> = finished.map(|result| stored(result.message.0)).collect();
    ids.sort_unstable();
    ids.dedup();
    let ids: IntArray = ids.into_iter().collect();
    if ids.is_empty() {
        return;
    }
    script
        .step(
            "UPDATE messages SET status = CASE WHEN EXISTS
                (SELECT 1 FROM deliveries WHERE message_id = messages.id AND state = 3) THEN 2 ELSE 1 END
            WHERE id IN (SELECT value FROM json_each(?) WHERE NOT EXISTS
                (SELECT 1 FROM deliveries WHERE message_id = value AND state = 0))",
        )
        .bind(ids.into_json());
}

/// The messages of routes, for the results that count.
pub(crate) fn routes(result: &DeliveryResult) -> &[portway_store::NewMessage] {
    match &result.settled {
        Settled::Routed(messages) => messages,
        Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => &[],
    }
}
