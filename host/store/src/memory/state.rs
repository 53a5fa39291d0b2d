//! What is stored, and what writes do to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use portway_model::{
    AttemptNo, Attributes, DeliveryState, DestinationId, GroupId, InterfaceId, Key, Lane, MessageId,
    MessageStatus, Round, SavedOutput, Term, Tier, Timestamp,
};

use super::EngineNo;
use super::ownership::Ownership;
use super::plugin_state::PluginState;
use super::retention::Retentions;
use crate::{
    Action, ActionKind, ActionOutcome, ActionView, AttemptView, DeliveryResult, DestinationActionView,
    Edited, MessageOutcome, NewMessage, Numbers, Origin, OriginKind, ResultOutcome, Settled, StoreError,
    Suspect, Topology, WriteBatch, WriteOutcome,
};

/// Everything a store holds.
#[derive(Clone, Default)]
pub(super) struct State {
    interfaces: BTreeMap<String, InterfaceId>,
    destinations: BTreeMap<(InterfaceId, String), DestinationId>,
    numbers: Numbers,
    pub(super) messages: BTreeMap<MessageId, Message>,
    pub(super) deliveries: BTreeMap<(MessageId, DestinationId), Delivery>,
    /// Pending and quarantined deliveries, in the order they are read.
    pub(super) queue: BTreeSet<(DestinationId, Lane, MessageId)>,
    pub(super) held: BTreeSet<(DestinationId, Lane, MessageId)>,
    pub(super) attempts: BTreeMap<(MessageId, DestinationId, Round, AttemptNo), AttemptView>,
    pub(super) outputs: BTreeMap<(MessageId, DestinationId), Saved>,
    pub(super) actions: BTreeMap<MessageId, Vec<ActionView>>,
    dedupe: BTreeMap<(InterfaceId, Key), Remembered>,
    pub(super) cursors: BTreeMap<InterfaceId, Bytes>,
    pub(super) plugin_state: PluginState,
    pub(super) retentions: Retentions,
    pub(super) suspects: BTreeMap<(MessageId, DestinationId), u32>,
    requests: BTreeSet<(MessageId, String, Option<DestinationId>)>,
    pub(super) destination_actions: BTreeMap<DestinationId, Vec<DestinationActionView>>,
    /// The highest number that was given.
    last_id: MessageId,
    /// The next one of the write in hand.
    next_id: MessageId,
    /// The mark and the outcome of the newest write of each engine.
    pub(super) last_writes: BTreeMap<EngineNo, (u64, WriteOutcome)>,
    pub(super) ownership: Ownership,
}

#[derive(Clone)]
pub(super) struct Message {
    pub(super) interface: InterfaceId,
    pub(super) group: GroupId,
    pub(super) status: MessageStatus,
    pub(super) tier: Tier,
    pub(super) received_at: Timestamp,
    pub(super) stored_at: Timestamp,
    pub(super) occurred_at: Option<Timestamp>,
    pub(super) key: Option<Key>,
    pub(super) dedupe: Option<Key>,
    pub(super) attributes: Arc<Attributes>,
    pub(super) body_bytes: u64,
    /// None: a duplicate.
    pub(super) body: Option<Bytes>,
    pub(super) origin: Option<Origin>,
    pub(super) terms: Vec<Term>,
}

#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) lane: Lane,
    pub(super) state: DeliveryState,
    pub(super) round: Round,
    pub(super) attempts: AttemptNo,
    pub(super) due_at: Option<Timestamp>,
    pub(super) changed_at: Timestamp,
    pub(super) reason: Option<String>,
}

/// What a dedupe key stands for.
#[derive(Clone)]
struct Remembered {
    body: Bytes,
    message: MessageId,
    expires_at: Timestamp,
}

