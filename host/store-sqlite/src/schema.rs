//! The tables, and how an older file gets them.

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

/// Marks a file as ours, in SQLite's `application_id`: `PtWy`.
pub(crate) const APPLICATION_ID: i32 = 0x5074_5779;

/// Migrations in order; the number of those applied stands in SQLite's `user_version`.
/// Each is safe to apply twice, and none is changed after a release.
const MIGRATIONS: [&str; 1] = [include_str!("../../../migrations/sqlite/0001_create_store.sql")];

/// The version this binary knows.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

/// Brings a file to [`VERSION`], in one transaction.
pub(crate) async fn migrate(connection: &mut SqliteConnection, from: i32) -> Result<(), sqlx::Error> {
    if from >= VERSION {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for migration in MIGRATIONS.into_iter().skip(usize::try_from(from).unwrap_or(0)) {
        sqlx::raw_sql(migration).execute(&mut *transaction).await?;
    }
    // A pragma takes no bound value; both numbers are constants of this file.
    let identify = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};");
    sqlx::raw_sql(sqlx::AssertSqlSafe(identify)).execute(&mut *transaction).await?;
    let first_row = "INSERT INTO last_write (id, message_id, mark, outcome, in_use) VALUES (1, 0, 0, x'', 0)
        ON CONFLICT DO NOTHING";
    sqlx::query(first_row).execute(&mut *transaction).await?;
    transaction.commit().await
}
