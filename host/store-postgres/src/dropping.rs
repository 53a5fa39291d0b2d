//! A period whose partitions are being removed: beside whoever writes, and beside the step that asked for it.
//!
//! Detaching waits for who reads, and dropping takes as long as the files are large. The engine stores nothing
//! while a step of housekeeping is in hand; so a removal goes on by itself, and later steps hear of it.

use std::sync::Arc;
use std::time::Duration;

use portway_store::{ErrorKind, StoreError};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::readers::read;
use crate::removal::Work;
use crate::sealed::{self, Sealed};
use crate::writer::Shared;

/// How long a step waits for a removal: most are over by then.
const MOMENT: Duration = Duration::from_millis(20);

/// The one that is in hand. It is given up when this is dropped, and ended by whoever tries it next.
pub(crate) struct Dropping {
    pub(crate) work: Work,
    task: JoinSet<Result<bool, StoreError>>,
}

impl Dropping {
    pub(crate) fn begin(shared: &Arc<Shared>, work: Work) -> Dropping {
        let mut task = JoinSet::new();
        task.spawn(remove(Arc::clone(shared), work.sealed));
        Dropping { work, task }
    }

    /// What came of it, if it ends within a moment.
    pub(crate) async fn ended(&mut self) -> Option<Result<bool, StoreError>> {
        let ended = timeout(MOMENT, self.task.join_next()).await.ok()?;
        let given_up = || StoreError::new(ErrorKind::Unavailable, "the removal of a period was given up");
        Some(ended.and_then(Result::ok).unwrap_or_else(|| Err(given_up())))
    }
}

async fn remove(shared: Arc<Shared>, sealed: Sealed) -> Result<bool, StoreError> {
    read!(shared.readers, sealed::remove, sealed)
}
