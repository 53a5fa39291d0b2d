//! What this engine knows of its tenure, until the module of ownership takes its place.

use std::sync::{PoisonError, RwLock};

use portway_model::{Epoch, GroupId};
use portway_store::News;

/// What is told to the engine.
#[derive(Default)]
pub(crate) struct Told {
    epoch: RwLock<Option<Epoch>>,
}

impl Told {
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        *self.epoch.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        *self.epoch.write().unwrap_or_else(PoisonError::into_inner) = Some(epoch);
    }

    /// Nothing comes from others yet.
    pub(crate) async fn next(&self) -> News {
        std::future::pending().await
    }

    pub(crate) fn tell(&self, strangers: &[(GroupId, i64)]) -> Vec<GroupId> {
        strangers.iter().map(|(group, _)| *group).collect()
    }
}
