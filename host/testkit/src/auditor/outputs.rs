//! What senders were given: stored with the result it came with, whatever that is.

use std::collections::BTreeMap;
use std::sync::Arc;

use portway_engine::Run;
use portway_model::{DestinationId, SavedBody, SavedOutput};
use portway_store::memory::MemoryStore;
use portway_store::{DeliveryResult, OutputBody, ResultOutcome, Store, WriteBatch, WriteOutcome};

use super::{Auditor, Verdict};
use crate::world::now;

/// Whether a destination keeps what its sender is given.
fn is_kept(destination: DestinationId) -> bool {
    destination.0.is_multiple_of(3)
}

/// What the sender of a run is given: its messages as they are, as a copy.
pub fn given(run: &Run) -> Vec<Option<Box<SavedOutput>>> {
    if !is_kept(run.destination) {
        return Vec::new();
    }
    let output = |body: &bytes::Bytes| SavedOutput {
        key: None,
        attributes: Arc::default(),
        body: SavedBody::Kept(body.clone()),
    };
    run.messages.iter().map(|message| Some(Box::new(output(&message.body)))).collect()
}

impl Auditor {
    /// A transaction is in the store: the output of each result that counts is, too.
    pub fn outputs_follow(&self, batch: &WriteBatch, outcome: &WriteOutcome, store: &MemoryStore) -> Verdict {
        let applied = batch.results.iter().zip(&outcome.results);
        let applied = applied.filter(|(_, outcome)| matches!(outcome, ResultOutcome::Applied(_)));
        // The newest of a delivery takes the place of those before it.
        let newest: BTreeMap<_, (&DeliveryResult, &SavedOutput)> = applied
            .filter_map(|(result, _)| {
                let output = result.output.as_deref()?;
                Some(((result.destination, result.message), (result, output)))
            })
            .collect();
        newest.into_iter().try_for_each(|((destination, message), (result, output))| {
            let outputs = now(store.list_outputs(message)).map_err(|error| error.to_string())?;
            let wanted = match &output.body {
                SavedBody::Same => OutputBody::Same,
                SavedBody::Kept(bytes) => OutputBody::Kept(bytes.len() as u64),
                SavedBody::TooLarge(size) => OutputBody::TooLarge(*size),
                SavedBody::NoRoom(size) => OutputBody::NoRoom(*size),
            };
            let is_there = outputs.iter().any(|view| {
                let at = (view.destination, view.round, view.attempt);
                at == (destination, result.round, result.attempts) && view.body == wanted
            });
            match is_there {
                true => Ok(()),
                false => Err(format!(
                    "the output of message {message} at destination {destination} is not stored with its result"
                )),
            }
        })
    }
}
