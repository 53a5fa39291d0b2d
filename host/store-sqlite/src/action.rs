//! What operators do to deliveries.
//!
//! Everything an action touches is read, changed here in the order of the actions, and written back
//! in a few statements, however many actions there are.

use std::collections::BTreeMap;

use portway_model::{DeliveryState, Lane, Round, Timestamp};
use portway_store::{Action, ActionKind, ActionOutcome, StoreError};
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use crate::error::{damaged, failed};
use crate::number::{destination, lane, round, stored};
use crate::script::{IntArray, Script};

/// A delivery, as far as actions change it.
#[derive(Clone, Copy)]
struct Standing {
    lane: Lane,
    /// None: a state of a newer binary, which is left alone.
    state: Option<DeliveryState>,
    round: Round,
    /// Changed by an action, to this (null: not due at any time).
    changed: Option<Changed>,
}

#[derive(Clone, Copy)]
enum Changed {
    Resent { due_at: Option<Timestamp> },
    Dismissed,
}

/// What is stored of the messages that actions name.
struct Stored {
    /// Whether its body is there.
    messages: BTreeMap<i64, bool>,
    deliveries: BTreeMap<(i64, i64), Standing>,
}

/// Does actions inside the transaction that is open.
pub(crate) async fn act(
    connection: &mut SqliteConnection,
    actions: &[Action],
    now: Timestamp,
) -> Result<Vec<ActionOutcome>, StoreError> {
    let mut there = read(connection, actions).await?;
    let mut outcomes = Vec::with_capacity(actions.len());
    let mut recorded = Vec::new();
    for action in actions {
        let outcome = there.act(action, now)?;
        if matches!(&outcome, ActionOutcome::Done(changed) if !changed.is_empty()) {
            recorded.push(action);
        }
        outcomes.push(outcome);
    }
    if !recorded.is_empty() {
        let mut script = Script::default();
        there.write(&mut script, now);
        record(&mut script, &recorded, now);
        script.run(connection).await.map_err(|error| failed("store actions", error))?;
    }
    Ok(outcomes)
}

async fn read(connection: &mut SqliteConnection, actions: &[Action]) -> Result<Stored, StoreError> {
    let mut ids: Vec<i64> = actions.iter().map(|action| stored(action.message.0)).collect();
    ids.sort_unstable();
    ids.dedup();
    let ids = ids.into_iter().collect::<IntArray>().into_json();
    let error = |error| failed("read deliveries for an action", error);
    let messages = sqlx::query_as(
        "SELECT id, body_id IS NOT NULL OR EXISTS (SELECT 1 FROM bodies WHERE message_id = id)
        FROM messages WHERE id IN (SELECT value FROM json_each(?))",
    );
    let messages: Vec<(i64, bool)> = messages.bind(&ids).fetch_all(&mut *connection).await.map_err(error)?;
    let rows = sqlx::query(
        "SELECT message_id, destination_id, lane, state, round FROM deliveries
        WHERE message_id IN (SELECT value FROM json_each(?))",
    );
    let rows = rows.bind(&ids).fetch_all(connection).await.map_err(error)?;
    let mut deliveries = BTreeMap::new();
    for row in rows {
        let read = || -> Result<[i64; 5], sqlx::Error> {
            Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?])
        };
        let [message, to, in_lane, state, in_round] =
            read().map_err(|_| damaged("a delivery cannot be read"))?;
        let state = u8::try_from(state).ok().and_then(DeliveryState::from_number);
        let standing = Standing { lane: lane(in_lane)?, state, round: round(in_round)?, changed: None };
        deliveries.insert((message, to), standing);
    }
    Ok(Stored { messages: messages.into_iter().collect(), deliveries })
}

impl Stored {
    fn act(&mut self, action: &Action, now: Timestamp) -> Result<ActionOutcome, StoreError> {
        let message = stored(action.message.0);
        match (self.messages.get(&message), action.kind) {
            (None, _) => return Ok(ActionOutcome::NoMessage),
            (Some(false), ActionKind::Resend { .. }) => return Ok(ActionOutcome::NoBody),
            (Some(_), _) => {}
        }
        let mut changed = Vec::new();
        for ((_, to), standing) in self.deliveries.range_mut((message, 0)..=(message, i64::MAX)) {
            let to = destination(*to)?;
            let wanted = action.destination.is_none_or(|only| only == to);
            if wanted && standing.act(action.kind, now) {
                changed.push((to, standing.lane, standing.round));
            }
        }
        Ok(ActionOutcome::Done(changed))
    }

