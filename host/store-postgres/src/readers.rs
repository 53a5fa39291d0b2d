//! Sessions for reading, opened as they are needed and kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use portway_store::{ErrorKind, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::connect::Connector;
use crate::error::{Failed, closed};
use crate::query::Session;

/// A few sessions, used by one reader at a time each.
pub(crate) struct Readers {
    connector: Connector,
    idle: Mutex<Idle>,
    permits: Semaphore,
    wait_max: std::time::Duration,
}

#[derive(Default)]
struct Idle {
    sessions: Vec<Session>,
    /// How often all of them were let go of. One that was used meanwhile goes, too: perhaps with another server.
    forgotten: u64,
}

/// A session that is being used. It is kept only if it is handed back with [`Readers::keep`].
pub(crate) struct Reader<'a> {
    pub(crate) session: Session,
    /// It was used before, and the server may have gone since.
    pub(crate) is_used: bool,
    /// How often sessions had been let go of when it was taken.
    forgotten: u64,
    _permit: SemaphorePermit<'a>,
}

impl Readers {
    pub(crate) fn new(connector: Connector, count: usize, wait_max: std::time::Duration) -> Self {
        Readers { connector, idle: Mutex::default(), permits: Semaphore::new(count.max(1)), wait_max }
    }

    /// A session, as soon as one is free.
    pub(crate) async fn take(&self) -> Result<Reader<'_>, StoreError> {
        let busy = |_| StoreError::new(ErrorKind::Unavailable, "all connections for reading are busy");
        let permit = timeout(self.wait_max, self.permits.acquire()).await.map_err(busy)?;
        let permit = permit.map_err(|_| closed())?;
        let (idle, forgotten) = {
            let mut idle = self.idle();
            (idle.sessions.pop(), idle.forgotten)
        };
        let is_used = idle.is_some();
        let session = match idle {
            Some(session) => session,
            None => self.connector.connect().await?,
        };
        Ok(Reader { session, is_used, forgotten, _permit: permit })
    }

    /// Whether to read again after this failure: an old session broke, perhaps only because the server began
    /// anew since. None of the sessions from before is trusted then.
    pub(crate) fn read_again(&self, reader: Reader<'_>, failed: &Failed) -> bool {
        let again = reader.is_used && reader.session.is_broken && failed.breaks_connection();
        self.keep(reader);
        again
    }

    pub(crate) fn keep(&self, reader: Reader<'_>) {
        if reader.session.is_broken {
            self.forget();
        } else if !self.permits.is_closed() {
            let mut idle = self.idle();
            if idle.forgotten == reader.forgotten {
                idle.sessions.push(reader.session);
            }
        }
    }

    /// Lets go of the sessions that nobody uses.
    pub(crate) fn forget(&self) {
        let mut idle = self.idle();
        idle.sessions.clear();
        idle.forgotten += 1;
    }

    /// How often the sessions were let go of.
    pub(crate) fn forgotten(&self) -> u64 {
        self.idle().forgotten
    }

    /// Lets no more reader in.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.forget();
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a function that reads, once more on a new session if an old one was broken.
macro_rules! read {
    ($readers:expr, $function:path $(, $argument:expr)* $(,)?) => {{
        loop {
            let mut reader = $readers.take().await?;
            match $function(&mut reader.session $(, $argument)*).await {
                Ok(answer) => {
                    $readers.keep(reader);
                    break Ok(answer);
                }
                Err(failed) => {
                    if !$readers.read_again(reader, &failed) {
                        break Err(failed.told());
                    }
                }
            }
        }
    }};
}

pub(crate) use read;
