//! Removing old messages, a few at a time.

use std::collections::HashMap;

use portway_model::{InterfaceId, MessageStatus, Timestamp};
use rusqlite::{Connection, params};

use crate::number::stored;
use crate::term;

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

const LOOK: &str = "SELECT id, status, stored_at FROM messages INDEXED BY messages_by_interface
    WHERE interface_id = ? AND id > ? ORDER BY id LIMIT ?";

/// Removes at most `limit` messages of an interface that are done and older than `before`, inside the
/// transaction that is open.
pub(crate) fn prune(
    connection: &Connection,
    interface: InterfaceId,
    after: i64,
    before: Timestamp,
    limit: u32,
) -> rusqlite::Result<Pruned> {
    let mut done = Vec::new();
    let mut seen_to = None;
    let mut look = connection.prepare_cached(LOOK)?;
    let mut rows = look.query(params![interface.0, after, LOOKED_AT_MAX])?;
    while let Some(row) = rows.next()? {
        let (id, status, stored_at): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // Numbers rise with time, but for a clock that was set back: the first that is too new ends
        // a pass.
        if stored_at >= stored(before.0) || done.len() >= limit as usize {
            break;
        }
        seen_to = Some(id);
        let status = u8::try_from(status).ok().and_then(MessageStatus::from_number);
        if matches!(status, Some(MessageStatus::Finished | MessageStatus::Duplicate)) {
            done.push(id);
        }
    }
    remove(connection, &done)?;
    Ok(Pruned { messages: done.len() as u64, seen_to })
}

/// The message last: the others are found by it.
const REMOVE: [&str; 9] = [
    "DELETE FROM body_chunks WHERE body_id = (SELECT body_id FROM messages WHERE id = ?)",
    "DELETE FROM bodies WHERE message_id = ?",
    "DELETE FROM deliveries WHERE message_id = ?",
    "DELETE FROM attempts WHERE message_id = ?",
    "DELETE FROM outputs WHERE message_id = ?",
    "DELETE FROM suspects WHERE message_id = ?",
    "DELETE FROM message_actions WHERE message_id = ?",
    "DELETE FROM action_requests WHERE message_id = ?",
    "DELETE FROM messages WHERE id = ?",
];

fn remove(connection: &Connection, ids: &[i64]) -> rusqlite::Result<()> {
    ids.iter().try_for_each(|id| term::remove(connection, *id))?;
    for sql in REMOVE {
        let mut remove = connection.prepare_cached(sql)?;
        ids.iter().try_for_each(|id| remove.execute([id]).map(drop))?;
    }
    Ok(())
}

const EXPIRE: &str = "DELETE FROM dedupe WHERE (interface_id, key) IN (SELECT interface_id, key FROM dedupe
    INDEXED BY dedupe_expiry WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)";

/// Removes expired dedupe keys, at most `limit`.
pub(crate) fn expire(connection: &Connection, now: Timestamp, limit: u32) -> rusqlite::Result<()> {
    connection.prepare_cached(EXPIRE)?.execute(params![stored(now.0), limit]).map(drop)
}
