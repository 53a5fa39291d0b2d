//! What a use of a plugin keeps at its destination, in the engine's store.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::DestinationId;
use portway_runtime::{Grant, Opening, StateStore};
use portway_store::{ListStateKeys, Store};

/// One space of one destination.
struct UseState {
    store: Arc<dyn Store>,
    destination: DestinationId,
    space: Arc<str>,
}

/// Gives an opening the state that is stored for a destination, where it is granted one.
pub fn bind(opening: &mut Opening, store: &Arc<dyn Store>, destination: DestinationId) {
    for grant in opening.grants.0.values_mut() {
        if let Grant::State(state) = grant {
            let (store, space) = (store.clone(), state.space.clone());
            state.store = Arc::new(UseState { store, destination, space });
        }
    }
}

#[async_trait]
impl StateStore for UseState {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        let value = self.store.get_state(self.destination, &self.space, key).await;
        value.map_err(|error| error.to_string())
    }

    async fn keys(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, String> {
        let list = ListStateKeys {
            destination: self.destination,
            space: self.space.to_string(),
            prefix: prefix.to_owned(),
            after: after.map(str::to_owned),
            limit,
        };
        self.store.list_state_keys(&list).await.map_err(|error| error.to_string())
    }

    async fn count(&self, limit: u32) -> Result<u32, String> {
        let counted = self.store.count_state(self.destination, &self.space, limit).await;
        counted.map_err(|error| error.to_string())
    }
}
