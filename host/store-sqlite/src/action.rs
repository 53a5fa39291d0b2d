//! What operators do to deliveries.

use portway_model::{DeliveryState, DestinationId, Lane, Round, Timestamp};
use portway_store::{Action, ActionKind, ActionOutcome, StoreError};
use rusqlite::{Connection, params};

use crate::error::failed;
use crate::number::{destination, lane, round, stored};
use crate::query::{int, maybe_int, row, rows};
use crate::suspect;

/// A delivery, as far as actions change it.
struct Standing {
    destination: DestinationId,
    lane: Lane,
    /// None: a state of a newer binary, which is left alone.
    state: Option<DeliveryState>,
    round: Round,
    /// It is not due before a time.
    waits: bool,
}

/// What an action makes of a delivery.
enum Change {
    Resend { lane: Lane, round: Round, due_at: Option<Timestamp> },
    Dismiss,
    Retry { due_at: Option<Timestamp> },
}

/// Does actions inside the transaction that is open, in order.
pub(crate) fn act(
    connection: &Connection,
    actions: &[Action],
    now: Timestamp,
) -> Result<Vec<ActionOutcome>, StoreError> {
    actions.iter().map(|action| act_once(connection, action, now)).collect()
}

const HAS_BODY: &str = "SELECT body_id IS NOT NULL OR EXISTS (SELECT 1 FROM bodies WHERE message_id = id)
    FROM messages WHERE id = ?";

fn act_once(connection: &Connection, action: &Action, now: Timestamp) -> Result<ActionOutcome, StoreError> {
    let message = stored(action.message.0);
    let has_body = row(connection, "read a message for an action", HAS_BODY, [message], |row| int(row, 0))?;
    match (has_body, action.kind) {
        (None, _) => return Ok(ActionOutcome::NoMessage),
        (Some(0), ActionKind::Resend { .. }) => return Ok(ActionOutcome::NoBody),
        (Some(_), _) => {}
    }
    if was_done(connection, message, action)? {
        return Ok(ActionOutcome::Repeated);
    }
    let mut changed = Vec::new();
    for standing in deliveries(connection, message)? {
        let is_wanted = action.destination.is_none_or(|only| only == standing.destination);
        let Some(change) = standing.change(action.kind, now).filter(|_| is_wanted) else { continue };
        change
            .write(connection, message, &standing, now)
            .map_err(|error| failed("store an action", error))?;
        changed.push(match change {
            Change::Resend { lane, round, .. } => (standing.destination, lane, round),
            Change::Dismiss | Change::Retry { .. } => (standing.destination, standing.lane, standing.round),
        });
    }
    if !changed.is_empty() {
        record(connection, message, action, now).map_err(|error| failed("store an action", error))?;
    }
    Ok(ActionOutcome::Done(changed))
}

const WAS_DONE: &str =
    "SELECT 1 FROM action_requests WHERE message_id = ? AND request = ? AND destination_id = ?";

/// Whether the same request did it before.
fn was_done(connection: &Connection, message: i64, action: &Action) -> Result<bool, StoreError> {
    let Some(request) = &action.request else { return Ok(false) };
    let slot = params![message, request, action.destination.map_or(0, |destination| destination.0)];
    Ok(row(connection, "look for an earlier request", WAS_DONE, slot, |_| Ok(()))?.is_some())
}

const DELIVERIES: &str = "SELECT destination_id, lane, state, round, due_at FROM deliveries
    WHERE message_id = ? ORDER BY destination_id";

fn deliveries(connection: &Connection, message: i64) -> Result<Vec<Standing>, StoreError> {
    rows(connection, "read deliveries for an action", DELIVERIES, [message], |row| {
        Ok(Standing {
            destination: destination(int(row, 0)?)?,
            lane: lane(int(row, 1)?)?,
            state: u8::try_from(int(row, 2)?).ok().and_then(DeliveryState::from_number),
            round: round(int(row, 3)?)?,
            waits: maybe_int(row, 4)?.is_some(),
        })
    })
}

