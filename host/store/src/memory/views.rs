//! What the in-memory store answers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use portway_model::{AttemptNo, DeliveryState, DestinationId, Lane, MessageId, Round, SavedBody, Timestamp};

use super::state::{Message, Saved, State};
use crate::{
    ActionView, AttemptView, DeliveryView, LaneHead, ListMessages, MessageView, Origin, OriginKind,
    OutputBody, OutputView, Page, Pending, QueueView, StoredMessage,
};

type Queue = BTreeSet<(DestinationId, Lane, MessageId)>;

impl State {
    pub(super) fn count_pending(&self, destinations: &[DestinationId], limit: u32) -> u32 {
        let pending = self.queue.iter().filter(|(destination, _, _)| destinations.contains(destination));
        u32::try_from(pending.take(limit as usize).count()).unwrap_or(limit)
    }

    pub(super) fn destinations_with_work(&self) -> Vec<DestinationId> {
        let mut destinations: Vec<_> = self.queue.iter().map(|(destination, ..)| *destination).collect();
        destinations.dedup();
        destinations
    }

    pub(super) fn lane_heads(&self, destination: DestinationId) -> Vec<LaneHead> {
        heads(&self.queue, destination)
    }

    pub(super) fn held_heads(&self, destination: DestinationId) -> Vec<LaneHead> {
        heads(&self.held, destination)
    }

    pub(super) fn list_suspects(&self, destination: DestinationId) -> Vec<MessageId> {
        let of_destination = self.suspects.keys().filter(|(_, to)| *to == destination);
        of_destination.map(|(message, _)| *message).collect()
    }

    pub(super) fn read_lane(
        &self,
        destination: DestinationId,
        lane: Lane,
        after: MessageId,
        limit: u32,
    ) -> Vec<Pending> {
        self.queue
            .range(
                (destination, lane, MessageId(after.0.saturating_add(1)))
                    ..=(destination, lane, MessageId(u64::MAX)),
            )
            .filter_map(|(_, _, message)| self.pending(*message, destination))
            .filter(|pending| lane.is_ordered() || pending.due_at.is_none())
            .take(limit as usize)
            .collect()
    }

    pub(super) fn read_due(&self, destination: DestinationId, until: Timestamp, limit: u32) -> Vec<Pending> {
        let mut due: Vec<Pending> = self
            .apart(destination)
            .filter(|pending| pending.due_at.is_some_and(|due_at| due_at <= until))
            .collect();
        due.sort_by_key(|pending| (pending.due_at, pending.message));
        due.truncate(limit as usize);
        due
    }

    pub(super) fn next_due(&self, destination: DestinationId, after: Timestamp) -> Option<Timestamp> {
        self.apart(destination).filter_map(|pending| pending.due_at).filter(|due_at| *due_at > after).min()
    }

    pub(super) fn load_messages(&self, ids: &[MessageId]) -> Vec<StoredMessage> {
        let ids: BTreeSet<MessageId> = ids.iter().copied().collect();
        ids.into_iter().filter_map(|id| self.messages.get(&id)?.stored(id)).collect()
    }

    pub(super) fn list_queues(&self) -> Vec<QueueView> {
        let mut queues: BTreeMap<DestinationId, (QueueView, MessageId)> = BTreeMap::new();
        let empty = |destination| {
            let view = QueueView { destination, waiting: 0, quarantined: 0, oldest: None };
            (view, MessageId(u64::MAX))
        };
        for (destination, _, message) in &self.queue {
            let (view, oldest) = queues.entry(*destination).or_insert_with(|| empty(*destination));
            view.waiting += 1;
            *oldest = (*oldest).min(*message);
        }
        for (destination, ..) in &self.held {
            queues.entry(*destination).or_insert_with(|| empty(*destination)).0.quarantined += 1;
        }
        let stored_at = |id: &MessageId| self.messages.get(id).map(|message| message.stored_at);
        queues.into_values().map(|(view, oldest)| QueueView { oldest: stored_at(&oldest), ..view }).collect()
    }

    pub(super) fn list_messages(&self, list: &ListMessages) -> Page<MessageView> {
        let before = list.before.unwrap_or(MessageId(u64::MAX));
        let limit = list.limit.clamp(1, ListMessages::LIMIT_MAX) as usize;
        let fits = |id: &MessageId, message: &Message| {
            list.interface.is_none_or(|interface| interface == message.interface)
                && list.term().is_none_or(|term| message.terms.contains(&term))
                && list.fits(message.key.as_ref().map(|key| key.as_str()), &message.attributes)
                && list.from.is_none_or(|from| message.stored_at >= from)
                && list.to.is_none_or(|to| message.stored_at < to)
                && list.status.is_none_or(|status| status == message.status)
                && list
                    .destination
                    .is_none_or(|destination| self.deliveries.contains_key(&(*id, destination)))
        };
        let mut found = self.messages.range(..before).rev().filter(|(id, message)| fits(id, message));
        let items: Vec<MessageView> =
            found.by_ref().take(limit).map(|(id, message)| message.view(*id)).collect();
        let more = found.next().is_some();
        let next = items.last().map(|last| last.id).filter(|_| more);
        Page { items, next }
    }

