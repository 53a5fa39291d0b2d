//! What the store is given to do next, and what waits for it.

use std::time::Duration;

use portway_store::{Durability, Edited, NewMessage, Origin, OriginKind, SourceCursor};

use super::{Core, Phase};
use crate::committer::Batch;
use crate::completer::StoreRoom;
use crate::event::{Edit, Effect};
use crate::gather::Waiting;
use crate::intake::Room;

impl Core {
    /// The writer does one thing at a time: finds out, looks after the store, writes again, records what is
    /// said of interfaces, writes what waits. Steps with old messages go beside it.
    pub(super) fn use_writer(&mut self) {
        if let Some(mark) = self.committer.find(self.at.monotonic) {
            self.out.push(Effect::FindMark(mark));
        }
        if !self.committer.is_free(self.at.monotonic) || self.phase == Phase::Closing {
            return;
        }
        // A store that is away cannot be kept; one that is full needs it most.
        let can_keep = !self.committer.is_troubled() || self.closed.is_some();
        if can_keep && let Some(look) = self.housekeeping.next_look(&self.at) {
            return self.lend_writer(look);
        }
        if can_keep && self.may_step() {
            self.out.extend(self.housekeeping.next_step(&mut self.retentions, &self.at));
        }
        if let Some(batch) = self.committer.next_redo() {
            return self.write(batch);
        }
        if let Some(effect) = self.next_word() {
            return self.lend_writer(effect);
        }
        let room = self.store_room();
        let wants_flush = self.completer.wants_flush(room, self.at.monotonic);
        let is_probe = self.committer.is_troubled();
        if self.intake.submissions() == 0 && !self.completer.has_work(room) && !wants_flush && !is_probe {
            return;
        }
        if !is_probe && self.gathers_until().is_some() {
            return;
        }
        let mut batch = Batch::from_share(self.completer.take(room));
        if wants_flush {
            batch.durability = Durability::Strict;
        }
        self.take_messages(&mut batch);
        self.write(batch);
    }

    /// The writer does something else than to write a batch.
    fn lend_writer(&mut self, effect: Effect) {
        self.committer.borrow();
        self.out.push(effect);
    }

    /// Old messages are the business of their owner. What changes how long they are kept comes first.
    fn may_step(&self) -> bool {
        let is_asked = self.is_asked_to_register() || self.retentions.is_asked();
        self.ownership.is_owner() && (!is_asked || self.committer.is_troubled())
    }

    /// What is to be recorded of interfaces. Not beside a step, whose answer would tell how it was before.
    fn next_word(&mut self) -> Option<Effect> {
        if self.committer.is_troubled() || self.housekeeping.is_stepping() {
            return None;
        }
        let registration = self.next_registration();
        registration.or_else(|| self.retentions.next_confirmation().map(Effect::ConfirmRetention))
    }

    fn store_room(&self) -> StoreRoom {
        if self.closed.is_none() { StoreRoom::Free } else { StoreRoom::Full }
    }

    /// Until when the next batch waits for what is about to come.
    pub(super) fn gathers_until(&self) -> Option<Duration> {
        let is_free = self.committer.is_free(self.at.monotonic) && self.phase == Phase::Running;
        let submissions = self.intake.submissions();
        let oldest_result = self.completer.oldest_result();
        let is_full = self.intake.waiting() >= self.layout.limits.batch_messages_max;
        let rides =
            oldest_result.is_some() && !self.completer.wants_flush(self.store_room(), self.at.monotonic);
        if !is_free || is_full || (submissions == 0 && !rides) {
            return None;
        }
        self.gather.waits_until(Waiting { submissions, oldest_result }, self.at.monotonic)
    }

    /// Until when runs wait for sources that were just answered: a peer waits for these, and a transform that
    /// computes on their processor would delay it. While the next batch is on its way to the disk there is time.
    pub(super) fn runs_wait_until(&self) -> Option<Duration> {
        if !self.committer.is_free(self.at.monotonic) || !self.dispatcher.has_ready() {
            return None;
        }
        self.gather.expects_until(self.at.monotonic)
    }

    fn take_messages(&mut self, batch: &mut Batch) {
        let limits = &self.layout.limits;
        let room = Room { messages: limits.batch_messages_max, bytes: limits.batch_bytes_max };
        let taken = self.intake.take(room);
        for taken in taken.drafts {
            // An operator's word must survive what a message survives.
            if self.layout.is_strict(taken.source) || taken.edit.is_some() {
                batch.durability = Durability::Strict;
            }
            if let Some(message) = self.layout.message(taken.source, taken.received_at, taken.draft) {
                let message = match taken.edit {
                    Some(edit) => edited(message, *edit),
                    None => message,
                };
                batch.messages.push((taken.seat, message));
            }
        }
        for taken in taken.cursors {
            // What the source does next outside, such as moving a file, cannot be taken back.
            batch.durability = Durability::Strict;
            if let Some(interface) = self.layout.interface(taken.source) {
                let cursor = SourceCursor { interface: interface.id, cursor: taken.cursor };
                batch.cursors.push((taken.seat, cursor));
            }
        }
    }

    fn write(&mut self, batch: Batch) {
        let write = self.committer.write(batch, self.at.wall, self.at.monotonic);
        self.out.push(Effect::Write(write));
    }
}

/// A corrected copy: linked to its original, for the destinations it is meant for.
fn edited(mut message: NewMessage, edit: Edit) -> NewMessage {
    let Edit { of, destinations, author, reason } = edit;
    if let Some(only) = destinations {
        message.deliveries.retain(|delivery| only.contains(&delivery.destination));
    }
    let origin = Some(Origin { message: of, kind: OriginKind::Edit });
    NewMessage { origin, edited: Some(Box::new(Edited { author, reason })), ..message }
}
