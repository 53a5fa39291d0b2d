//! What plugins keep: never ahead of the outcomes it came with, and never behind them.
//!
//! At some destinations each delivery that is tried writes a key of its own, whatever becomes of it.
//! So a key is there if and only if its delivery was sent or filtered; and what is handed over next
//! in a lane finds the keys of all that was before it.

use std::collections::BTreeMap;

use portway_engine::{MessageState, Run};
use portway_model::{DeliveryState, DestinationId, MessageId, Round, StateWrite};
use portway_store::memory::MemoryStore;
use portway_store::{DeliveryResult, DeliveryView, ResultOutcome, Store, WriteBatch, WriteOutcome};

use super::{Auditor, Verdict};
use crate::world::now;

const SPACE: &str = "plugin";

/// Whether a destination's plugin keeps state.
fn keeps_state(destination: DestinationId) -> bool {
    destination.0.is_multiple_of(2)
}

fn key(message: MessageId) -> String {
    format!("m/{message}")
}

/// What the plugin of a run writes for each of its messages.
pub fn written(run: &Run) -> Vec<MessageState> {
    if !keeps_state(run.destination) {
        return Vec::new();
    }
    let all = (0..).zip(&run.messages);
    let write = |id| StateWrite { space: SPACE.into(), key: key(id), value: Some("kept".into()) };
    all.map(|(index, envelope)| MessageState { index, writes: vec![write(envelope.id)] }).collect()
}

impl Auditor {
    /// A transaction is in the store: what came with each result is, too, or is not.
    pub fn state_follows(&self, batch: &WriteBatch, outcome: &WriteOutcome, store: &MemoryStore) -> Verdict {
        let applied = batch.results.iter().zip(&outcome.results);
        let applied = applied.filter(|(_, outcome)| matches!(outcome, ResultOutcome::Applied(_)));
        // Of several results of one delivery the last one tells how it stands now.
        let last: BTreeMap<_, &DeliveryResult> =
            applied.map(|(result, _)| ((result.destination, result.message), result)).collect();
        last.into_iter().try_for_each(|((destination, message), result)| {
            let DeliveryResult { round, settled, attempted, .. } = result;
            let standing = (settled.state(), *round, attempted.is_some());
            self.state_is(destination, message, standing, store)
        })
    }

    /// After the end of a process or a machine.
    pub(super) fn state_is_left(&self, id: MessageId, view: &DeliveryView, store: &MemoryStore) -> Verdict {
        self.state_is(view.destination, id, (view.state, view.round, false), store)
    }

    fn state_is(
        &self,
        destination: DestinationId,
        message: MessageId,
        (state, round, was_tried): (DeliveryState, Round, bool),
        store: &MemoryStore,
    ) -> Verdict {
        if !keeps_state(destination) {
            return Ok(());
        }
        let kept =
            now(store.get_state(destination, SPACE, &key(message))).map_err(|error| error.to_string())?;
        let drops = self.own.ledgers.get(&destination).is_some_and(super::books::Ledger::drops);
        let wanted = match state {
            DeliveryState::Sent => Some(true),
            // What was dropped was never tried.
            DeliveryState::Filtered if was_tried || !drops => Some(true),
            DeliveryState::Filtered => None,
            // An earlier round may have kept it.
            DeliveryState::Pending | DeliveryState::Quarantined | DeliveryState::Dismissed => {
                (round == Round(0)).then_some(false)
            }
        };
        match wanted {
            Some(wanted) if wanted != kept.is_some() => Err(format!(
                "message {message} is {state} at destination {destination}, its state is kept: {}",
                kept.is_some()
            )),
            _ => Ok(()),
        }
    }

    /// What an ordered run builds on is stored before it is handed over.
    pub(super) fn state_is_readable(&self, run: &Run) -> Verdict {
        let Some(first) = run.messages.first().filter(|_| run.ordered && keeps_state(run.destination)) else {
            return Ok(());
        };
        let duty_of = |id: &MessageId| self.messages.get(id)?.duties.get(&run.destination);
        let Some(lane) = duty_of(&first.id).map(|duty| duty.lane) else { return Ok(()) };
        for (earlier, shadow) in self.messages.range(..first.id) {
            let Some(duty) = shadow.duties.get(&run.destination).filter(|duty| duty.lane == lane) else {
                continue;
            };
            let is_unsettled = duty.is_over && duty.state == DeliveryState::Pending;
            let is_clear = !duty.is_uncertain();
            let keeps = duty.said.sent || duty.said.filtered;
            if is_unsettled && is_clear && keeps && !duty.said.quarantined {
                return Err(format!(
                    "message {} is handed to destination {} before the state of {earlier} is stored",
                    first.id, run.destination
                ));
            }
        }
        Ok(())
    }
}