impl Standing {
    /// What the action makes of it; none: it does not fit.
    fn change(&self, kind: ActionKind, now: Timestamp) -> Option<Change> {
        match (kind, self.state?) {
            (ActionKind::Resend { .. }, DeliveryState::Pending) => None,
            (ActionKind::Resend { keep_lane }, state) => {
                let stays = keep_lane && self.lane.is_ordered() && state == DeliveryState::Quarantined;
                Some(Change::Resend {
                    lane: if stays { self.lane } else { Lane::APART },
                    round: self.round.next(),
                    due_at: (!stays).then_some(now),
                })
            }
            (ActionKind::Retry, DeliveryState::Pending) => {
                let due_at = (!self.lane.is_ordered()).then_some(now);
                self.waits.then_some(Change::Retry { due_at })
            }
            (ActionKind::Dismiss, DeliveryState::Pending | DeliveryState::Quarantined) => {
                Some(Change::Dismiss)
            }
            (ActionKind::Retry, DeliveryState::Quarantined) => None,
            (
                ActionKind::Dismiss | ActionKind::Retry,
                DeliveryState::Sent | DeliveryState::Filtered | DeliveryState::Dismissed,
            ) => None,
        }
    }
}

const RESEND: &str = "UPDATE deliveries SET lane = ?4, state = 0, round = ?5, attempts = 0, due_at = ?6,
    changed_at = ?3, reason = NULL WHERE message_id = ?1 AND destination_id = ?2";
// It keeps its attempts and the reason it was there for.
const DISMISS: &str = "UPDATE deliveries SET state = 4, due_at = NULL, changed_at = ?3
    WHERE message_id = ?1 AND destination_id = ?2";

// It keeps its attempts and why it waited.
const RETRY: &str = "UPDATE deliveries SET due_at = ?4, changed_at = ?3
    WHERE message_id = ?1 AND destination_id = ?2";

impl Change {
    fn write(
        &self,
        connection: &Connection,
        message: i64,
        standing: &Standing,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        let (destination, now) = (standing.destination.0, stored(now.0));
        match self {
            Change::Resend { lane, round, due_at } => {
                let due_at = due_at.map(|due_at| stored(due_at.0));
                let mut resend = connection.prepare_cached(RESEND)?;
                resend.execute(params![message, destination, now, lane.number(), round.0, due_at])?;
                connection.prepare_cached(suspect::FORGET)?.execute(params![message, destination])?;
            }
            Change::Dismiss => {
                connection.prepare_cached(DISMISS)?.execute(params![message, destination, now])?;
            }
            Change::Retry { due_at } => {
                let due_at = due_at.map(|due_at| stored(due_at.0));
                connection.prepare_cached(RETRY)?.execute(params![message, destination, now, due_at])?;
            }
        }
        Ok(())
    }
}

const FOLLOW: &str = "UPDATE messages SET status = CASE
        WHEN EXISTS (SELECT 1 FROM deliveries WHERE message_id = ?1 AND state = 0) THEN 0
        WHEN EXISTS (SELECT 1 FROM deliveries WHERE message_id = ?1 AND state = 3) THEN 2
        ELSE 1 END
    WHERE id = ?1";
const RECORD: &str = "INSERT INTO message_actions (message_id, at, destination_id, action, author, reason)
    VALUES (?, ?, ?, ?, ?, ?)";

const REMEMBER: &str = "INSERT INTO action_requests (message_id, request, destination_id) VALUES (?, ?, ?)";

/// The message's new status, and who did it.
fn record(connection: &Connection, message: i64, action: &Action, now: Timestamp) -> rusqlite::Result<()> {
    connection.prepare_cached(FOLLOW)?.execute([message])?;
    let destination = action.destination.map(|destination| destination.0);
    if let Some(request) = &action.request {
        let slot = params![message, request, destination.unwrap_or_default()];
        connection.prepare_cached(REMEMBER)?.execute(slot)?;
    }
    let mut record = connection.prepare_cached(RECORD)?;
    record.execute(params![
        message,
        stored(now.0),
        destination,
        action.kind.number(),
        action.author,
        action.reason
    ])?;
    Ok(())
}
