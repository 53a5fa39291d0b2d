//! The log, the room on the disk, and pages that became free.
//!
//! Commits go to the log; from time to time it is moved into the main file. Nearly all of that
//! happens beside the writer, on a connection of its own; only the end of it, after which the log
//! begins anew, holds the writer for a moment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portway_store::{ErrorKind, Maintenance, StoreError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::disk::free_bytes;
use crate::error::{failed, is_busy, is_full};
use crate::open::{checkpoint_options, folder_of};
use crate::writer::Writer;

/// From this size on the log is begun anew.
const RESTART_BYTES: u64 = 4 << 20;
/// Free pages that are kept for the next messages instead of given back.
const KEPT_PAGES: i64 = 4096;
/// Pages given back at a time; the writer is free in between.
const GIVEN_BACK: u32 = 128;

/// Watches over the room of a store.
pub(crate) struct Room {
    path: PathBuf,
    free_floor_bytes: u64,
    wal_bytes_max: u64,
    /// Opened with the first use.
    checkpoint: Mutex<Option<SqliteConnection>>,
}

/// What a checkpoint answers, in pages: those in the log, and those of them that were moved.
struct Checkpoint {
    log: u64,
    moved: u64,
}

impl Checkpoint {
    /// Pages a reader keeps from being moved, or that came too late.
    fn left(&self) -> u64 {
        self.log.saturating_sub(self.moved)
    }
}

impl Room {
    pub(crate) fn new(path: &Path, free_floor_bytes: u64, wal_bytes_max: u64) -> Self {
        Room { path: path.to_path_buf(), free_floor_bytes, wal_bytes_max, checkpoint: Mutex::const_new(None) }
    }

    /// Refuses new messages while there is too little room for what completes the old ones.
    pub(crate) fn check(&self, log_bytes: u64) -> Result<(), StoreError> {
        // What cannot be asked is not full.
        if self.free_bytes().is_some_and(|free| free < self.free_floor_bytes) {
            return Err(StoreError::new(ErrorKind::Full, "the disk of the store has too little free space"));
        }
        if log_bytes > self.wal_bytes_max {
            return Err(StoreError::new(ErrorKind::Full, "the log of the store is above its limit"));
        }
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        free_bytes(folder_of(&self.path)).ok()
    }

    /// One pass. Must run beside the writes, not between them.
    pub(crate) async fn maintain(
        &self,
        writer: &Mutex<Writer>,
        wait: Duration,
    ) -> Result<Maintenance, StoreError> {
        let until = Instant::now() + wait;
        match self.move_log(writer, wait).await {
            Ok(()) => self.give_back(writer, until).await?,
            // The main file cannot grow: that is what is to be told.
            Err(error) if is_full(&error) => {}
            Err(error) => return Err(failed("move the log of the store", error)),
        }
        let log_bytes = writer.lock().await.log_bytes;
        let free_bytes = self.free_bytes();
        Ok(Maintenance { full: self.check(log_bytes).is_err(), free_bytes, log_bytes })
    }

    async fn move_log(&self, writer: &Mutex<Writer>, wait: Duration) -> Result<(), sqlx::Error> {
        let mut connection = self.checkpoint.lock().await;
        if connection.is_none() {
            *connection = Some(checkpoint_options(&self.path).connect().await?);
        }
        let Some(open) = connection.as_mut() else { return Ok(()) };
        let moved = self.checkpoints(open, writer, wait).await;
        if moved.as_ref().is_err_and(|error| error.as_database_error().is_none()) {
            *connection = None;
        }
        moved
    }

    /// Moves what is in the log, and tells the writer what is left.
    async fn checkpoints(
        &self,
        connection: &mut SqliteConnection,
        writer: &Mutex<Writer>,
        wait: Duration,
    ) -> Result<(), sqlx::Error> {
        let page_bytes: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut *connection).await?;
        let page_bytes = u64::try_from(page_bytes).unwrap_or(0);
        let before = writer.lock().await.log_bytes;
        let first = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)").await?;
        if first.log * page_bytes < RESTART_BYTES {
            // What came meanwhile is not known to have been moved.
            let mut writer = writer.lock().await;
            writer.log_bytes = writer.log_bytes.saturating_sub(before) + first.left() * page_bytes;
            return Ok(());
        }
        // A pragma takes no bound value. A reader that does not end in time is waited for the next time.
        let patience = wait.min(Duration::from_millis(200)).as_millis();
        let set = format!("PRAGMA busy_timeout = {patience}");
        sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut *connection).await?;
        let mut writer = writer.lock().await;
        let last = checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)").await?;
        writer.log_bytes = last.left() * page_bytes;
        Ok(())
    }

    /// Gives free pages back to the disk, while there is time.
    async fn give_back(&self, writer: &Mutex<Writer>, until: Instant) -> Result<(), StoreError> {
        let error = |error| failed("give back free space", error);
        loop {
            let mut writer = writer.lock().await;
            let connection = writer.connection().await?;
            let free: i64 = sqlx::query_scalar("PRAGMA freelist_count")
                .fetch_one(&mut *connection)
                .await
                .map_err(error)?;
            if free <= KEPT_PAGES || Instant::now() >= until {
                return Ok(());
            }
            let give = format!("PRAGMA incremental_vacuum({GIVEN_BACK})");
            sqlx::raw_sql(AssertSqlSafe(give)).fetch_all(connection).await.map_err(error)?;
        }
    }

    pub(crate) async fn close(&self) {
        if let Some(connection) = self.checkpoint.lock().await.take() {
            // It has nothing of its own to lose.
            let _ = connection.close().await;
        }
    }
}

async fn checkpoint(connection: &mut SqliteConnection, sql: &'static str) -> Result<Checkpoint, sqlx::Error> {
    match sqlx::query_as::<_, (i64, i64, i64)>(sql).persistent(false).fetch_one(connection).await {
        Ok((_busy, log, moved)) => {
            let pages = |pages: i64| u64::try_from(pages).unwrap_or(0);
            Ok(Checkpoint { log: pages(log), moved: pages(moved) })
        }
        Err(error) if is_busy(&error) => Ok(Checkpoint { log: 0, moved: 0 }),
        Err(error) => Err(error),
    }
}
