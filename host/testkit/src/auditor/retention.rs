//! Old messages: nothing goes before its window, nothing that somebody still needs, and no more than an
//! operator agreed to.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_model::{
    DeliveryState, InterfaceId, MessageId, Quarantined, Retention, RetentionState, Timestamp,
};
use portway_store::memory::MemoryStore;
use portway_store::{RetentionView, Store};

use super::books::Shadow;
use super::{Auditor, Verdict};
use crate::world::now;

/// What was in force, and what operators agreed to.
#[derive(Debug, Default)]
pub struct RetentionBooks {
    in_force: BTreeMap<InterfaceId, Retention>,
    agreed: BTreeMap<InterfaceId, Retention>,
    /// How far the wall clock was ever ahead of time. One that is wrong by years does not count: it must
    /// not be believed.
    ahead: Duration,
}

impl RetentionBooks {
    /// As the first engine finds it.
    pub fn new(states: &[(InterfaceId, RetentionState)]) -> RetentionBooks {
        let in_force = states.iter().map(|(interface, state)| (*interface, state.in_force())).collect();
        RetentionBooks { in_force, ..RetentionBooks::default() }
    }
}

impl Auditor {
    /// The wall clock is ahead of time by so much.
    pub fn clock_is_ahead(&mut self, ahead: Duration) {
        self.retention.ahead = self.retention.ahead.max(ahead);
    }

    /// An operator is about to agree to what waits.
    pub fn agreeing(&mut self, interface: InterfaceId, store: &MemoryStore) -> Verdict {
        let views = views(store)?;
        let own = views.iter().find(|view| view.interface == interface);
        if let Some(waiting) = own.and_then(|view| view.state.unconfirmed()) {
            self.retention.agreed.insert(interface, waiting.to);
        }
        Ok(())
    }

    /// The store registered, confirmed or moved something.
    pub fn retained(&mut self, store: &MemoryStore) -> Verdict {
        for view in views(store)? {
            let (interface, retention) = (view.interface, view.state.in_force());
            let before = self.retention.in_force.insert(interface, retention);
            let removes_more = before.is_some_and(|before| retention.removes_more_than(before));
            if removes_more && self.retention.agreed.get(&interface) != Some(&retention) {
                return Err(format!("{retention} replaced {before:?}, and nobody agreed"));
            }
        }
        Ok(())
    }

    /// Messages may have been removed by a step at this time, which no clock can change.
    pub fn expired(&mut self, store: &MemoryStore, time: Timestamp) -> Verdict {
        let ids: Vec<MessageId> = self.messages.keys().copied().collect();
        for id in ids {
            let left = now(store.get_message(id)).map_err(|error| error.to_string())?;
            if left.is_some() {
                continue;
            }
            if let Some(shadow) = self.messages.get(&id) {
                self.may_go(id, shadow, time)?;
            }
            let shadow = self.forget(id);
            self.expired.extend(shadow.map(|shadow| (id, shadow)));
        }
        Ok(())
    }

    fn may_go(&self, id: MessageId, shadow: &Shadow, time: Timestamp) -> Verdict {
        let retention = self.retention.in_force.get(&shadow.interface).copied().unwrap_or_default();
        for (destination, duty) in &shadow.duties {
            let is_needed = match duty.state {
                DeliveryState::Pending => true,
                DeliveryState::Quarantined => retention.quarantined == Quarantined::Keep,
                DeliveryState::Sent | DeliveryState::Filtered | DeliveryState::Dismissed => false,
            };
            if is_needed {
                return Err(format!("message {id} went and is {} at {destination}", duty.state));
            }
        }
        if shadow.stored_at + retention.tier.window() > time + self.retention.ahead {
            return Err(format!(
                "message {id} of {} went at {time}, before its {retention}",
                shadow.stored_at
            ));
        }
        Ok(())
    }

    /// In the end every change is over, and every message is where its interface wants it.
    pub fn all_moved(&self, store: &MemoryStore) -> Verdict {
        for view in views(store)? {
            if let Some(change) = view.state.change {
                return Err(format!("the change of {} to {} does not end", view.name, change.to));
            }
            let ids = self.messages.iter().filter(|(_, shadow)| shadow.interface == view.interface);
            for (id, _) in ids {
                let tier = store.tier(*id);
                if tier.is_some_and(|tier| tier != view.state.applied.tier) {
                    return Err(format!("message {id} is in {tier:?}, its interface in {:?}", view.state));
                }
            }
        }
        Ok(())
    }
}

fn views(store: &MemoryStore) -> Result<Vec<RetentionView>, String> {
    now(store.list_retention(Timestamp(0))).map_err(|error| error.to_string())
}
