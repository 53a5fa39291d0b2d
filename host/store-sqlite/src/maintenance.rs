//! The log, the room on the disk, and pages that became free.
//!
//! Commits go to the log, which from time to time is moved into the main file. Nearly all of that
//! happens beside the writer, on a connection of its own ([`Mover`]); only the end of it, after
//! which the log begins anew, holds the writer for a moment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portway_store::{ErrorKind, Maintenance, StoreError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::disk::free_bytes;
use crate::error::{failed, is_busy, is_full};
use crate::open::{checkpoint_options, folder_of};
use crate::writer::Writer;

/// From this size on the log is moved without being asked.
const MOVE_BYTES: u64 = 16 << 20;
/// A log that was larger begins anew when it is moved.
const RESTART_BYTES: u64 = 4 << 20;
/// What the writer may be held for at the end.
const LEFT_BYTES_MAX: u64 = 2 << 20;
/// Passes beside the writer, each over what was written during the one before.
const PASSES: usize = 4;
/// How long the writer is held for readers that are still in the log.
const PATIENCE: Duration = Duration::from_millis(20);
/// Free pages that are kept for the next messages instead of given back.
const KEPT_PAGES: i64 = 4096;
/// Pages given back at a time; the writer is free in between.
const GIVEN_BACK: u32 = 128;

/// Watches over the room of a store.
pub(crate) struct Room {
    path: PathBuf,
    free_floor_bytes: u64,
    wal_bytes_max: u64,
    mover: Mutex<Mover>,
}

/// What moves the log.
enum Mover {
    Idle(Option<SqliteConnection>),
    Moving {
        task: JoinHandle<Moved>,
        /// What was written when it began.
        written: u64,
    },
}

/// What a move came to, and the connection it was made on, if that is still good.
struct Moved {
    connection: Option<SqliteConnection>,
    /// None: somebody else was at it.
    result: Result<Option<Log>, sqlx::Error>,
}

/// The log, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Log {
    /// Written since it began.
    pub(crate) written: u64,
    /// Of that: in the main file.
    pub(crate) moved: u64,
}

impl Log {
    pub(crate) fn left(&self) -> u64 {
        self.written.saturating_sub(self.moved)
    }
}

impl Room {
    pub(crate) fn new(path: &Path, free_floor_bytes: u64, wal_bytes_max: u64) -> Self {
        let mover = Mutex::const_new(Mover::Idle(None));
        Room { path: path.to_path_buf(), free_floor_bytes, wal_bytes_max, mover }
    }

    /// Refuses new messages while there is too little room for what completes the old ones.
    pub(crate) fn check(&self, log: &Log) -> Result<(), StoreError> {
        // What cannot be asked is not full.
        if self.free_bytes().is_some_and(|free| free < self.free_floor_bytes) {
            return Err(StoreError::new(ErrorKind::Full, "the disk of the store has too little free space"));
        }
        if log.left() > self.wal_bytes_max {
            return Err(StoreError::new(ErrorKind::Full, "the log of the store is above its limit"));
        }
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        free_bytes(folder_of(&self.path)).ok()
    }

    /// After a write: begins to move the log where it is large, or ends a move that is done.
    pub(crate) async fn tend(&self, writer: &mut Writer) {
        // Held by `maintain`, which does the same.
        let Ok(mut mover) = self.mover.try_lock() else { return };
        if let Mover::Moving { task, .. } = &mut *mover {
            if !task.is_finished() {
                return;
            }
            let moved = task.await;
            if let Err(error) = end(&mut mover, moved, writer).await {
                // The write itself is done; `maintain` meets the same error and tells it.
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot move the log of the store");
            }
        }
        if writer.log.left() >= MOVE_BYTES {
            self.begin(&mut mover, writer.log);
        }
    }

    /// One pass of housekeeping; holds up the next write for `wait` at most, or a little more.
    pub(crate) async fn maintain(
        &self,
        writer: &Mutex<Writer>,
        wait: Duration,
    ) -> Result<Maintenance, StoreError> {
        let until = Instant::now() + wait;
        let moved = self.move_log(writer, wait).await;
        let cannot_grow = moved.as_ref().is_err_and(is_full);
        match moved {
            Ok(()) => self.give_back(writer, until).await?,
            // The main file cannot grow: that is what is to be told.
            Err(_) if cannot_grow => {}
            Err(error) => return Err(failed("move the log of the store", error)),
        }
        let log = writer.lock().await.log;
        let full = cannot_grow || self.check(&log).is_err();
        Ok(Maintenance { full, free_bytes: self.free_bytes(), log_bytes: log.left() })
    }

