//! Removing old messages, a few at a time.

use std::collections::HashMap;

use portway_model::{InterfaceId, MessageStatus, Timestamp};

use crate::error::Failed;
use crate::number::{small, stored};
use crate::query::{Session, value};
use crate::term::{self, FoundBy};

/// Messages removed in one transaction; the writer is free in between.
pub(crate) const REMOVED_MAX: u32 = 256;
/// Transactions one call makes at most.
pub(crate) const PASSES_MAX: usize = 64;
/// Messages looked at in one transaction.
const LOOKED_AT_MAX: i64 = 4096;

/// How far each interface was looked through, from its oldest message on. What is old and still
/// pending is not looked at again in every pass.
#[derive(Default)]
pub(crate) struct Passes {
    after: HashMap<InterfaceId, i64>,
}

impl Passes {
    pub(crate) fn after(&self, interface: InterfaceId) -> i64 {
        self.after.get(&interface).copied().unwrap_or(0)
    }

    /// Goes on after what was seen; at the end of a pass the next begins with the oldest again.
    pub(crate) fn set(&mut self, interface: InterfaceId, seen_to: Option<i64>) {
        match seen_to {
            Some(id) => self.after.insert(interface, id),
            None => self.after.remove(&interface),
        };
    }
}

/// What one transaction did.
pub(crate) struct Pruned {
    pub(crate) messages: u64,
    /// The last message that was looked at. None: there is nothing more to remove.
    pub(crate) seen_to: Option<i64>,
}

const LOOK: &str = "SELECT id, status, stored_at, day FROM messages
    WHERE interface_id = $1 AND id > $2 ORDER BY id LIMIT $3";

/// Removes at most `limit` messages of an interface that are done and older than `before`, inside the
/// transaction that is open.
pub(crate) async fn prune(
    session: &mut Session,
    interface: InterfaceId,
    after: i64,
    before: Timestamp,
    limit: u32,
) -> Result<Pruned, Failed> {
    let statement = sqlx::query(LOOK).bind(small(interface.0)).bind(after).bind(LOOKED_AT_MAX);
    let looked_at = session.read("look for old messages", statement, |row| {
        Ok((value::<i64>(row, 0)?, value::<i16>(row, 1)?, value::<i64>(row, 2)?, value::<i32>(row, 3)?))
    });
    let (mut done, mut days, mut seen_to) = (Vec::new(), (i32::MAX, i32::MIN), None);
    for (id, status, stored_at, day) in looked_at.await? {
        // Numbers rise with time, but for a clock that was set back: the first that is too new ends
        // a pass.
        if stored_at >= stored(before.0) || done.len() >= limit as usize {
            break;
        }
        seen_to = Some(id);
        let status = u8::try_from(status).ok().and_then(MessageStatus::from_number);
        if matches!(status, Some(MessageStatus::Finished | MessageStatus::Duplicate)) {
            done.push(id);
            days = (days.0.min(day), days.1.max(day));
        }
    }
    let messages = remove(session, done, days).await?;
    Ok(Pruned { messages, seen_to })
}

/// Deliveries before messages, as everybody locks them.
const HOLD: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries
    WHERE message_id = ANY ($1) AND day >= $2 AND day <= $3 ORDER BY message_id, destination_id FOR UPDATE) AS d";
/// What an operator sent again in the meantime stays.
const STILL_DONE: &str = "SELECT id, key, attributes FROM messages
    WHERE id = ANY ($1) AND day >= $2 AND day <= $3 AND status IN (1, 3) ORDER BY id FOR UPDATE";
/// The message last: the others are found by it.
const REMOVE: [&str; 5] = [
    "DELETE FROM bodies WHERE message_id = ANY ($1) AND day >= $2 AND day <= $3",
    "DELETE FROM deliveries WHERE message_id = ANY ($1) AND day >= $2 AND day <= $3",
    "DELETE FROM outputs WHERE message_id = ANY ($1) AND day >= $2 AND day <= $3",
    "DELETE FROM attempts WHERE message_id = ANY ($1) AND day >= $2 AND day <= $3",
    "DELETE FROM messages WHERE id = ANY ($1) AND day >= $2 AND day <= $3",
];
const REMOVE_BESIDE: [&str; 3] = [
    "DELETE FROM suspects WHERE message_id = ANY ($1)",
    "DELETE FROM message_actions WHERE message_id = ANY ($1)",
    "DELETE FROM action_requests WHERE message_id = ANY ($1)",
];

async fn remove(session: &mut Session, done: Vec<i64>, days: (i32, i32)) -> Result<u64, Failed> {
    let what = "remove old messages";
    if done.is_empty() {
        return Ok(0);
    }
    session.execute(what, sqlx::query(HOLD).bind(&done).bind(days.0).bind(days.1)).await?;
    let still = sqlx::query(STILL_DONE).bind(done).bind(days.0).bind(days.1);
    let still = session.read(what, still, |row| {
        Ok(FoundBy { id: value(row, 0)?, key: value(row, 1)?, attributes: value(row, 2)? })
    });
    let still = still.await?;
    term::remove(session, &still).await?;
    let ids: Vec<i64> = still.iter().map(|message| message.id).collect();
    for sql in REMOVE_BESIDE {
        session.execute(what, sqlx::query(sql).bind(&ids)).await?;
    }
    for sql in REMOVE {
        session.execute(what, sqlx::query(sql).bind(&ids).bind(days.0).bind(days.1)).await?;
    }
    Ok(ids.len() as u64)
}

const EXPIRE: &str = "DELETE FROM dedupe WHERE (interface_id, key_digest) IN
    (SELECT interface_id, key_digest FROM dedupe WHERE expires_at <= $1
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";

/// Removes expired dedupe keys, at most `limit`.
pub(crate) async fn expire(session: &mut Session, now: Timestamp, limit: u32) -> Result<(), Failed> {
    let statement = sqlx::query(EXPIRE).bind(stored(now.0)).bind(i64::from(limit));
    session.execute("forget expired dedupe keys", statement).await.map(drop)
}
