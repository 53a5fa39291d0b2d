//! What SQLite's errors mean to the engine.

use portway_store::{ErrorKind, StoreError};
use rusqlite::ffi;

/// A failed statement before COMMIT: nothing was stored.
pub(crate) fn failed(what: &str, error: rusqlite::Error) -> StoreError {
    StoreError::new(kind(&error), format!("cannot {what}")).caused_by(error)
}

/// A failed COMMIT. What SQLite itself refuses is not stored; nothing else is known to be so.
pub(crate) fn commit_failed(what: &str, error: rusqlite::Error) -> StoreError {
    let kind = if error.sqlite_error().is_some() { kind(&error) } else { ErrorKind::Unknown };
    StoreError::new(kind, format!("cannot {what}")).caused_by(error)
}

/// What is stored cannot be what was written: the file is damaged.
pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Fatal, format!("the store is damaged: {what}"))
}

pub(crate) fn closed() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "the store is closed")
}

pub(crate) fn kind(error: &rusqlite::Error) -> ErrorKind {
    // Out of memory while reading or writing, not a broken disk.
    if extended_code(error) == Some(ffi::SQLITE_IOERR_NOMEM) {
        return ErrorKind::Unavailable;
    }
    match primary_code(error) {
        Some(ffi::SQLITE_FULL) => ErrorKind::Full,
        Some(ffi::SQLITE_IOERR | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) => ErrorKind::Fatal,
        Some(ffi::SQLITE_TOOBIG | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH) => ErrorKind::Refused,
        // Busy, locked, out of memory, and what nobody thought of.
        Some(_) | None => ErrorKind::Unavailable,
    }
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(primary_code(error), Some(ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED))
}

pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    primary_code(error) == Some(ffi::SQLITE_FULL)
}

pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(primary_code(error), Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB))
}

fn primary_code(error: &rusqlite::Error) -> Option<i32> {
    extended_code(error).map(|code| code & 0xff)
}

fn extended_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}
