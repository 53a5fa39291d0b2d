//! Lanes that wait for an operator after a quarantine: which they are, from the store and from
//! results that are on their way to it.

use portway_model::{Lane, MessageId};
use portway_store::LaneHead;

use super::destination::Destination;
use super::reader::For;
use super::{Ctx, Desk};
use crate::event::{Read, ReadId};

/// What is known of quarantined deliveries that hold their lanes.
#[derive(Debug, Default)]
pub(super) struct HeldRead {
    read: Option<ReadId>,
    /// Something changed since the read was asked for.
    is_stale: bool,
    /// The first answer is waited for.
    pub is_first: bool,
    /// Held by results that are not written yet.
    pub unwritten: Vec<(Lane, MessageId)>,
}

impl Destination {
    /// Asks which lanes are held, again if something changed since it was asked.
    pub fn read_held(&mut self, desk: &mut Desk) {
        self.held.is_stale = self.held.read.is_some();
        if !self.held.is_stale {
            let read = desk.reader.ask(For::HeldHeads(self.place), Read::HeldHeads(self.settings.id));
            self.held.read = Some(read);
        }
    }

    /// What is known of held lanes changes: an answer in hand is out of date.
    pub(super) fn outdate_held(&mut self) {
        self.held.is_stale |= self.held.read.is_some();
    }

    pub fn on_held_heads(&mut self, id: ReadId, heads: Vec<LaneHead>, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if self.held.read.take() != Some(id) {
            return;
        }
        if self.held.is_stale {
            self.read_held(desk);
            return;
        }
        if ctx.is_acting {
            // A resent delivery may be out of this answer before its lane knows that it comes again.
            desk.parked.push((self.place, Lane::APART));
            return;
        }
        if std::mem::take(&mut self.held.is_first) {
            self.loading = self.loading.saturating_sub(1);
        }
        self.lanes.values_mut().for_each(|lane| lane.held = None);
        let unwritten = std::mem::take(&mut self.held.unwritten);
        for head in heads.iter().map(|head| (head.lane, head.message)).chain(unwritten.iter().copied()) {
            self.lane(head.0).hold(head.1);
        }
        self.held.unwritten = unwritten;
        self.review_all(desk, ctx);
    }

    /// A commit stored a delivery as quarantined.
    pub fn doubt(&mut self, no: Lane, message: MessageId) {
        self.counts.quarantined += 1;
        if self.holds() && no.is_ordered() {
            self.outdate_held();
            self.lane(no).hold(message);
        }
    }
}