impl State {
    pub(super) fn register(&mut self, topology: &Topology) -> Vec<(InterfaceId, Vec<DestinationId>)> {
        let mut registered = Vec::new();
        for registration in &topology.interfaces {
            let next =
                InterfaceId(u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX).saturating_add(1));
            let interface = *self.interfaces.entry(registration.name.clone()).or_insert(next);
            let mut destinations = Vec::new();
            for name in &registration.destinations {
                let next = DestinationId(
                    u32::try_from(self.destinations.len()).unwrap_or(u32::MAX).saturating_add(1),
                );
                destinations.push(*self.destinations.entry((interface, name.clone())).or_insert(next));
            }
            self.numbers.insert(interface, destinations.iter().copied());
            self.retentions.want(interface, registration.retention, topology.now);
            registered.push((interface, destinations));
        }
        registered
    }

    pub(super) fn last_id(&self) -> MessageId {
        self.last_id
    }

    /// Numbers up to this one are not given any more.
    pub(super) fn skip_to(&mut self, id: MessageId) {
        self.last_id = self.last_id.max(id);
    }

    /// Gives so many numbers; the first of them.
    pub(super) fn draw(&mut self, count: usize) -> MessageId {
        let first = MessageId(self.last_id.0 + 1);
        self.last_id = MessageId(self.last_id.0 + count as u64);
        first
    }

    /// Its messages have the numbers from `first` on.
    pub(super) fn write(
        &mut self,
        engine: EngineNo,
        batch: &WriteBatch,
        first: MessageId,
    ) -> Result<WriteOutcome, StoreError> {
        self.numbers.check(batch)?;
        self.next_id = first;
        let elsewhere = self.ownership.take_elsewhere(engine);
        let messages = batch.messages.iter().map(|message| self.store_message(message, batch.now)).collect();
        let cursors = batch.cursors.iter().map(|new| (new.interface, new.cursor.clone()));
        self.cursors.extend(cursors);
        let outcome = WriteOutcome {
            messages,
            results: batch.results.iter().map(|result| self.settle(result, batch.now)).collect(),
            actions: batch.actions.iter().map(|action| self.act(action, batch.now)).collect(),
            suspects: batch.suspects.iter().map(|suspect| self.suspect(suspect)).collect(),
            elsewhere,
        };
        self.ownership.stored(engine, batch.new_messages().map(|message| message.group));
        // What an operator did through an engine that lost its groups, and does not know it yet.
        let acted = batch.actions.iter().filter_map(|action| self.messages.get(&action.message));
        self.ownership.stored(engine, acted.map(|message| message.group));
        batch.destination_actions.iter().for_each(|action| self.act_on_destination(action, batch.now));
        self.last_writes.insert(engine, (batch.mark, outcome.clone()));
        Ok(outcome)
    }

    fn store_message(&mut self, new: &NewMessage, now: Timestamp) -> MessageOutcome {
        let id = self.next_id;
        self.next_id = MessageId(id.0 + 1);
        self.skip_to(id);
        let seen = self.look_up_dedupe(new, id, now);
        let (body, origin, outcome) = match seen {
            Seen::Before(of) => {
                let origin = Some(Origin { message: of, kind: OriginKind::Duplicate });
                (None, origin, MessageOutcome::Duplicate { id, of })
            }
            Seen::WithOtherBody(other) => {
                let origin = Some(Origin { message: other, kind: OriginKind::Conflict });
                (Some(new.draft.body.clone()), origin, MessageOutcome::Stored { id, conflict: Some(other) })
            }
            Seen::Never => {
                (Some(new.draft.body.clone()), new.origin, MessageOutcome::Stored { id, conflict: None })
            }
        };
        let duplicate = body.is_none();
        let message = Message {
            interface: new.interface,
            group: new.group,
            status: MessageStatus::Duplicate,
            tier: self.retentions.tier(new.interface),
            received_at: new.received_at,
            stored_at: now,
            occurred_at: new.draft.occurred_at,
            key: new.draft.key.clone(),
            dedupe: new.draft.dedupe.clone(),
            attributes: Arc::new(new.draft.attributes.clone()),
            body_bytes: new.draft.body.len() as u64,
            body,
            origin,
            terms: new.terms.clone(),
        };
        self.messages.insert(id, message);
        if let (Some(edited), Some(origin)) = (&new.edited, origin) {
            self.actions.entry(origin.message).or_default().push(ActionView {
                at: now,
                destination: None,
                action: Edited::ACTION.0,
                author: edited.author.clone(),
                reason: edited.reason.clone(),
            });
        }
        if !duplicate {
            self.store_deliveries(id, new, now);
        }
        outcome
    }

    fn store_deliveries(&mut self, id: MessageId, new: &NewMessage, now: Timestamp) {
        for delivery in &new.deliveries {
            let state =
                if new.draft.doubt.is_some() { DeliveryState::Quarantined } else { DeliveryState::Pending };
            let stored = Delivery {
                lane: delivery.lane,
                state,
                round: Round(0),
                attempts: AttemptNo(0),
                due_at: None,
                changed_at: now,
                reason: new.draft.doubt.as_ref().map(ToString::to_string),
            };
            self.put_delivery(id, delivery.destination, stored);
        }
        self.follow_deliveries(id);
    }

    fn look_up_dedupe(&mut self, new: &NewMessage, id: MessageId, now: Timestamp) -> Seen {
        let (Some(key), Some(window)) = (&new.draft.dedupe, new.dedupe) else { return Seen::Never };
        let slot = (new.interface, key.clone());
        let known = self.dedupe.get(&slot).filter(|known| known.expires_at > now);
        let seen = match known {
            Some(known) if known.body == new.draft.body => return Seen::Before(known.message),
            Some(known) => Seen::WithOtherBody(known.message),
            None => Seen::Never,
        };
        // The newest body counts: what is sent again is nearly always the last that was sent.
        let remembered = Remembered { body: new.draft.body.clone(), message: id, expires_at: now + window.0 };
        self.dedupe.insert(slot, remembered);
        seen
    }

    fn settle(&mut self, result: &DeliveryResult, now: Timestamp) -> ResultOutcome {
        let group = self.messages.get(&result.message).map(|message| message.group);
        let is_owners = self.ownership.is_of(group, result.epoch);
        if !is_owners && !result.settled.outlives_owner() {
            return ResultOutcome::Disowned;
        }
        let slot = (result.message, result.destination);
        let Some(delivery) = self.deliveries.get(&slot) else { return ResultOutcome::Stale };
        if delivery.state != DeliveryState::Pending || delivery.round != result.round {
            return ResultOutcome::Stale;
        }
        let settled = Delivery {
            state: result.settled.state(),
            attempts: result.attempts,
            due_at: result.settled.due_at(),
            changed_at: now,
            reason: result.settled.reason(),
            ..delivery.clone()
        };
        self.put_delivery(result.message, result.destination, settled);
        // The owner may be about to send it as well: then it is to find that it was recorded before.
        if is_owners {
            self.suspects.remove(&slot);
        }
        self.record_attempt(result);
        self.plugin_state.keep(result);
        if let Some(output) = &result.output {
            let (round, attempt) = (result.round, result.attempts);
            self.outputs.insert(slot, Saved { round, attempt, at: now, output: (**output).clone() });
        }
        self.follow_deliveries(result.message);
        let routed = match &result.settled {
            Settled::Routed(messages) => {
                messages.iter().map(|message| self.store_message(message, now)).collect()
            }
            Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => {
                Vec::new()
            }
        };
        ResultOutcome::Applied(routed)
    }

    fn record_attempt(&mut self, result: &DeliveryResult) {
        let Some(attempted) = result.recorded() else { return };
        let view = AttemptView {
            destination: result.destination,
            round: result.round,
            number: result.attempts,
            started_at: attempted.started_at,
            took_ms: u64::try_from(attempted.took.as_millis()).unwrap_or(u64::MAX),
            outcome: result.settled.outcome(),
            text: result.settled.reason().unwrap_or_default(),
        };
        // A try that did not count has the number of the one before: the newer one stays.
        self.attempts.insert((result.message, result.destination, result.round, result.attempts), view);
    }

    fn act(&mut self, action: &Action, now: Timestamp) -> ActionOutcome {
        let Some(message) = self.messages.get(&action.message) else { return ActionOutcome::NoMessage };
        if matches!(action.kind, ActionKind::Resend { .. }) && message.body.is_none() {
            return ActionOutcome::NoBody;
        }
        let request = action.request.clone().map(|request| (action.message, request, action.destination));
        if request.as_ref().is_some_and(|request| self.requests.contains(request)) {
            return ActionOutcome::Repeated;
        }
        let of_message = (action.message, DestinationId(0))..=(action.message, DestinationId(u32::MAX));
        let wanted = |destination| action.destination.is_none_or(|only| only == destination);
        let fitting: Vec<(DestinationId, Delivery)> = self
            .deliveries
            .range(of_message)
            .filter(|((_, destination), _)| wanted(*destination))
            .filter_map(|((_, destination), delivery)| {
                Some((*destination, delivery.after(action.kind, now)?))
            })
            .collect();
        let mut changed = Vec::new();
        for (destination, delivery) in fitting {
            changed.push((destination, delivery.lane, delivery.round));
            if matches!(action.kind, ActionKind::Resend { .. }) {
                self.suspects.remove(&(action.message, destination));
            }
            self.put_delivery(action.message, destination, delivery);
        }
        if !changed.is_empty() {
            self.requests.extend(request);
            self.follow_deliveries(action.message);
            self.actions.entry(action.message).or_default().push(ActionView {
                at: now,
                destination: action.destination,
                action: action.kind.as_str(),
                author: action.author.clone(),
                reason: action.reason.clone(),
            });
        }
        ActionOutcome::Done(changed)
    }

    fn suspect(&mut self, suspect: &Suspect) -> u32 {
        let count = self.suspects.entry((suspect.message, suspect.destination)).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Stores a delivery and keeps the queues in step.
    fn put_delivery(&mut self, message: MessageId, destination: DestinationId, delivery: Delivery) {
        if let Some(before) = self.deliveries.get(&(message, destination)) {
            self.queue.remove(&(destination, before.lane, message));
            self.held.remove(&(destination, before.lane, message));
        }
        match delivery.state {
            DeliveryState::Pending => self.queue.insert((destination, delivery.lane, message)),
            DeliveryState::Quarantined => self.held.insert((destination, delivery.lane, message)),
            DeliveryState::Sent | DeliveryState::Filtered | DeliveryState::Dismissed => false,
        };
        self.deliveries.insert((message, destination), delivery);
    }

    fn follow_deliveries(&mut self, id: MessageId) {
        let states = self.deliveries_of(id).map(|(_, delivery)| delivery.state);
        let status = MessageStatus::of_deliveries(states);
        if let Some(message) = self.messages.get_mut(&id) {
            message.status = status;
        }
    }

    pub(super) fn deliveries_of(&self, id: MessageId) -> impl Iterator<Item = (DestinationId, &Delivery)> {
        let of_message = (id, DestinationId(0))..=(id, DestinationId(u32::MAX));
        self.deliveries.range(of_message).map(|((_, destination), delivery)| (*destination, delivery))
    }

    /// Interfaces that were ever registered, by name.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&String, InterfaceId)> {
        self.interfaces.iter().map(|(name, id)| (name, *id))
    }

    /// All that belongs to messages that are gone.
    pub(super) fn forget_messages(&mut self, gone: &BTreeSet<MessageId>) {
        self.messages.retain(|id, _| !gone.contains(id));
        self.actions.retain(|id, _| !gone.contains(id));
        self.deliveries.retain(|(message, _), _| !gone.contains(message));
        self.held.retain(|(_, _, message)| !gone.contains(message));
        self.attempts.retain(|(message, ..), _| !gone.contains(message));
        self.outputs.retain(|(message, _), _| !gone.contains(message));
        self.suspects.retain(|(message, _), _| !gone.contains(message));
        self.requests.retain(|(message, ..)| !gone.contains(message));
    }

    pub(super) fn forget_expired_keys(&mut self, now: Timestamp) {
        self.dedupe.retain(|_, known| known.expires_at > now);
    }
}

