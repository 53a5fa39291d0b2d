//! Claiming groups, until the module of ownership takes its place.

use std::sync::Arc;
use std::time::Duration;

use portway_model::{GroupId, Timestamp};
use portway_store::{Claimed, StoreError, Tenure};

use crate::number::stored;
use crate::writer::Shared;
use crate::{destination, owner};

pub(crate) struct Tenures {
    shared: Arc<Shared>,
    engine: String,
}

impl Tenures {
    pub(crate) fn new(shared: Arc<Shared>, engine: &str, _takeover_max: Duration) -> Self {
        Tenures { shared, engine: engine.to_owned() }
    }

    pub(crate) fn engine(&self) -> &str {
        &self.engine
    }

    pub(crate) async fn claim(&self, groups: &[GroupId], now: Timestamp) -> Result<Claimed, StoreError> {
        let mut session = self.shared.connector.connect().await?;
        let (epoch, unclean) = owner::take(&mut session, &self.engine, groups, stored(now.0)).await?;
        let pauses = destination::pauses(&mut session).await?;
        session.close().await;
        self.shared.told.set_epoch(epoch);
        Ok(Claimed::Owned(Tenure { epoch, unclean, overlaps: false, pauses }))
    }

    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let mut session = self.shared.connector.connect().await?;
        owner::release(&mut session, &self.engine).await?;
        session.close().await;
        Ok(())
    }
}
