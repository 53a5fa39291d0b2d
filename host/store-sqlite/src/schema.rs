//! The tables, and how an older file gets them.
//!
//! Migrations only add, so a file that is ahead of this program is used as it is, if what was added says
//! that programs as old as this one work on it.

use portway_store::{Migration, oldest_binary};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

/// Marks a file as ours, in SQLite's `application_id`: `PtWy`.
pub(crate) const APPLICATION_ID: i32 = 0x5074_5779;

macro_rules! migrations {
    ($($name:literal)*) => {
        [$(Migration {
            name: $name,
            text: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
        }),*]
    };
}

/// Migrations in order; the number of those applied stands in SQLite's `user_version`.
/// Each is safe to apply twice, and none is changed after a release.
pub(crate) const MIGRATIONS: [Migration; 14] = migrations![
    "0001_create_store"
    "0002_create_destination_actions"
    "0003_create_action_requests"
    "0004_index_edits"
    "0005_create_message_terms"
    "0006_create_source_cursors"
    "0007_gather_fresh_terms"
    "0008_create_plugin_state"
    "0009_create_outputs"
    "0010_create_retention"
    "0011_create_engines"
    "0012_note_seen_engines"
    "0013_note_server"
    "0014_note_takeovers"
];

/// The version this binary knows.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

const FIRST_ROW: &str =
    "INSERT INTO last_write (id, message_id, mark, outcome, in_use) VALUES (1, 0, 0, x'', 0)
    ON CONFLICT DO NOTHING";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    -- Which migrations were applied.
    number        INTEGER PRIMARY KEY, -- its number
    name          TEXT NOT NULL, -- its name
    oldest_binary INTEGER NOT NULL -- the newest migration a program has to know, at least, to work on the tables
) STRICT";
const RECORD: &str = "INSERT INTO schema_migrations (number, name, oldest_binary) VALUES (?, ?, ?)
    ON CONFLICT DO NOTHING";
const IS_RECORDED: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'";

/// Brings a file to [`VERSION`], in one transaction.
pub(crate) fn migrate(connection: &mut Connection, from: i32) -> rusqlite::Result<()> {
    if from > VERSION || (from == VERSION && is_recorded(connection)?) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(migration.text)?;
    }
    transaction.execute(TABLE, [])?;
    for migration in &MIGRATIONS {
        let number = migration.number();
        let oldest = oldest_binary(&MIGRATIONS, |one| one == number);
        transaction.execute(RECORD, (number, migration.name, oldest))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.execute(FIRST_ROW, [])?;
    transaction.commit()
}

fn is_recorded(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(connection.query_row(IS_RECORDED, [], |_| Ok(())).optional()?.is_some())
}

/// Whether this program works on a file that is ahead of it.
pub(crate) fn works_on(connection: &Connection, version: i32) -> rusqlite::Result<bool> {
    if !is_recorded(connection)? {
        return Ok(false);
    }
    // All of them have to be there: what is not recorded may be anything.
    let recorded = "SELECT count(*) = ?2 - ?1 AND coalesce(max(oldest_binary), 0) <= ?1
        FROM schema_migrations WHERE number > ?1 AND number <= ?2";
    connection.query_row(recorded, (VERSION, version), |row| row.get(0))
}

/// The names of those that this program does not know.
pub(crate) fn newer(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    if !is_recorded(connection)? {
        return Ok(Vec::new());
    }
    let mut newer =
        connection.prepare("SELECT name FROM schema_migrations WHERE number > ? ORDER BY number")?;
    newer.query_map([VERSION], |row| row.get(0))?.collect()
}
