//! The log, the room on the disk, and pages that became free.
//!
//! Commits go to the log, which from time to time is moved into the main file. Nearly all of that
//! happens beside the writer, on a connection of its own ([`Mover`]); only the end of it, after
//! which the log begins anew, holds the writer for a moment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portway_store::{ErrorKind, Maintenance, StoreError};
use rusqlite::Connection;
use tokio::sync::Mutex;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::time::{Instant, timeout};

use crate::disk::free_bytes;
use crate::error::{failed, is_busy};
use crate::open::{self, folder_of};
use crate::thread::{WriterThreads, start_apart};
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
    Idle(Option<Connection>),
    Moving {
        moved: oneshot::Receiver<Moved>,
        /// What was written when it began.
        written: u64,
    },
}

/// What a move came to, and the connection it was made on.
struct Moved {
    connection: Option<Connection>,
    /// None: somebody else was at it.
    result: rusqlite::Result<Option<Log>>,
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
    pub(crate) fn tend(&self, writer: &mut Writer) {
        // Held by `maintain`, which does the same.
        let Ok(mut mover) = self.mover.try_lock() else { return };
        if let Mover::Moving { moved, .. } = &mut *mover {
            let moved = match moved.try_recv() {
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Closed) => None,
                Ok(moved) => Some(moved),
            };
            let ended = end(&mut mover, moved).and_then(|ended| match ended {
                Some(ended) => take_over(writer, ended),
                None => Ok(()),
            });
            if let Err(error) = ended {
                // The write itself is done; `maintain` meets the same error and tells it.
                tracing::warn!(error = &error as &dyn std::error::Error, "the log of the store is not moved");
            }
        }
        if writer.log.left() >= MOVE_BYTES {
            self.begin(&mut mover, writer.log);
        }
    }

    /// One pass of housekeeping; holds up the next write for `wait` at most, or a little more.
    pub(crate) async fn maintain(
        &self,
        writer: &WriterThreads,
        wait: Duration,
    ) -> Result<Maintenance, StoreError> {
        let until = Instant::now() + wait;
        let moved = self.move_log(writer, wait).await;
        let cannot_grow = moved.as_ref().is_err_and(|error| error.kind() == ErrorKind::Full);
        let goes_on = match moved {
            Ok(()) => give_back(writer, until).await?,
            // The main file cannot grow: that is what is to be told.
            Err(_) if cannot_grow => false,
            Err(error) => return Err(error),
        };
        let log = writer.run(|writer| Ok(writer.log)).await?;
        let full = cannot_grow || self.check(&log).is_err();
        Ok(Maintenance { full, free_bytes: self.free_bytes(), log_bytes: log.left(), goes_on })
    }

    async fn move_log(&self, writer: &WriterThreads, wait: Duration) -> Result<(), StoreError> {
        let mut mover = self.mover.lock().await;
        let log = writer.run(|writer| Ok(writer.log)).await?;
        if log.left() > 0 {
            self.begin(&mut mover, log);
        }
        let Mover::Moving { moved, .. } = &mut *mover else { return Ok(()) };
        // It goes on if it takes longer; the next write or the next look ends it.
        let Ok(moved) = timeout(wait, moved).await else { return Ok(()) };
        match end(&mut mover, moved.ok())? {
            Some(ended) => writer.run(|writer| take_over(writer, ended)).await,
            None => Ok(()),
        }
    }

    /// Starts moving the log beside the writer, unless it is being moved.
    fn begin(&self, mover: &mut Mover, log: Log) {
        if let Mover::Idle(connection) = mover {
            let (path, connection) = (self.path.clone(), connection.take());
            let moved = start_apart("store-mover", move || move_beside(&path, connection));
            *mover = Mover::Moving { moved, written: log.written };
        }
    }

    /// Waits for a move that is on its way; answers its connection.
    pub(crate) async fn close(&self) -> Option<Connection> {
        let mut mover = self.mover.lock().await;
        let connection = match &mut *mover {
            Mover::Idle(connection) => connection.take(),
            Mover::Moving { moved, .. } => moved.await.ok().and_then(|moved| moved.connection),
        };
        *mover = Mover::Idle(None);
        connection
    }
}

