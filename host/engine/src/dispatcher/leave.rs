//! Destinations that begin, begin anew, or go, while the engine runs.
//!
//! One that ends starts no run any more. Once its runs are over, their results are written and
//! nothing is read for it, the store knows everything of it: then another takes its place and reads
//! what waits, as at the start of an engine, or its place is free.

use super::destination::Destination;
use super::{Ctx, Desk, Dispatcher};
use crate::layout::Place;

/// What follows when a destination has nothing in hand any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It begins anew, with the settings of then.
    ToBegin,
    ToGo,
    /// It went: nothing is here.
    Gone,
}

/// How a destination left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Begun,
    Gone,
}

impl Dispatcher {
    /// A destination begins, or begins anew once what it has in hand is done. Says whether that is
    /// waited for.
    pub fn begin(&mut self, place: Place, ctx: &mut Ctx<'_>) -> bool {
        let is_there = self.destinations.get(place).is_some_and(|destination| !destination.is_gone());
        if is_there {
            self.end_with(place, Leaving::ToBegin);
        } else {
            self.replace(place, ctx);
        }
        is_there
    }

    /// A destination goes once what it has in hand is done.
    pub fn leave(&mut self, place: Place) {
        self.end_with(place, Leaving::ToGo);
    }

    /// Some go, or begin anew, once they can.
    pub fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    pub(super) fn end_with(&mut self, place: Place, leaving: Leaving) {
        let Some(destination) = self.destinations.get_mut(place) else { return };
        destination.leaving = Some(leaving);
        destination.leave_to_store(&mut self.desk);
        if !self.leaving.contains(&place) {
            self.leaving.push(place);
        }
    }

    /// Lets those go that have nothing in hand any more.
    pub fn let_go(&mut self, ctx: &mut Ctx<'_>) -> Vec<(Place, Left)> {
        let mut gone = Vec::new();
        for place in std::mem::take(&mut self.leaving) {
            let Some(destination) = self.destinations.get_mut(place) else { continue };
            let has_runs = destination.runs > 0 || ctx.completer.unwritten(place) > 0;
            if has_runs || self.desk.reader.reads_for(place) {
                self.leaving.push(place);
                continue;
            }
            if destination.leaving == Some(Leaving::ToGo) {
                destination.discard(&mut self.desk);
                destination.leaving = Some(Leaving::Gone);
                gone.push((place, Left::Gone));
            } else {
                self.replace(place, ctx);
                gone.push((place, Left::Begun));
            }
        }
        gone
    }

    /// A destination begins in this place.
    fn replace(&mut self, place: Place, ctx: &mut Ctx<'_>) {
        let Some(settings) = ctx.layout.destination(place) else { return };
        let pause = ctx.layout.pause(settings.id).cloned();
        let mut new = Destination::new(place, settings.clone(), pause);
        match self.destinations.get_mut(place) {
            Some(old) => {
                old.discard(&mut self.desk);
                self.desk.parked.retain(|(parked, _)| *parked != place);
                new.succeed(old);
                *old = new;
            }
            None => self.destinations.push(new),
        }
        self.with(Some(place), ctx, |destination, desk, ctx| destination.load(true, desk, ctx));
    }
}

impl Destination {
    /// Nothing is in its place.
    pub fn is_gone(&self) -> bool {
        self.leaving == Some(Leaving::Gone)
    }

    /// Gives back what it has of the budget.
    fn discard(&mut self, desk: &mut Desk) {
        for lane in std::mem::take(&mut self.lanes).into_values() {
            desk.budget.count(lane.stream.len(), 0);
        }
        desk.budget.count(self.apart.len(), 0);
        self.apart = super::apart::Apart::default();
        self.ready.clear();
        self.hungry.clear();
    }

    /// Takes over what is not in the store: of the place, and of itself before.
    fn succeed(&mut self, old: &mut Destination) {
        // The place stands in the list once, whoever is there.
        self.queued = old.queued;
        if old.settings.id != self.settings.id || old.is_gone() {
            return;
        }
        self.counts = old.counts;
        self.standing.take_pause_of(&mut old.standing);
        let is_same_rate = self.settings.rate == old.settings.rate;
        if is_same_rate {
            self.rate = old.rate.take();
        }
    }
}
