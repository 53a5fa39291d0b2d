//! What plugins keep, in the in-memory store.

use std::collections::BTreeMap;

use bytes::Bytes;
use portway_model::DestinationId;

use crate::{DeliveryResult, ListStateKeys};

/// Values by destination, space and key.
#[derive(Clone, Default)]
pub(super) struct PluginState {
    values: BTreeMap<(DestinationId, String), BTreeMap<String, Bytes>>,
}

impl PluginState {
    /// What was written for a delivery whose result counts.
    pub(super) fn keep(&mut self, result: &DeliveryResult) {
        for write in &result.state {
            let space = self.values.entry((result.destination, write.space.to_string())).or_default();
            match &write.value {
                Some(value) => space.insert(write.key.clone(), value.clone()),
                None => space.remove(&write.key),
            };
        }
    }

    pub(super) fn remove(&mut self, destination: DestinationId, space: &str, key: &str) {
        if let Some(values) = self.values.get_mut(&(destination, space.to_owned())) {
            values.remove(key);
        }
    }

    fn space(&self, destination: DestinationId, space: &str) -> Option<&BTreeMap<String, Bytes>> {
        self.values.get(&(destination, space.to_owned()))
    }

    pub(super) fn get(&self, destination: DestinationId, space: &str, key: &str) -> Option<Bytes> {
        self.space(destination, space)?.get(key).cloned()
    }

    pub(super) fn keys(&self, list: &ListStateKeys) -> Vec<String> {
        let space = self.space(list.destination, &list.space).into_iter().flatten().map(|(key, _)| key);
        let is_after = |key: &&String| list.after.as_ref().is_none_or(|after| *key > after);
        let fitting = space.filter(|key| key.starts_with(&list.prefix)).filter(is_after);
        fitting.take(list.limit as usize).cloned().collect()
    }

    pub(super) fn count(&self, destination: DestinationId, space: &str, limit: u32) -> u32 {
        let count = self.space(destination, space).map_or(0, BTreeMap::len);
        u32::try_from(count).unwrap_or(u32::MAX).min(limit)
    }
}