/// What a sender was given.
#[derive(Clone)]
pub(super) struct Saved {
    pub(super) round: Round,
    pub(super) attempt: AttemptNo,
    pub(super) at: Timestamp,
    pub(super) output: SavedOutput,
}

/// What a dedupe key says of a message.
enum Seen {
    Never,
    Before(MessageId),
    WithOtherBody(MessageId),
}

impl Delivery {
    /// What an action makes of it; none: it does not fit.
    fn after(&self, kind: ActionKind, now: Timestamp) -> Option<Delivery> {
        match kind {
            ActionKind::Resend { keep_lane } => {
                if self.state == DeliveryState::Pending {
                    return None;
                }
                let stays = keep_lane && self.lane.is_ordered() && self.state == DeliveryState::Quarantined;
                Some(Delivery {
                    lane: if stays { self.lane } else { Lane::APART },
                    state: DeliveryState::Pending,
                    round: self.round.next(),
                    attempts: AttemptNo(0),
                    due_at: if stays { None } else { Some(now) },
                    changed_at: now,
                    reason: None,
                })
            }
            ActionKind::Retry => {
                let waits = self.state == DeliveryState::Pending && self.due_at.is_some();
                let due_at = if self.lane.is_ordered() { None } else { Some(now) };
                waits.then(|| Delivery { due_at, changed_at: now, ..self.clone() })
            }
            ActionKind::Dismiss => {
                let open = matches!(self.state, DeliveryState::Pending | DeliveryState::Quarantined);
                let dismissed = Delivery {
                    state: DeliveryState::Dismissed,
                    due_at: None,
                    changed_at: now,
                    ..self.clone()
                };
                open.then_some(dismissed)
            }
        }
    }
}
