//! The tables, and how an older database gets them.
//!
//! Migrations only add, so a database that is ahead of this program is used as it is. One that was changed
//! after it was applied is refused: what is in the database then is not what the program was built for.

use sha2::{Digest as _, Sha256};
use sqlx::AssertSqlSafe;

use crate::error::Failed;
use crate::query::{Session, value};

/// Name and text of each migration, in order. Each is safe to apply twice, and none is changed after a
/// release.
pub(crate) const MIGRATIONS: [(&str, &str); 12] = [
    ("0001_create_store", include_str!("../../../migrations/postgres/0001_create_store.sql")),
    (
        "0002_create_destination_actions",
        include_str!("../../../migrations/postgres/0002_create_destination_actions.sql"),
    ),
    (
        "0003_create_action_requests",
        include_str!("../../../migrations/postgres/0003_create_action_requests.sql"),
    ),
    ("0004_index_edits", include_str!("../../../migrations/postgres/0004_index_edits.sql")),
    ("0005_create_message_terms", include_str!("../../../migrations/postgres/0005_create_message_terms.sql")),
    (
        "0006_create_source_cursors",
        include_str!("../../../migrations/postgres/0006_create_source_cursors.sql"),
    ),
    ("0007_gather_fresh_terms", include_str!("../../../migrations/postgres/0007_gather_fresh_terms.sql")),
    ("0008_create_plugin_state", include_str!("../../../migrations/postgres/0008_create_plugin_state.sql")),
    ("0009_create_outputs", include_str!("../../../migrations/postgres/0009_create_outputs.sql")),
    ("0010_create_retention", include_str!("../../../migrations/postgres/0010_create_retention.sql")),
    ("0011_create_engines", include_str!("../../../migrations/postgres/0011_create_engines.sql")),
    ("0012_note_server", include_str!("../../../migrations/postgres/0012_note_server.sql")),
];

/// What became of the tables.
pub(crate) enum Migrated {
    /// They are as this program knows them, or newer.
    Ready,
    /// This one was applied with another text.
    Changed(String),
}

/// The number that the name of a migration begins with. One that comes to lie between others is applied by
/// itself.
fn number(name: &str) -> i32 {
    name.split('_').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
        number     integer PRIMARY KEY,
        name       text NOT NULL,
        digest     bytea NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    COMMENT ON TABLE schema_migrations IS 'Which migrations were applied.';
    COMMENT ON COLUMN schema_migrations.number IS 'Its number.';
    COMMENT ON COLUMN schema_migrations.name IS 'Its name.';
    COMMENT ON COLUMN schema_migrations.digest IS 'SHA-256 of its text.';
    COMMENT ON COLUMN schema_migrations.applied_at IS 'When.'";
const IS_THERE: &str =
    "SELECT to_regclass(quote_ident(current_schema()) || '.schema_migrations') IS NOT NULL";
const APPLIED: &str = "SELECT number, name, digest FROM schema_migrations ORDER BY number";
const RECORD: &str = "INSERT INTO schema_migrations (number, name, digest) VALUES ($1, $2, $3)";
const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended(current_schema() || ': migrations', 0))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended(current_schema() || ': migrations', 0))";

/// Brings the tables to what this program knows. Of two engines that start, the second waits for the first.
pub(crate) async fn migrate(session: &mut Session) -> Result<Migrated, Failed> {
    let what = "bring the tables up to date";
    session.execute(what, sqlx::query(LOCK)).await?;
    let migrated = migrate_locked(session).await;
    if migrated.is_err() {
        session.roll_back().await;
    }
    if !session.is_broken {
        session.execute(what, sqlx::query(UNLOCK)).await?;
    }
    migrated
}

async fn migrate_locked(session: &mut Session) -> Result<Migrated, Failed> {
    let what = "bring the tables up to date";
    let is_there = session.read_one(what, sqlx::query(IS_THERE), |row| value::<bool>(row, 0)).await?;
    if is_there != Some(true) {
        session.script(what, TABLE).await?;
    }
    let applied = session.read(what, sqlx::query(APPLIED), |row| {
        Ok((value::<i32>(row, 0)?, value::<String>(row, 1)?, value::<Vec<u8>>(row, 2)?))
    });
    let applied = applied.await?;
    for (name, script) in MIGRATIONS {
        let number = number(name);
        let digest = Sha256::digest(script).to_vec();
        match applied.iter().find(|(applied, ..)| *applied == number) {
            Some((.., known)) if *known == digest => {}
            Some((_, name, _)) => return Ok(Migrated::Changed(name.clone())),
            None => {
                session.script(what, "BEGIN").await?;
                session.script(what, AssertSqlSafe(script)).await?;
                session.execute(what, sqlx::query(RECORD).bind(number).bind(name).bind(digest)).await?;
                session.commit(what).await?;
            }
        }
    }
    Ok(Migrated::Ready)
}
