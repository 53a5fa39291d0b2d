//! What PostgreSQL's errors mean to the engine.

use std::io;

use portway_store::{ErrorKind, StoreError};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Why a statement did not do what it was for.
#[derive(Debug)]
pub(crate) struct Failed {
    what: &'static str,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Sql(sqlx::Error),
    /// No answer in the time there is for one.
    Slow,
    /// The connection died, or was given up, while it committed: the transaction may have happened.
    InCommit(Box<Cause>),
    /// The server is a standby, or accepts no writes for another reason.
    ReadOnly,
    /// Already in the words of the port.
    Told(StoreError),
}

/// What a server calls an attempt to write where nothing can be written.
const READ_ONLY: &str = "25006";

impl Failed {
    pub(crate) fn sql(what: &'static str, error: sqlx::Error) -> Self {
        Failed { what, cause: Cause::Sql(error) }
    }

    pub(crate) fn slow(what: &'static str) -> Self {
        Failed { what, cause: Cause::Slow }
    }

    pub(crate) fn read_only(what: &'static str) -> Self {
        Failed { what, cause: Cause::ReadOnly }
    }

    /// The same failure, of a COMMIT.
    pub(crate) fn in_commit(self) -> Self {
        let refused = match &self.cause {
            Cause::Sql(error) => database(error).is_some_and(is_refusal),
            Cause::Slow | Cause::InCommit(_) | Cause::ReadOnly | Cause::Told(_) => false,
        };
        if refused {
            return self;
        }
        Failed { what: self.what, cause: Cause::InCommit(Box::new(self.cause)) }
    }

    /// Whether the connection cannot be used again.
    pub(crate) fn breaks_connection(&self) -> bool {
        match &self.cause {
            Cause::Sql(error) => breaks(error),
            Cause::Slow | Cause::InCommit(_) | Cause::ReadOnly => true,
            Cause::Told(_) => false,
        }
    }

    /// Whether the same transaction may succeed when it is made again: others were in its way.
    pub(crate) fn is_contended(&self) -> bool {
        matches!(self.code(), Some("40001" | "40P01"))
    }

    /// Whether somebody else holds a lock that was not waited for any longer.
    pub(crate) fn is_locked_out(&self) -> bool {
        self.code() == Some("55P03")
    }

    /// Whether nothing can be written there.
    pub(crate) fn is_read_only(&self) -> bool {
        self.code() == Some(READ_ONLY)
    }

    /// Whether a table is not there, or not any more.
    pub(crate) fn lacks_table(&self) -> bool {
        self.code() == Some("42P01")
    }

    /// Whether there is no partition for a row.
    pub(crate) fn lacks_partition(&self) -> bool {
        let Cause::Sql(error) = &self.cause else { return false };
        // A check constraint has a name; the bounds of partitions have none.
        database(error).is_some_and(|error| error.code() == "23514" && error.constraint().is_none())
    }

    fn code(&self) -> Option<&str> {
        match &self.cause {
            Cause::Sql(error) => database(error).map(PgDatabaseError::code),
            Cause::ReadOnly => Some(READ_ONLY),
            Cause::Slow | Cause::InCommit(_) | Cause::Told(_) => None,
        }
    }

    /// What the server calls the error, if it said something.
    pub(crate) fn server_code(&self) -> Option<String> {
        self.code().map(str::to_owned)
    }

    /// What the server said.
    pub(crate) fn server_text(&self) -> String {
        let Cause::Sql(error) = &self.cause else { return String::new() };
        database(error).map(|error| error.message().to_owned()).unwrap_or_default()
    }

    /// An error of TLS by itself, so that it can be told apart.
    pub(crate) fn into_tls(self) -> Result<sqlx::Error, Failed> {
        match self.cause {
            Cause::Sql(error @ sqlx::Error::Tls(_)) => Ok(error),
            // What a certificate lacks, told while shaking hands.
            Cause::Sql(sqlx::Error::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Ok(sqlx::Error::Tls(error.into()))
            }
            cause => Err(Failed { what: self.what, cause }),
        }
    }

    pub(crate) fn told(self) -> StoreError {
        let text = format!("cannot {}", self.what);
        match self.cause {
            Cause::Sql(error) => StoreError::new(kind(&error), text).caused_by(error),
            Cause::Slow => StoreError::new(ErrorKind::Unavailable, format!("{text}: the database is slow")),
            Cause::InCommit(cause) => {
                let unknown = StoreError::new(ErrorKind::Unknown, text);
                match *cause {
                    Cause::Sql(error) => unknown.caused_by(error),
                    Cause::Slow | Cause::InCommit(_) | Cause::ReadOnly | Cause::Told(_) => unknown,
                }
            }
            Cause::ReadOnly => {
                let text = format!("{text}: the server is a standby, or accepts no writes");
                StoreError::new(ErrorKind::Unavailable, text)
            }
            Cause::Told(error) => error,
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Failed { what: "", cause: Cause::Told(error) }
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        failed.told()
    }
}

/// What is stored cannot be what was written: the database is damaged.
pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Fatal, format!("the store is damaged: {what}"))
}

pub(crate) fn closed() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "the store is closed")
}

/// What the server said, if it said something.
pub(crate) fn database(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()
}

/// An error after which the server goes on with the session: the transaction is rolled back.
fn is_refusal(error: &PgDatabaseError) -> bool {
    error.severity() == PgSeverity::Error && !error.code().starts_with("08")
}

/// Whether a connection cannot be used after this error.
pub(crate) fn breaks(error: &sqlx::Error) -> bool {
    match database(error) {
        // A server that became a standby refuses to write; another one may take its place.
        Some(error) => !is_refusal(error) || error.code() == READ_ONLY,
        None => !matches!(
            error,
            sqlx::Error::ColumnDecode { .. }
                | sqlx::Error::Encode(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::RowNotFound
        ),
    }
}

/// Of a statement that is not COMMIT: nothing was stored.
fn kind(error: &sqlx::Error) -> ErrorKind {
    let Some(error) = database(error) else {
        return match error {
            sqlx::Error::Encode(_) => ErrorKind::Refused,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => ErrorKind::Fatal,
            _ => ErrorKind::Unavailable,
        };
    };
    match error.code() {
        // Too many of anything, or no memory, passes; a full disk is told by its own kind.
        "53100" => ErrorKind::Full,
        "XX001" | "XX002" => ErrorKind::Fatal,
        code => match code.get(..2) {
            // A value, a constraint, a limit of the server: one row is not acceptable.
            Some("22" | "23" | "54") => ErrorKind::Refused,
            // Gone, going, starting, busy, a standby, without rights, and what nobody thought of.
            Some(_) | None => ErrorKind::Unavailable,
        },
    }
}
