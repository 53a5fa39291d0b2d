//! The tables, and how an older database gets them.
//!
//! Migrations only add, so a database that is ahead of this program is used as it is, if what was added says
//! that programs as old as this one work on it. One whose migration was changed after it was applied is
//! refused: what is in the database then is not what the program was built for.
//!
//! No engine that is alive loses the tables it works on: what older programs do not work on is added only
//! while there is none.

use std::time::Duration;

use portway_store::{ErrorKind, Migration, StoreError, oldest_binary};
use sha2::{Digest as _, Sha256};
use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use crate::connect::limit_statements;
use crate::error::Failed;
use crate::query::{Session, value};
use crate::seen;

macro_rules! migrations {
    ($($name:literal)*) => {
        [$(Migration {
            name: $name,
            text: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
        }),*]
    };
}

/// Migrations in order. Each is safe to apply twice, and none is changed after a release.
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

/// The number of the newest.
pub(crate) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// A database this program cannot work on.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// This migration was applied with another text.
    Changed(String),
    /// What a newer program added needs a newer one.
    Newer(String),
    /// These engines would not work on what is to be added, or nobody is to be there.
    InUse(Vec<String>),
}

/// What was applied to a database, where this program can work on it.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Of the migrations that this program knows.
    applied: Vec<u32>,
    /// The names of the others.
    pub(crate) newer: Vec<String>,
}

/// Who else may use the database while its tables change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Whoever works on the new tables as well.
    WhoeverCan,
    Nobody,
}

impl Schema {
    /// The newest migration that was applied; none: there are no tables.
    pub(crate) fn present(&self) -> Option<u32> {
        self.applied.iter().copied().max()
    }

    /// What is to be applied, in order. One that comes to lie between others is applied by itself.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &'static Migration> {
        MIGRATIONS.iter().filter(move |migration| !self.applied.contains(&migration.number()))
    }
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
        number     integer PRIMARY KEY,
        name       text NOT NULL,
        digest     bytea NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS oldest_binary integer;
    COMMENT ON TABLE schema_migrations IS 'Which migrations were applied.';
    COMMENT ON COLUMN schema_migrations.number IS 'Its number.';
    COMMENT ON COLUMN schema_migrations.name IS 'Its name.';
    COMMENT ON COLUMN schema_migrations.digest IS 'SHA-256 of its statements.';
    COMMENT ON COLUMN schema_migrations.applied_at IS 'When.';
    COMMENT ON COLUMN schema_migrations.oldest_binary IS
        'The newest migration that a program has to know, at least, to work on the tables; none: nobody said.'";
const IS_THERE: &str =
    "SELECT to_regclass(quote_ident(current_schema()) || '.schema_migrations') IS NOT NULL";
/// As JSON, because of tables that lack a column.
const APPLIED: &str = "SELECT number, name, digest, (to_jsonb(m) ->> 'oldest_binary')::int4
    FROM schema_migrations m ORDER BY number";
const RECORD: &str = "INSERT INTO schema_migrations (number, name, digest, oldest_binary)
    VALUES ($1, $2, $3, $4)";
const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended(current_schema() || ': migrations', 0))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended(current_schema() || ': migrations', 0))";

const WHAT: &str = "bring the tables up to date";
/// How long a migration may take, or wait for that of another engine.
const MIGRATION_MAX: Duration = Duration::from_secs(86_400);
/// Times a lock is tried for, of 2 seconds each: new inserts wait behind whoever waits for one.
const TRIES_MAX: u32 = 20;
/// Between two tries.
const PAUSE: Duration = Duration::from_secs(1);

fn digest(migration: &Migration) -> Vec<u8> {
    Sha256::digest(migration.statements()).to_vec()
}

/// What was applied to a database, if this program works on it.
pub(crate) async fn read(session: &mut Session) -> Result<Result<Schema, Unfit>, Failed> {
    let is_there = session.read_one(WHAT, sqlx::query(IS_THERE), |row| value::<bool>(row, 0)).await?;
    if is_there != Some(true) {
        return Ok(Ok(Schema::default()));
    }
    let applied = session.read(WHAT, sqlx::query(APPLIED), |row| {
        Ok((
            u32::try_from(value::<i32>(row, 0)?).unwrap_or(u32::MAX),
            value::<String>(row, 1)?,
            value::<Vec<u8>>(row, 2)?,
            value::<Option<i32>>(row, 3)?,
        ))
    });
    let mut schema = Schema::default();
    for (number, name, recorded, oldest) in applied.await? {
        match MIGRATIONS.iter().find(|migration| migration.number() == number) {
            Some(known) if digest(known) == recorded => schema.applied.push(number),
            Some(_) => return Ok(Err(Unfit::Changed(name))),
            None => {
                let works = oldest.and_then(|oldest| u32::try_from(oldest).ok());
                if works.is_none_or(|oldest| oldest > KNOWN) {
                    return Ok(Err(Unfit::Newer(name)));
                }
                schema.newer.push(name);
            }
        }
    }
    Ok(Ok(schema))
}

