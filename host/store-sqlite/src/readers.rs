//! Connections for reading, opened as they are needed and kept.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use portway_store::{ErrorKind, StoreError};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::failed;
use crate::open::reader_options;

/// A query with its values.
pub(crate) type ReadQuery<'q> = Query<'q, Sqlite, SqliteArguments>;

/// A few connections, used by one reader at a time each.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<SqliteConnection>>,
    permits: Semaphore,
}

/// A connection to read with; goes back when it is dropped.
pub(crate) struct Reader<'a> {
    connection: Option<SqliteConnection>,
    readers: &'a Readers,
    _permit: SemaphorePermit<'a>,
}

impl Readers {
    pub(crate) fn new(path: &Path, count: usize) -> Self {
        Readers { path: path.to_path_buf(), idle: Mutex::default(), permits: Semaphore::new(count.max(1)) }
    }

    pub(crate) async fn get(&self) -> Result<Reader<'_>, StoreError> {
        let closed = |_| StoreError::new(ErrorKind::Unavailable, "the store is closed");
        let permit = self.permits.acquire().await.map_err(closed)?;
        let idle = self.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let opened = reader_options(&self.path).connect().await;
                opened.map_err(|error| failed("open a connection for reading", error))?
            }
        };
        Ok(Reader { connection: Some(connection), readers: self, _permit: permit })
    }

    /// Waits for the readers there are, and lets no more in.
    pub(crate) async fn close(&self, count: usize) {
        let all = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        // Fails only if it was closed before.
        let waited = self.permits.acquire_many(all).await.is_ok();
        self.permits.close();
        if waited {
            let idle = std::mem::take(&mut *self.lock());
            for connection in idle {
                // Nothing was written on it.
                let _ = connection.close().await;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader<'_> {
    /// Runs one query. Each is a transaction of its own, so that no reader keeps the log from being
    /// moved into the main file.
    pub(crate) async fn rows(
        &mut self,
        what: &str,
        query: ReadQuery<'_>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(StoreError::new(ErrorKind::Unavailable, "the connection is closed"));
        };
        let rows = query.fetch_all(connection).await;
        rows.map_err(|error| {
            if error.as_database_error().is_none() {
                // Its thread is gone: the next reader opens another.
                self.connection = None;
            }
            failed(what, error)
        })
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.readers.lock().push(connection);
        }
    }
}