    pub(super) fn get_message(&self, id: MessageId) -> Option<MessageView> {
        self.messages.get(&id).map(|message| message.view(id))
    }

    pub(super) fn list_deliveries(&self, id: MessageId) -> Vec<DeliveryView> {
        self.deliveries_of(id)
            .map(|(destination, delivery)| DeliveryView {
                destination,
                lane: delivery.lane,
                state: delivery.state,
                round: delivery.round,
                attempts: delivery.attempts,
                due_at: delivery.due_at,
                finished_at: delivery.state.is_final().then_some(delivery.changed_at),
                reason: delivery.reason.clone(),
            })
            .collect()
    }

    pub(super) fn list_attempts(&self, id: MessageId) -> Vec<AttemptView> {
        let first = (id, DestinationId(0), Round(0), AttemptNo(0));
        let last = (id, DestinationId(u32::MAX), Round(u32::MAX), AttemptNo(u32::MAX));
        self.attempts.range(first..=last).map(|(_, attempt)| attempt.clone()).collect()
    }

    pub(super) fn list_outputs(&self, id: MessageId) -> Vec<OutputView> {
        let of_message = (id, DestinationId(0))..=(id, DestinationId(u32::MAX));
        let view = |(_, destination): &(MessageId, DestinationId), saved: &Saved| OutputView {
            destination: *destination,
            round: saved.round,
            attempt: saved.attempt,
            saved_at: saved.at,
            key: saved.output.key.as_ref().map(|key| key.as_str().to_owned()),
            attributes: (*saved.output.attributes).clone(),
            body: match &saved.output.body {
                SavedBody::Same => OutputBody::Same,
                SavedBody::Kept(bytes) => OutputBody::Kept(bytes.len() as u64),
                SavedBody::TooLarge(size) => OutputBody::TooLarge(*size),
                SavedBody::NoRoom(size) => OutputBody::NoRoom(*size),
            },
        };
        self.outputs.range(of_message).map(|(slot, saved)| view(slot, saved)).collect()
    }

    pub(super) fn load_output(&self, id: MessageId, destination: DestinationId) -> Option<Bytes> {
        match &self.outputs.get(&(id, destination))?.output.body {
            SavedBody::Kept(bytes) => Some(bytes.clone()),
            SavedBody::Same | SavedBody::TooLarge(_) | SavedBody::NoRoom(_) => None,
        }
    }

    pub(super) fn list_actions(&self, id: MessageId) -> Vec<ActionView> {
        self.actions.get(&id).cloned().unwrap_or_default()
    }

    pub(super) fn list_edits(&self, id: MessageId) -> Vec<MessageId> {
        let of = Some(Origin { message: id, kind: OriginKind::Edit });
        self.messages.iter().filter(|(_, message)| message.origin == of).map(|(id, _)| *id).collect()
    }

    fn apart(&self, destination: DestinationId) -> impl Iterator<Item = Pending> {
        let from = (destination, Lane::APART, MessageId::ZERO);
        let to = (destination, Lane::APART, MessageId(u64::MAX));
        self.queue.range(from..=to).filter_map(move |(_, _, message)| self.pending(*message, destination))
    }

    fn pending(&self, id: MessageId, destination: DestinationId) -> Option<Pending> {
        let delivery = self.deliveries.get(&(id, destination))?;
        let body_bytes = self.messages.get(&id)?.body_bytes;
        let is_pending = delivery.state == DeliveryState::Pending;
        is_pending.then_some(Pending {
            message: id,
            lane: delivery.lane,
            round: delivery.round,
            attempts: delivery.attempts,
            due_at: delivery.due_at,
            body_bytes,
        })
    }
}

fn heads(queue: &Queue, destination: DestinationId) -> Vec<LaneHead> {
    let from = (destination, Lane::FIRST, MessageId::ZERO);
    let to = (destination, Lane::APART, MessageId::ZERO);
    let mut heads: Vec<LaneHead> =
        queue.range(from..to).map(|(_, lane, message)| LaneHead { lane: *lane, message: *message }).collect();
    heads.dedup_by_key(|head| head.lane);
    heads
}

impl Message {
    fn stored(&self, id: MessageId) -> Option<StoredMessage> {
        Some(StoredMessage {
            id,
            interface: self.interface,
            received_at: self.received_at,
            key: self.key.clone(),
            attributes: self.attributes.clone(),
            body: self.body.clone()?,
        })
    }

    fn view(&self, id: MessageId) -> MessageView {
        MessageView {
            id,
            interface: self.interface,
            status: self.status,
            received_at: self.received_at,
            stored_at: self.stored_at,
            occurred_at: self.occurred_at,
            key: self.key.as_ref().map(|key| key.as_str().to_owned()),
            dedupe: self.dedupe.as_ref().map(|key| key.as_str().to_owned()),
            attributes: (*self.attributes).clone(),
            body_bytes: self.body_bytes,
            origin: self.origin.map(|origin| origin.message),
            origin_kind: self.origin.map(|origin| origin.kind.as_str()),
        }
    }
}
