//! The messages of one call, and what is known of the call while it goes on.
//!
//! What is asked of a plugin is in the file of its kind.

use std::sync::Arc;
use std::time::Duration;

use portway_bindings::portway::plugin::types as wit;
use portway_model::Envelope;
use tokio::time::Instant as Moment;

use crate::convert::{BATCH_INLINE_BYTES_MAX, body_within, millis_until};
use crate::cost::{Marks, MessageCost};
use crate::fault::{Call, CallError};
use crate::guest::Guest;
use crate::instance::{Instance, Use};
use crate::pool::{Lease, Pool};
use crate::state::{Sight, Space, StateLog};
use crate::things::Things;

/// Messages of a batch.
pub const MESSAGES_MAX: usize = 256;

/// Messages that are transformed or sent together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Names the store: store and id together name a message in the world.
    pub store: String,
    /// One lane, in order.
    pub ordered: bool,
    /// For the whole call; the opening's own limit counts where it is less.
    pub timeout: Duration,
    /// At most [`MESSAGES_MAX`].
    pub messages: Vec<Envelope>,
    /// None: nothing is measured.
    pub watch: Option<Watch>,
}

/// Somebody wants to know what each message of a batch costs.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// The `traceparent` that requests of each message are sent with; empty: none is.
    pub parents: Vec<Option<String>>,
}

/// What is known of a call while it goes on.
#[derive(Default)]
pub(crate) struct Trace {
    pub begun: Option<u32>,
    pub sent: Vec<u32>,
    pub unsure: Vec<u32>,
    /// The guest did something in the world that a peer may see.
    pub reached: bool,
    pub fuel: u64,
    /// What the messages keep, over all calls that the batch needed.
    state: StateLog,
    space: Option<Arc<Space>>,
    /// One a message, where somebody watches.
    costs: Vec<Option<MessageCost>>,
}

/// A plugin opened for one destination.
pub(crate) struct Opened {
    pub pool: Arc<Pool>,
    pub user: Use,
}

impl Batch {
    /// Ids for `begin`.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.messages.iter().map(|message| message.id.0)
    }

    /// As the guest sees it; large bodies become blobs of this call.
    pub(crate) fn to_wit(&self, guest: &mut Guest, deadline: Moment) -> wit::Batch {
        let mut inline_left = BATCH_INLINE_BYTES_MAX;
        if !guest.reach.http.is_empty() {
            // For requests that carry the body of a message.
            guest.call.bodies.extend(self.messages.iter().map(|message| message.body.clone()));
        }
        let messages =
            self.messages.iter().map(|envelope| message(&mut guest.things, envelope, &mut inline_left));
        wit::Batch {
            store: self.store.clone(),
            ordered: self.ordered,
            time_left_ms: millis_until(deadline),
            messages: messages.collect(),
        }
    }
}

fn message(things: &mut Things, envelope: &Envelope, inline_left: &mut usize) -> wit::Message {
    let body = body_within(things, &envelope.body, inline_left);
    wit::Message {
        id: envelope.id.0,
        received_ms: envelope.received_at.0,
        attempt: u16::try_from(envelope.attempt.0).unwrap_or(u16::MAX),
        key: envelope.key.as_ref().map(|key| key.as_str().to_owned()),
        attributes: envelope.attributes.pairs().to_vec(),
        body,
    }
}

impl Trace {
    /// A call begins: it goes on with what the messages keep so far. `indexes` are their places in the
    /// batch, where they are others than in the call.
    pub fn lend(&mut self, instance: &mut Instance, batch: &Batch, indexes: &[u32]) {
        let guest = instance.store.data_mut();
        if batch.watch.is_some() {
            self.costs.resize(batch.messages.len(), None);
            let messages = if indexes.is_empty() { batch.messages.len() } else { indexes.len() };
            guest.call.marks = Some(Marks::new(messages, indexes));
        }
        if guest.reach.state.is_none() {
            return;
        }
        self.space = guest.reach.state.clone();
        guest.call.state = std::mem::take(&mut self.state);
        guest.call.sight = if batch.ordered { Sight::Ordered } else { Sight::Alone };
        guest.call.state_indexes.extend(indexes);
    }

    /// What the store knows once a call has ended, well or not.
    pub fn note(&mut self, instance: &mut Instance) {
        if self.space.is_some() {
            self.state = std::mem::take(&mut instance.store.data_mut().call.state);
        }
        let guest = instance.store.data();
        let call = &guest.call;
        self.begun = call.begun;
        self.reached |= guest.has_reached();
        for index in &call.sent {
            self.arrived(*index);
        }
        let fuel = instance.fuel();
        self.fuel += fuel;
        if let Some(marks) = instance.store.data_mut().call.marks.take() {
            marks.settle(fuel, &mut self.costs);
        }
    }

    /// A message is known to have arrived.
    pub fn arrived(&mut self, index: u32) {
        if !self.sent.contains(&index) {
            self.sent.push(index);
        }
    }

    /// The call as its caller sees it.
    pub fn into_call<T>(mut self, result: Result<T, CallError>) -> Call<T> {
        self.sent.sort_unstable();
        if let Err(CallError::Fault(fault)) = &result {
            self.fuel = self.fuel.max(fault.fuel);
            self.begun = fault.begun;
        }
        let state = match &self.space {
            Some(space) if !self.state.is_empty() => self.state.into_written(&space.grant.space),
            _ => Vec::new(),
        };
        let Trace { begun, sent, unsure, fuel, costs, .. } = self;
        Call { result, begun, sent, unsure, fuel, state, costs }
    }
}

impl Opened {
    /// When a call that may take so long must be over.
    pub fn deadline(&self, timeout: Duration) -> Moment {
        Moment::now() + timeout.min(self.user.opening.limits.call_timeout)
    }

    pub async fn lease(&self, deadline: Moment) -> Result<Lease, CallError> {
        self.pool.lease(&self.user, deadline).await
    }

    /// A sound instance goes back, whatever the plugin said.
    pub fn release<T>(&self, lease: Lease, result: Result<T, CallError>) -> Result<T, CallError> {
        match &result {
            Err(CallError::Fault(_)) => drop(lease),
            Ok(_) | Err(CallError::Trouble(_) | CallError::Open(_) | CallError::Busy) => {
                lease.give_back(self.user.opening.isolation);
            }
        }
        result
    }

    /// Opens it in an instance, to see whether it takes its settings.
    pub async fn check(&self) -> Result<(), CallError> {
        let deadline = self.deadline(Duration::MAX);
        let mut lease = self.lease(deadline).await?;
        let opened = lease.instance.resource(&self.user, deadline).await;
        self.release(lease, opened.map(|_| ()))
    }
}
