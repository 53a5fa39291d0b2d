//! Removing old messages, a few at a time, so that the writer is free in between.
//!
//! How long an interface keeps its messages is in `retention`.

use std::collections::HashMap;

use portway_model::{InterfaceId, MessageStatus, Quarantined, Retention, Timestamp};
use portway_store::{Expired, Expiry, KeptBeyond};
use rusqlite::{Connection, params};

use crate::number::stored;
use crate::retention;
use crate::term;

/// Messages removed in one transaction.
pub(crate) const REMOVED_MAX: u32 = 256;
/// Messages looked at in one transaction.
pub(crate) const LOOKED_AT_MAX: u32 = 4_096;
/// What an interface counts for among them, however few messages it has.
const INTERFACE_ROWS: u32 = 16;

/// How far the pass over all interfaces has come. What is old and stays is looked at once a pass.
#[derive(Clone, Default)]
pub(crate) struct Passes {
    /// Interfaces that are still to be looked through, the next one last.
    left: Vec<(InterfaceId, Retention)>,
    /// How far the next one was looked through.
    after: i64,
    /// What stays of it.
    counting: KeptBeyond,
    /// What stayed of each when it was looked through the last time.
    pub(crate) kept: HashMap<InterfaceId, KeptBeyond>,
}

/// What one transaction may do.
struct Room {
    rows: u32,
    messages: u32,
}

/// Which messages of an interface are old, and what becomes of them.
#[derive(Clone, Copy)]
pub(crate) struct Old {
    pub(crate) interface: InterfaceId,
    pub(crate) retention: Retention,
    pub(crate) now: Timestamp,
}

/// Old messages of an interface, in their order.
pub(crate) struct Looked {
    /// They go.
    pub(crate) gone: Vec<i64>,
    /// The last one that was looked at.
    pub(crate) seen_to: i64,
    /// There is no other old one behind it.
    pub(crate) is_end: bool,
    pub(crate) pending: u64,
    pub(crate) quarantined: u64,
    rows: u32,
}

const LOOK: &str = "SELECT id, status, stored_at FROM messages INDEXED BY messages_by_interface
    WHERE interface_id = ? AND id > ? ORDER BY id LIMIT ?";

impl Looked {
    /// How many were looked at.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }
}

impl Old {
    /// Looks at no more than `rows`, until `gone_max` were found that go.
    pub(crate) fn look(
        &self,
        connection: &Connection,
        after: i64,
        (rows_max, gone_max): (u32, u32),
    ) -> rusqlite::Result<Looked> {
        let before = stored((self.now - self.retention.tier.window()).0);
        let mut looked =
            Looked { gone: Vec::new(), seen_to: after, is_end: false, pending: 0, quarantined: 0, rows: 0 };
        let mut look = connection.prepare_cached(LOOK)?;
        let mut rows = look.query(params![self.interface.0, after, rows_max])?;
        while let Some(row) = rows.next()? {
            let (id, status, stored_at): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            // Numbers rise with time, but for a clock that was set back: the first that is too new is
            // the end.
            if stored_at >= before {
                looked.is_end = true;
                return Ok(looked);
            }
            if looked.gone.len() >= gone_max as usize {
                return Ok(looked);
            }
            looked.seen_to = id;
            looked.rows += 1;
            match u8::try_from(status).ok().and_then(MessageStatus::from_number) {
                Some(MessageStatus::Finished | MessageStatus::Duplicate) => looked.gone.push(id),
                Some(MessageStatus::Quarantined) if self.retention.quarantined == Quarantined::Purge => {
                    looked.gone.push(id);
                }
                Some(MessageStatus::Quarantined) => looked.quarantined += 1,
                // A status of a newer binary is left alone.
                Some(MessageStatus::Pending) | None => looked.pending += 1,
            }
        }
        looked.is_end = looked.rows < rows_max;
        Ok(looked)
    }
}

impl Passes {
    /// One step, inside the transaction that is open; what is known after it, once it is committed.
    pub(crate) fn step(
        &self,
        connection: &Connection,
        expiry: &Expiry,
    ) -> rusqlite::Result<(Expired, Passes)> {
        let mut passes = self.clone();
        if passes.left.is_empty() {
            passes.left = retention::in_force(connection)?;
            passes.left.reverse();
        }
        let mut room = Room { rows: LOOKED_AT_MAX, messages: expiry.limit.min(REMOVED_MAX) };
        let mut messages = 0;
        while room.rows > 0
            && room.messages > 0
            && let Some((interface, retention)) = passes.left.last().copied()
        {
            let old = Old { interface, retention, now: expiry.now };
            let looked = old.look(connection, passes.after, (room.rows, room.messages))?;
            remove(connection, &looked.gone)?;
            let gone = u32::try_from(looked.gone.len()).unwrap_or(u32::MAX);
            messages += u64::from(gone);
            room.messages = room.messages.saturating_sub(gone);
            room.rows = room.rows.saturating_sub(looked.rows.max(INTERFACE_ROWS));
            passes.seen(interface, &looked, expiry.now);
        }
        Ok((Expired { messages, goes_on: !passes.left.is_empty() }, passes))
    }

    fn seen(&mut self, interface: InterfaceId, looked: &Looked, now: Timestamp) {
        self.after = looked.seen_to;
        self.counting.pending += looked.pending;
        self.counting.quarantined += looked.quarantined;
        if looked.is_end {
            let counted = KeptBeyond { at: now, ..self.counting };
            self.kept.insert(interface, counted);
            self.left.pop();
            (self.after, self.counting) = (0, KeptBeyond::default());
        }
    }
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

/// Removes messages with all that belongs to them, inside the transaction that is open.
pub(crate) fn remove(connection: &Connection, ids: &[i64]) -> rusqlite::Result<()> {
    ids.iter().try_for_each(|id| term::remove(connection, *id))?;
    for sql in REMOVE {
        let mut remove = connection.prepare_cached(sql)?;
        ids.iter().try_for_each(|id| remove.execute([id]).map(drop))?;
    }
    Ok(())
}

const FORGET_KEYS: &str =
    "DELETE FROM dedupe WHERE (interface_id, key) IN (SELECT interface_id, key FROM dedupe
    INDEXED BY dedupe_expiry WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)";

/// Removes expired dedupe keys, at most `limit`.
pub(crate) fn forget_keys(connection: &Connection, now: Timestamp, limit: u32) -> rusqlite::Result<()> {
    connection.prepare_cached(FORGET_KEYS)?.execute(params![stored(now.0), limit]).map(drop)
}
