//! A message with all that belongs to it: holding it, removing it, moving it to another tier.
//!
//! Everybody locks deliveries before messages, both in the order of their numbers. Whoever waits for a row
//! that is moved meanwhile is told so by the server and begins anew. So that two engines that move do not
//! do this to each other again and again, one does it at a time.

use sqlx::AssertSqlSafe;

use crate::error::Failed;
use crate::number;
use crate::partition::TABLES;
use crate::query::{Session, value};
use crate::term::{self, FoundBy};

/// A message that is locked.
pub(crate) struct Held {
    pub(crate) row: Row,
    found_by: FoundBy,
}

/// What decides what becomes of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) status: i16,
    pub(crate) stored_at: i64,
    pub(crate) body_bytes: i64,
    pub(crate) tier: i16,
    pub(crate) day: i32,
}

const TAKE_TURN: &str =
    "SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || ': old messages', 0))";

/// Whether no other engine removes or moves old messages now, nor will until the transaction ends. Nobody waits
/// for it: the other makes a step after the next, and whoever waited would wait for each of them.
pub(crate) async fn take_turn(session: &mut Session) -> Result<bool, Failed> {
    let what = "take the turn with old messages";
    let taken = session.read_one(what, sqlx::query(TAKE_TURN), |row| value::<bool>(row, 0)).await?;
    Ok(taken == Some(true))
}

const HOLD_DELIVERIES: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries
    WHERE message_id = ANY ($1) AND day >= $2 AND day <= $3 ORDER BY message_id, destination_id FOR UPDATE) AS d";
const HOLD_MESSAGES: &str = "SELECT id, status, stored_at, body_bytes, tier, day, key, attributes,
        interface_id FROM messages
    WHERE id = ANY ($1) AND day >= $2 AND day <= $3 ORDER BY id FOR UPDATE";

/// Locks messages and tells how they are now. Those that are gone are missing.
pub(crate) async fn hold(
    session: &mut Session,
    rows: impl IntoIterator<Item = (i64, i32)>,
) -> Result<Vec<(u32, Held)>, Failed> {
    let what = "hold old messages";
    let (ids, days): (Vec<i64>, Vec<i32>) = rows.into_iter().unzip();
    let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) else { return Ok(Vec::new()) };
    session.execute(what, sqlx::query(HOLD_DELIVERIES).bind(&ids).bind(first).bind(last)).await?;
    let held = sqlx::query(HOLD_MESSAGES).bind(&ids).bind(first).bind(last);
    session
        .read(what, held, |row| {
            let of = Row {
                id: value(row, 0)?,
                status: value(row, 1)?,
                stored_at: value(row, 2)?,
                body_bytes: value(row, 3)?,
                tier: value(row, 4)?,
                day: value(row, 5)?,
            };
            let found_by = FoundBy { id: of.id, key: value(row, 6)?, attributes: value(row, 7)? };
            Ok((number::read_u32(value(row, 8)?)?, Held { row: of, found_by }))
        })
        .await
}

const REMOVE_BESIDE: [&str; 3] = [
    "DELETE FROM suspects WHERE message_id = ANY ($1)",
    "DELETE FROM message_actions WHERE message_id = ANY ($1)",
    "DELETE FROM action_requests WHERE message_id = ANY ($1)",
];

/// Removes what belongs to messages and is not stored in their period.
pub(crate) async fn remove_beside(session: &mut Session, messages: &[FoundBy]) -> Result<(), Failed> {
    term::remove(session, messages).await?;
    let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
    for sql in REMOVE_BESIDE {
        session.execute("remove old messages", sqlx::query(sql).bind(&ids)).await?;
    }
    Ok(())
}

/// Removes messages that are held with all that belongs to them; how many.
pub(crate) async fn remove(session: &mut Session, messages: Vec<Held>) -> Result<u64, Failed> {
    let days: Vec<i32> = messages.iter().map(|held| held.row.day).collect();
    let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) else { return Ok(0) };
    let found_by: Vec<FoundBy> = messages.into_iter().map(|held| held.found_by).collect();
    remove_beside(session, &found_by).await?;
    let ids: Vec<i64> = found_by.iter().map(|message| message.id).collect();
    for table in TABLES {
        let sql =
            format!("DELETE FROM {table} WHERE {} = ANY ($1) AND day >= $2 AND day <= $3", id_of(table));
        let statement = sqlx::query(AssertSqlSafe(sql)).bind(&ids).bind(first).bind(last);
        session.execute("remove old messages", statement).await?;
    }
    Ok(ids.len() as u64)
}

/// Moves messages that are held, and all that belongs to them, into another tier.
pub(crate) async fn move_to(session: &mut Session, messages: &[Row], tier: i16) -> Result<(), Failed> {
    let days = messages.iter().map(|row| row.day);
    let (Some(first), Some(last)) = (days.clone().min(), days.max()) else { return Ok(()) };
    let ids: Vec<i64> = messages.iter().map(|row| row.id).collect();
    for table in TABLES {
        let sql = format!(
            "UPDATE {table} SET tier = $1 WHERE {} = ANY ($2) AND day >= $3 AND day <= $4 AND tier <> $1",
            id_of(table)
        );
        let statement = sqlx::query(AssertSqlSafe(sql)).bind(tier).bind(&ids).bind(first).bind(last);
        session.execute("move messages to another tier", statement).await?;
    }
    Ok(())
}

fn id_of(table: &str) -> &'static str {
    match table {
        "messages" => "id",
        _ => "message_id",
    }
}
