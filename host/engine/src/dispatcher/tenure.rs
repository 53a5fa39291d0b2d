//! The dispatcher of an engine that is not the only one: it works while the engine owns its groups,
//! and reads again what others stored meanwhile.

use std::time::Duration;

use portway_model::{MessageId, Order, Timestamp};
use portway_store::{News, Tenure};

use super::destination::Destination;
use super::leave::Leaving;
use super::reader::For;
use super::timers::Timer;
use super::{Ctx, Desk, Dispatcher};
use crate::event::Read;
use crate::layout::Place;

impl Dispatcher {
    /// From now on it delivers. What it had in hand when it lost its groups before ends first.
    pub fn own(&mut self, tenure: Tenure, ctx: &mut Ctx<'_>) {
        self.start(tenure);
        for destination in &mut self.destinations {
            destination.standing.set_pause(ctx.layout.pause(destination.settings.id).cloned());
        }
    }

    pub(super) fn start(&mut self, tenure: Tenure) {
        self.desk.tenure = Some(tenure);
        if !self.is_known {
            self.starting = Some(self.desk.reader.ask(For::Start, Read::Work));
        }
    }

    /// Nothing new begins until it owns again; then everything is read anew.
    pub fn lose(&mut self) {
        self.desk.tenure = None;
        // The answer may be older than what others do next.
        self.starting = None;
        if !self.is_known {
            return;
        }
        for place in 0..self.destinations.len() {
            let stays = self.destinations.get(place).is_some_and(|destination| destination.leaving.is_none());
            if stays {
                self.end_with(place, Leaving::ToBegin);
            }
        }
    }

    /// Others stored messages for these destinations, with any numbers.
    pub fn read_again(&mut self, places: &[Place], ctx: &mut Ctx<'_>) {
        if !self.is_known {
            self.starting = Some(self.desk.reader.ask(For::Start, Read::Work));
            return;
        }
        for place in places {
            self.with(Some(*place), ctx, |destination, desk, ctx| destination.read_again(desk, ctx));
        }
    }
}

impl Destination {
    /// It belongs to this tenure: results carry its epoch. Where order counts it waits as long as what
    /// the owner before sent can still arrive.
    pub(super) fn begin_tenure(&mut self, desk: &mut Desk, monotonic: Duration) {
        let Some(tenure) = &desk.tenure else { return };
        self.epoch = tenure.epoch;
        if tenure.overlaps && self.settings.order != Order::None {
            let until = monotonic + News::LOST_WITHIN + self.settings.send_max;
            self.quiet_until = Some(until);
            desk.timers.set(until, Timer::Destination(self.place));
        }
    }

    /// The wait for the owner before is over.
    pub(super) fn end_quiet(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if self.quiet_until.is_some_and(|until| until <= ctx.at.monotonic) {
            self.quiet_until = None;
            self.review_all(desk, ctx);
        }
    }

    /// Everything pending is read from its beginning, and nothing is sent until it is known which lanes
    /// have something: what came may stand before what is in memory.
    fn read_again(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if self.leaving.is_some() {
            return;
        }
        const FIRST: MessageId = MessageId(1);
        for lane in self.lanes.values_mut() {
            lane.rewind = Some(FIRST);
        }
        self.apart.read_again(self.settings.order);
        let destination = self.settings.id;
        if !desk.reader.waits(For::LaneHeads(self.place)) {
            self.loading += 1;
            desk.reader.ask(For::LaneHeads(self.place), Read::LaneHeads(destination));
        }
        let after = Timestamp(0);
        if !desk.reader.waits(For::NextDue(self.place)) {
            desk.reader.ask(For::NextDue(self.place), Read::NextDue { destination, after });
        }
        if self.holds() {
            if !self.held.is_first {
                self.held.is_first = true;
                self.loading += 1;
            }
            self.read_held(desk);
        }
        self.review_all(desk, ctx);
    }
}