    fn write(&self, script: &mut Script, now: Timestamp) {
        let changed =
            self.deliveries.iter().filter_map(|(slot, standing)| Some((slot, standing, standing.changed?)));
        let mut rows = Vec::new();
        let mut messages = Vec::new();
        for ((message, to), standing, change) in changed {
            let (state, due_at, resent) = match change {
                Changed::Resent { due_at } => (DeliveryState::Pending, due_at.map(|at| stored(at.0)), true),
                Changed::Dismissed => (DeliveryState::Dismissed, None, false),
            };
            let lane = standing.lane.number();
            rows.push(serde_json::json!([
                message,
                to,
                lane,
                state.number(),
                standing.round.0,
                due_at,
                resent
            ]));
            messages.push(*message);
        }
        messages.dedup();
        // A dismissed delivery keeps its attempts and the reason it was there for.
        script
            .step(
                "UPDATE deliveries SET lane = j.value ->> 2, state = j.value ->> 3, round = j.value ->> 4,
                    due_at = j.value ->> 5, changed_at = ?,
                    attempts = CASE WHEN j.value ->> 6 THEN 0 ELSE attempts END,
                    reason = CASE WHEN j.value ->> 6 THEN NULL ELSE reason END
                FROM json_each(?) AS j
                WHERE message_id = j.value ->> 0 AND destination_id = j.value ->> 1",
            )
            .bind(stored(now.0))
            .bind(serde_json::Value::from(rows).to_string());
        script
            .step(
                "UPDATE messages SET status = CASE
                    WHEN EXISTS (SELECT 1 FROM deliveries WHERE message_id = messages.id AND state = 0) THEN 0
                    WHEN EXISTS (SELECT 1 FROM deliveries WHERE message_id = messages.id AND state = 3) THEN 2
                    ELSE 1 END
                WHERE id IN (SELECT value FROM json_each(?))",
            )
            .bind(messages.into_iter().collect::<IntArray>().into_json());
    }
}

impl Standing {
    /// Whether the action fits, and changed it.
    fn act(&mut self, kind: ActionKind, now: Timestamp) -> bool {
        match (kind, self.state) {
            (_, None) | (ActionKind::Resend { .. }, Some(DeliveryState::Pending)) => false,
            (ActionKind::Resend { keep_lane }, Some(state)) => {
                let stays = keep_lane && self.lane.is_ordered() && state == DeliveryState::Quarantined;
                if !stays {
                    self.lane = Lane::APART;
                }
                self.state = Some(DeliveryState::Pending);
                self.round = self.round.next();
                self.changed = Some(Changed::Resent { due_at: (!stays).then_some(now) });
                true
            }
            (ActionKind::Dismiss, Some(DeliveryState::Pending | DeliveryState::Quarantined)) => {
                self.state = Some(DeliveryState::Dismissed);
                self.changed = Some(Changed::Dismissed);
                true
            }
            (
                ActionKind::Dismiss,
                Some(DeliveryState::Sent | DeliveryState::Filtered | DeliveryState::Dismissed),
            ) => false,
        }
    }
}

/// As stored; numbers are never reused.
pub(crate) fn number(kind: ActionKind) -> u8 {
    match kind {
        ActionKind::Resend { .. } => 1,
        ActionKind::Dismiss => 2,
    }
}

/// From what is stored.
pub(crate) fn name(number: i64) -> &'static str {
    match number {
        1 => "resend",
        2 => "dismiss",
        _ => "unknown",
    }
}

fn record(script: &mut Script, actions: &[&Action], now: Timestamp) {
    let rows: Vec<serde_json::Value> = actions
        .iter()
        .map(|action| {
            let destination = action.destination.map(|destination| destination.0);
            let kind = number(action.kind);
            serde_json::json!([stored(action.message.0), destination, kind, action.author, action.reason])
        })
        .collect();
    script
        .step(
            "INSERT INTO message_actions (message_id, at, destination_id, action, author, reason)
            SELECT value ->> 0, ?, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?)",
        )
        .bind(stored(now.0))
        .bind(serde_json::Value::from(rows).to_string());
}
