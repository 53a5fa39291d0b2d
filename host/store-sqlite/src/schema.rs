//! The tables, and how an older file gets them.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours, in SQLite's `application_id`: `PtWy`.
pub(crate) const APPLICATION_ID: i32 = 0x5074_5779;

/// Migrations in order; the number of those applied stands in SQLite's `user_version`.
/// Each is safe to apply twice, and none is changed after a release.
const MIGRATIONS: [&str; 12] = [
    include_str!("../../../migrations/sqlite/0001_create_store.sql"),
    include_str!("../../../migrations/sqlite/0002_create_destination_actions.sql"),
    include_str!("../../../migrations/sqlite/0003_create_action_requests.sql"),
    include_str!("../../../migrations/sqlite/0004_index_edits.sql"),
    include_str!("../../../migrations/sqlite/0005_create_message_terms.sql"),
    include_str!("../../../migrations/sqlite/0006_create_source_cursors.sql"),
    include_str!("../../../migrations/sqlite/0007_gather_fresh_terms.sql"),
    include_str!("../../../migrations/sqlite/0008_create_plugin_state.sql"),
    include_str!("../../../migrations/sqlite/0009_create_outputs.sql"),
    include_str!("../../../migrations/sqlite/0010_create_retention.sql"),
    include_str!("../../../migrations/sqlite/0011_create_engines.sql"),
    include_str!("../../../migrations/sqlite/0012_note_server.sql"),
];

/// The version this binary knows.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

const FIRST_ROW: &str =
    "INSERT INTO last_write (id, message_id, mark, outcome, in_use) VALUES (1, 0, 0, x'', 0)
    ON CONFLICT DO NOTHING";

/// Brings a file to [`VERSION`], in one transaction.
pub(crate) fn migrate(connection: &mut Connection, from: i32) -> rusqlite::Result<()> {
    if from >= VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in MIGRATIONS.into_iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.execute(FIRST_ROW, [])?;
    transaction.commit()
}