    async fn move_log(&self, writer: &Mutex<Writer>, wait: Duration) -> Result<(), sqlx::Error> {
        let mut mover = self.mover.lock().await;
        let log = writer.lock().await.log;
        if log.left() > 0 {
            self.begin(&mut mover, log);
        }
        let Mover::Moving { task, .. } = &mut *mover else { return Ok(()) };
        match timeout(wait, task).await {
            Ok(moved) => end(&mut mover, moved, &mut *writer.lock().await).await,
            // It goes on; the next write or the next look ends it.
            Err(_elapsed) => Ok(()),
        }
    }

    /// Starts moving the log beside the writer, unless it is being moved.
    fn begin(&self, mover: &mut Mover, log: Log) {
        if let Mover::Idle(connection) = mover {
            let task = tokio::spawn(move_beside(self.path.clone(), connection.take()));
            *mover = Mover::Moving { task, written: log.written };
        }
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
            writer.log.written += u64::from(GIVEN_BACK) * 4096;
        }
    }

    pub(crate) async fn close(&self) {
        let mut mover = self.mover.lock().await;
        let connection = match &mut *mover {
            Mover::Idle(connection) => connection.take(),
            Mover::Moving { task, .. } => task.await.ok().and_then(|moved| moved.connection),
        };
        *mover = Mover::Idle(None);
        if let Some(connection) = connection {
            // It has nothing of its own to lose.
            let _ = connection.close().await;
        }
    }
}

/// Takes over what a move came to; lets the log begin anew if little is left.
async fn end(
    mover: &mut Mover,
    moved: Result<Moved, tokio::task::JoinError>,
    writer: &mut Writer,
) -> Result<(), sqlx::Error> {
    // An error: the task panicked, and its connection is gone.
    let moved = moved.unwrap_or(Moved { connection: None, result: Ok(None) });
    let before = match std::mem::replace(mover, Mover::Idle(None)) {
        Mover::Moving { written, .. } => written,
        Mover::Idle(_) => writer.log.written,
    };
    let mut connection = moved.connection;
    let ended = match (moved.result, &mut connection) {
        (Ok(Some(log)), Some(connection)) => {
            let since = writer.log.written.saturating_sub(before);
            writer.log = Log { written: log.written + since, moved: log.moved };
            restart(connection, writer).await
        }
        (result, _) => result.map(drop),
    };
    *mover = Mover::Idle(connection);
    ended
}

/// Moves what is left while the writer is held, and lets the log begin anew.
async fn restart(connection: &mut SqliteConnection, writer: &mut Writer) -> Result<(), sqlx::Error> {
    if writer.log.written < RESTART_BYTES || writer.log.left() > MOVE_BYTES {
        return Ok(());
    }
    if let Some(log) = checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)").await? {
        writer.log = if log.left() == 0 { Log::default() } else { log };
    }
    Ok(())
}

/// Moves the log while the writer goes on, until little is left or the writer is too fast.
async fn move_beside(path: PathBuf, connection: Option<SqliteConnection>) -> Moved {
    let opened = match connection {
        Some(connection) => Ok(connection),
        None => checkpoint_options(&path, PATIENCE).connect().await,
    };
    let mut connection = match opened {
        Ok(connection) => connection,
        Err(error) => return Moved { connection: None, result: Err(error) },
    };
    let mut log = Ok(None);
    for _ in 0..PASSES {
        log = checkpoint(&mut connection, "PRAGMA wal_checkpoint(PASSIVE)").await;
        match &log {
            Ok(Some(log)) if log.left() > LEFT_BYTES_MAX => {}
            Ok(_) | Err(_) => break,
        }
    }
    let broken = log.as_ref().is_err_and(|error| error.as_database_error().is_none());
    Moved { connection: (!broken).then_some(connection), result: log }
}

/// None: somebody else does it.
async fn checkpoint(
    connection: &mut SqliteConnection,
    sql: &'static str,
) -> Result<Option<Log>, sqlx::Error> {
    let page_bytes: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut *connection).await?;
    match sqlx::query_as::<_, (i64, i64, i64)>(sql).persistent(false).fetch_one(connection).await {
        Ok((_busy, written, moved)) => {
            let bytes = |pages: i64| u64::try_from(pages * page_bytes).unwrap_or(0);
            Ok(Some(Log { written: bytes(written), moved: bytes(moved) }))
        }
        Err(error) if is_busy(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
