//! What the driver's errors mean to the engine.

use portway_store::{ErrorKind, StoreError};

/// Primary result codes of SQLite that decide what the engine does.
mod code {
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const NOMEM: u32 = 7;
    pub(super) const IOERR: u32 = 10;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const FULL: u32 = 13;
    pub(super) const TOOBIG: u32 = 18;
    pub(super) const CONSTRAINT: u32 = 19;
    pub(super) const MISMATCH: u32 = 20;
    pub(super) const NOTADB: u32 = 26;
}

/// `IOERR_NOMEM`: out of memory while reading or writing, not a broken disk.
const IOERR_NOMEM: u32 = code::IOERR | (12 << 8);

/// A failed statement before COMMIT was sent: nothing was stored.
pub(crate) fn failed(what: &str, error: sqlx::Error) -> StoreError {
    StoreError::new(kind(&error), format!("cannot {what}")).caused_by(error)
}

/// A failed COMMIT, or a script that ends in one.
pub(crate) fn commit_failed(what: &str, error: sqlx::Error) -> StoreError {
    let kind = if error.as_database_error().is_some() { kind(&error) } else { ErrorKind::Unknown };
    StoreError::new(kind, format!("cannot {what}")).caused_by(error)
}

/// What is stored cannot be what was written: the file is damaged.
pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Fatal, format!("the store is damaged: {what}"))
}

pub(crate) fn kind(error: &sqlx::Error) -> ErrorKind {
    match extended_code(error) {
        Some(IOERR_NOMEM) => ErrorKind::Unavailable,
        Some(extended) => match extended & 0xff {
            code::FULL => ErrorKind::Full,
            code::IOERR | code::CORRUPT | code::NOTADB => ErrorKind::Fatal,
            code::TOOBIG | code::CONSTRAINT | code::MISMATCH => ErrorKind::Refused,
            code::BUSY | code::LOCKED | code::NOMEM => ErrorKind::Unavailable,
            _ => ErrorKind::Unavailable,
        },
        None => ErrorKind::Unavailable,
    }
}

pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    extended_code(error).is_some_and(|extended| matches!(extended & 0xff, code::BUSY | code::LOCKED))
}

pub(crate) fn is_full(error: &sqlx::Error) -> bool {
    extended_code(error).is_some_and(|extended| extended & 0xff == code::FULL)
}

pub(crate) fn is_damage(error: &sqlx::Error) -> bool {
    extended_code(error).is_some_and(|extended| matches!(extended & 0xff, code::CORRUPT | code::NOTADB))
}

fn extended_code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.code()?.parse().ok()
}
