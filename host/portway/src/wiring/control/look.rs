//! A look at the store for the picture of the engine: what it was seen to hold is shown, with its time, while it is
//! away. That is when an operator looks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portway_admin::views::{self, Time};
use portway_engine::Status;
use portway_engine::ports::Clock as _;
use portway_model::{DestinationId, code};
use portway_store::{EngineView, QueueView, StoreError};

use super::super::clock::SystemClock;
use super::{EngineControl, chain};

/// A store that takes longer is away for this look: it counts a long queue, and whoever collects `/metrics` gives up
/// after ten seconds, as a rule.
const LOOK_MAX: Duration = Duration::from_secs(8);

/// What a look showed.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) queues: HashMap<DestinationId, QueueView>,
    pub(super) engines: Vec<EngineView>,
}

/// The last look that showed something, and when that was.
#[derive(Default)]
pub(super) struct LastLook(Mutex<Option<(Time, Arc<Seen>)>>);

impl EngineControl {
    /// What the store holds, or held, and whether it is away.
    pub(super) async fn look(&self, engine: &mut Status) -> (Arc<Seen>, Option<views::StoreAway>) {
        let why = match tokio::time::timeout(LOOK_MAX, self.read(engine)).await {
            Ok(Ok(seen)) => {
                let seen = Arc::new(seen);
                *self.last_look() = Some((Time(SystemClock::new().now()), Arc::clone(&seen)));
                return (seen, None);
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => "it does not answer".to_owned(),
        };
        let (read_at, seen) = self.last_look().clone().unzip();
        let why = views::Reason { code: code::STORE.to_owned(), text: why };
        (seen.unwrap_or_default(), Some(views::StoreAway { why, read_at }))
    }

    async fn read(&self, engine: &mut Status) -> Result<Seen, StoreError> {
        self.tell_held(engine).await?;
        let queues = self.store.list_queues().await?;
        let engines = self.store.list_engines().await?;
        Ok(Seen { queues: queues.into_iter().map(|queue| (queue.destination, queue)).collect(), engines })
    }

    fn last_look(&self) -> MutexGuard<'_, Option<(Time, Arc<Seen>)>> {
        self.last_look.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
