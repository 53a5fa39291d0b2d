//! Connections for reading, opened as they are needed and kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portway_store::{ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{closed, failed};
use crate::open;

/// A few connections, used by one reader at a time each.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    count: u32,
}

impl Readers {
    pub(crate) fn new(path: &Path, count: usize) -> Arc<Self> {
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        Arc::new(Readers {
            path: path.to_path_buf(),
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(count as usize)),
            count,
        })
    }

    /// Runs a job that reads, on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let readers = Arc::clone(self);
        let read = move || {
            let connection = readers.take()?;
            // A connection whose job panics is not used again.
            let answer = job(&connection);
            readers.idle().push(connection);
            drop(permit);
            answer
        };
        let panicked =
            |error| StoreError::new(ErrorKind::Unavailable, "cannot read the store").caused_by(error);
        tokio::task::spawn_blocking(read).await.map_err(panicked)?
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.idle().pop();
        match idle {
            Some(connection) => Ok(connection),
            None => open::reader(&self.path).map_err(|error| failed("open a connection for reading", error)),
        }
    }

    /// Waits for the readers there are, and lets no more in; answers their connections.
    pub(crate) async fn close(&self) -> Vec<Connection> {
        // Fails only if it was closed before.
        let _all = self.permits.acquire_many(self.count).await;
        self.permits.close();
        std::mem::take(&mut *self.idle())
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
