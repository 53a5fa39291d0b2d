//! Destinations that are gone from a project, until nothing of them is in hand; and what becomes of
//! the deliveries that wait for them.

use std::sync::Arc;

use portway_engine::{ActError, EngineHandle, Settling};
use portway_model::{DestinationId, Lane, MessageId, Timestamp};
use portway_store::{Action, ActionKind, ActionOutcome, Pending, Store, StoreError};

use super::deliver::Destination;
use super::destinations::Destinations;
use super::running::Running;

/// Deliveries that are dismissed together.
const TOGETHER: u32 = 256;
/// The latest time a store knows.
const LATEST: Timestamp = Timestamp(i64::MAX.cast_unsigned());

/// See the file.
pub struct Leaving {
    engine: EngineHandle,
    store: Arc<dyn Store>,
    destinations: Arc<Destinations>,
    settling: Settling,
    gone: Vec<(DestinationId, Arc<Destination>)>,
}

/// Why what waits could not be dismissed.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    #[error(transparent)]
    Act(#[from] ActError),
    #[error("what waits cannot be read")]
    Store(#[from] StoreError),
}

impl Leaving {
    pub(super) fn new(running: &Running, settling: Settling, gone: Vec<DestinationId>) -> Leaving {
        let destinations = running.live.destinations.clone();
        let gone = gone.into_iter().filter_map(|id| Some((id, destinations.get(id)?))).collect();
        Leaving { engine: running.engine.clone(), store: running.store.clone(), destinations, settling, gone }
    }

    /// Waits until nothing of them is in hand; then dismisses what waits for these, if they did not
    /// come back meanwhile. Returns how many deliveries were dismissed.
    pub async fn finish(self, dismissed: &[DestinationId], author: &str) -> Result<u64, LeaveError> {
        let Leaving { engine, store, destinations, settling, gone } = self;
        settling.settled().await?;
        let mut count = 0;
        for (id, was) in &gone {
            let is_gone = destinations.remove(*id, was);
            if is_gone && dismissed.contains(id) {
                count += dismiss(*id, &engine, &*store, author).await?;
            }
        }
        Ok(count)
    }
}

async fn dismiss(
    id: DestinationId,
    engine: &EngineHandle,
    store: &dyn Store,
    author: &str,
) -> Result<u64, LeaveError> {
    let mut count = 0;
    loop {
        let waiting = waiting(id, store).await?;
        if waiting.is_empty() {
            return Ok(count);
        }
        let actions = waiting.into_iter().map(|message| Action {
            message,
            destination: Some(id),
            kind: ActionKind::Dismiss,
            author: author.to_owned(),
            reason: "its destination was removed from the project".to_owned(),
            request: None,
        });
        let before = count;
        for outcome in engine.act_all(actions.collect()).await {
            let is_done = matches!(outcome?, ActionOutcome::Done(changed) if !changed.is_empty());
            count += u64::from(is_done);
        }
        if count == before {
            // What cannot be dismissed would be found again without end.
            return Ok(count);
        }
    }
}

/// Some of the deliveries that wait for a destination.
async fn waiting(id: DestinationId, store: &dyn Store) -> Result<Vec<MessageId>, StoreError> {
    let first = MessageId::ZERO;
    let mut found: Vec<Pending> = store.read_lane(id, Lane::APART, first, TOGETHER).await?;
    if found.is_empty() {
        found = store.read_due(id, LATEST, TOGETHER).await?;
    }
    if found.is_empty() {
        for head in store.lane_heads(id).await? {
            found.extend(store.read_lane(id, head.lane, first, TOGETHER).await?);
            if found.len() >= TOGETHER as usize {
                break;
            }
        }
    }
    Ok(found.into_iter().map(|pending| pending.message).collect())
}
