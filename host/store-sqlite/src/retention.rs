//! Removing old messages, a few at a time.

use std::collections::HashMap;

use portway_model::{InterfaceId, Timestamp};
use portway_store::StoreError;
use sqlx::sqlite::SqliteConnection;

use crate::error::{commit_failed, failed};
use crate::number::stored;
use crate::script::Script;

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

/// What one transaction did.
pub(crate) struct Pruned {
    pub(crate) messages: u64,
    /// There may be more to remove.
    pub(crate) more: bool,
}

type Look = (Option<i64>, i64, Option<i64>, String);

/// Removes at most `limit` messages of an interface that are done and older than `before`.
pub(crate) async fn prune(
    connection: &mut SqliteConnection,
    passes: &mut Passes,
    interface: InterfaceId,
    before: Timestamp,
    limit: u32,
) -> Result<Pruned, StoreError> {
    let after = passes.after.get(&interface).copied().unwrap_or(0);
    // Numbers rise with time, but for a clock that was set back: the first that is too new ends a pass.
    let look = sqlx::query_as(
        "WITH looked_at AS (SELECT id, status, stored_at FROM messages INDEXED BY messages_by_interface
                WHERE interface_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3),
            old AS (SELECT id, status FROM looked_at
                WHERE id < ifnull((SELECT min(id) FROM looked_at WHERE stored_at >= ?4), 9223372036854775807)),
            done AS (SELECT id FROM old WHERE status IN (1, 3) ORDER BY id LIMIT ?5)
        SELECT (SELECT max(id) FROM done), (SELECT count(*) FROM done), (SELECT max(id) FROM old),
            (SELECT json_group_array(id) FROM done)",
    );
    let looked: Result<Look, sqlx::Error> = look
        .bind(i64::from(interface.0))
        .bind(after)
        .bind(LOOKED_AT_MAX)
        .bind(stored(before.0))
        .bind(i64::from(limit))
        .fetch_one(&mut *connection)
        .await;
    let (last_done, count, last_old, ids) = looked.map_err(|error| failed("look for old messages", error))?;
    let stopped_by_limit = count == i64::from(limit);
    let seen_to = if stopped_by_limit { last_done } else { last_old };
    match seen_to {
        Some(id) => passes.after.insert(interface, id),
        // The end of a pass: the next begins with the oldest again.
        None => passes.after.remove(&interface),
    };
    if count > 0 {
        remove(connection, &ids).await?;
    }
    Ok(Pruned { messages: u64::try_from(count).unwrap_or(0), more: seen_to.is_some() })
}

async fn remove(connection: &mut SqliteConnection, ids: &str) -> Result<(), StoreError> {
    let mut script = Script::default();
    script.step("BEGIN IMMEDIATE");
    script
        .step(
            "DELETE FROM body_chunks WHERE body_id IN (SELECT body_id FROM messages
                WHERE id IN (SELECT value FROM json_each(?)) AND body_id IS NOT NULL)",
        )
        .bind(ids);
    for sql in [
        "DELETE FROM bodies WHERE message_id IN (SELECT value FROM json_each(?))",
        "DELETE FROM deliveries WHERE message_id IN (SELECT value FROM json_each(?))",
        "DELETE FROM attempts WHERE message_id IN (SELECT value FROM json_each(?))",
        "DELETE FROM suspects WHERE message_id IN (SELECT value FROM json_each(?))",
        "DELETE FROM message_actions WHERE message_id IN (SELECT value FROM json_each(?))",
        "DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))",
    ] {
        script.step(sql).bind(ids);
    }
    script.step("COMMIT");
    script.run(connection).await.map(drop).map_err(|error| commit_failed("remove old messages", error))
}

/// Removes expired dedupe keys, at most `limit`; answers how many.
pub(crate) async fn expire(
    connection: &mut SqliteConnection,
    now: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    let mut script = Script::default();
    script
        .step(
            "DELETE FROM dedupe WHERE (interface_id, key) IN (SELECT interface_id, key FROM dedupe
                INDEXED BY dedupe_expiry WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
        )
        .bind(stored(now.0))
        .bind(i64::from(limit))
        .count_changed();
    script.run(connection).await.map_err(|error| failed("remove expired keys", error))
}