/// Gives free pages back to the disk, while there is time; whether there are more.
async fn give_back(writer: &WriterThreads, until: Instant) -> Result<bool, StoreError> {
    while Instant::now() < until {
        if !writer.run(give_back_some).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether there were too many free pages.
fn give_back_some(writer: &mut Writer) -> Result<bool, StoreError> {
    let error = |error| failed("give back free space", error);
    let connection = writer.connection()?;
    let free: i64 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)).map_err(error)?;
    if free <= KEPT_PAGES {
        return Ok(false);
    }
    // Each row it answers is a page given back.
    connection.pragma(None, "incremental_vacuum", GIVEN_BACK, |_| Ok(())).map_err(error)?;
    let left: i64 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)).map_err(error)?;
    writer.log.written += u64::from(GIVEN_BACK) * 4096;
    // A file that was not made to shrink gives nothing back: its free pages are used again.
    Ok(left < free)
}

/// A move that is done.
struct Ended {
    log: Log,
    /// What was written when it began.
    before: u64,
}

/// Ends a move; `moved` is missing if its thread panicked, and its connection is gone.
fn end(mover: &mut Mover, moved: Option<Moved>) -> Result<Option<Ended>, StoreError> {
    let moved = moved.unwrap_or(Moved { connection: None, result: Ok(None) });
    let Mover::Moving { written, .. } = std::mem::replace(mover, Mover::Idle(moved.connection)) else {
        return Ok(None);
    };
    let log = moved.result.map_err(|error| failed("move the log of the store", error))?;
    Ok(log.map(|log| Ended { log, before: written }))
}

/// Takes over what a move came to. If little is left, moves that as well while no one else writes, and
/// lets the log begin anew.
fn take_over(writer: &mut Writer, ended: Ended) -> Result<(), StoreError> {
    let since = writer.log.written.saturating_sub(ended.before);
    writer.log = Log { written: ended.log.written + since, moved: ended.log.moved };
    if writer.log.written < RESTART_BYTES || writer.log.left() > MOVE_BYTES {
        return Ok(());
    }
    let connection = writer.connection()?;
    let restart = || {
        connection.busy_timeout(PATIENCE)?;
        let log = checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)");
        connection.busy_timeout(open::BUSY_MAX)?;
        log
    };
    let log = restart().map_err(|error| failed("move the log of the store", error))?;
    if let Some(log) = log {
        writer.log = if log.left() == 0 { Log::default() } else { log };
    }
    Ok(())
}

/// Moves the log while the writer goes on, until little is left or the writer is too fast.
fn move_beside(path: &Path, connection: Option<Connection>) -> Moved {
    let connection = match connection.map_or_else(|| open::mover(path), Ok) {
        Ok(connection) => connection,
        Err(error) => return Moved { connection: None, result: Err(error) },
    };
    let mut log = Ok(None);
    for _ in 0..PASSES {
        log = checkpoint(&connection, "PRAGMA wal_checkpoint(PASSIVE)");
        match &log {
            Ok(Some(log)) if log.left() > LEFT_BYTES_MAX => {}
            Ok(_) | Err(_) => break,
        }
    }
    Moved { connection: Some(connection), result: log }
}

/// None: somebody else does it.
fn checkpoint(connection: &Connection, sql: &str) -> rusqlite::Result<Option<Log>> {
    let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let bytes = |pages: i64| u64::try_from(pages * page_bytes).unwrap_or(0);
    let moved = connection
        .query_row(sql, [], |row| Ok(Log { written: bytes(row.get(1)?), moved: bytes(row.get(2)?) }));
    match moved {
        Ok(log) => Ok(Some(log)),
        Err(error) if is_busy(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