/// Whether this program still works on the tables. Asked by whoever has the name of an engine: from then on nobody
/// changes them beyond it, but while it had none they may have been.
pub(crate) async fn check(session: &mut Session) -> Result<(), Failed> {
    let unfit = match read(session).await? {
        Ok(_) => return Ok(()),
        Err(Unfit::Changed(name)) => format!("migration `{name}` was applied with another text"),
        Err(Unfit::Newer(name)) => format!("`{name}` needs a newer program"),
        Err(Unfit::InUse(_)) => return Ok(()),
    };
    let text = format!("the tables were changed while this engine was away: {unfit}");
    Err(StoreError::new(ErrorKind::Fatal, text).into())
}

/// Brings the tables to what this program knows. Of two engines that start, the second waits for the first.
/// `statement_max` is what the session allows a statement otherwise.
pub(crate) async fn migrate(
    session: &mut Session,
    beside: Beside,
    statement_max: Duration,
) -> Result<Result<(), Unfit>, Failed> {
    match read(session).await? {
        Ok(schema) if schema.missing().next().is_none() => return Ok(Ok(())),
        Ok(_) => {}
        Err(unfit) => return Ok(Err(unfit)),
    }
    limit_statements(session, MIGRATION_MAX).await?;
    session.execute(WHAT, sqlx::query(LOCK)).await?;
    let migrated = migrate_locked(session, beside).await;
    if migrated.is_err() {
        session.roll_back().await;
    }
    if !session.is_broken {
        session.execute(WHAT, sqlx::query(UNLOCK)).await?;
        limit_statements(session, statement_max).await?;
    }
    migrated
}

async fn migrate_locked(session: &mut Session, beside: Beside) -> Result<Result<(), Unfit>, Failed> {
    let schema = match read(session).await? {
        Ok(schema) => schema,
        Err(unfit) => return Ok(Err(unfit)),
    };
    let beside = if is_for_nobody(&schema) { Beside::Nobody } else { beside };
    let engines = in_the_way(session, beside).await?;
    if !engines.is_empty() {
        return Ok(Err(Unfit::InUse(engines)));
    }
    session.script(WHAT, TABLE).await?;
    for migration in schema.missing() {
        let mut tries = 1;
        loop {
            match apply(session, migration, beside).await {
                Ok(Ok(())) => break,
                Ok(Err(unfit)) => {
                    session.roll_back().await;
                    return Ok(Err(unfit));
                }
                Err(failed) => {
                    session.roll_back().await;
                    if !failed.is_locked_out() || tries >= TRIES_MAX {
                        return Err(failed);
                    }
                }
            }
            tries += 1;
            sleep(PAUSE).await;
        }
    }
    Ok(Ok(()))
}

/// Whether what is missing may be added only while there is no engine. Whoever is has the tables as they are now,
/// and knows the oldest program that works on them, or more.
fn is_for_nobody(schema: &Schema) -> bool {
    let now = oldest_binary(&MIGRATIONS, |number| schema.applied.contains(&number));
    let then = oldest_binary(&MIGRATIONS, |number| schema.missing().any(|one| one.number() == number));
    then > now
}

/// Engines that are alive and must not be.
async fn in_the_way(session: &mut Session, beside: Beside) -> Result<Vec<String>, Failed> {
    match beside {
        Beside::WhoeverCan => Ok(Vec::new()),
        Beside::Nobody => seen::alive(session).await,
    }
}

/// An engine takes its name and then reads which migrations there are: it is seen here, or waits for this one.
const ALONE: &str = "LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE";

async fn apply(
    session: &mut Session,
    migration: &Migration,
    beside: Beside,
) -> Result<Result<(), Unfit>, Failed> {
    let number = migration.number();
    let oldest = oldest_binary(&MIGRATIONS, |one| one == number);
    session.script(WHAT, "BEGIN; SET LOCAL lock_timeout = '2s'").await?;
    if beside == Beside::Nobody {
        session.script(WHAT, ALONE).await?;
        let engines = in_the_way(session, beside).await?;
        if !engines.is_empty() {
            return Ok(Err(Unfit::InUse(engines)));
        }
    }
    session.script(WHAT, AssertSqlSafe(migration.text)).await?;
    let record = sqlx::query(RECORD)
        .bind(number.cast_signed())
        .bind(migration.name)
        .bind(digest(migration))
        .bind(oldest.cast_signed());
    session.execute(WHAT, record).await?;
    session.commit(WHAT).await?;
    Ok(Ok(()))
}
