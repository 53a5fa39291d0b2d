//! The layout changes while the engine runs: between two batches, so that no transaction is made by
//! two layouts. Names are registered by the engine, whose writer is the only one.

use std::collections::{BTreeSet, VecDeque};

use portway_store::{ActionOutcome, Registered, StoreError, Topology};

use super::{BUSY_AFTER, Core, Phase};
use crate::dispatcher::Left;
use crate::event::{ActError, Effect, EngineError, Ticket};
use crate::fate::Fate;
use crate::layout::Place;
use crate::settings::LayoutChange;

/// What was asked for and is not done.
#[derive(Debug, Default)]
pub(super) struct Relayout {
    registrations: VecDeque<(Ticket, Topology)>,
    /// The one in hand.
    registering: Option<Ticket>,
    changes: VecDeque<(Ticket, LayoutChange)>,
    /// Destinations that still have something in hand, of changes that are made.
    settling: Vec<(Ticket, BTreeSet<Place>)>,
}

impl Core {
    pub(super) fn register(&mut self, ticket: Ticket, topology: Topology) {
        match self.phase {
            Phase::Running => self.relayout.registrations.push_back((ticket, topology)),
            Phase::Stopping { .. } | Phase::Closing | Phase::Ended => {
                self.out.push(Effect::Registered { ticket, answer: Err(ActError::Stopped) });
            }
        }
    }

    /// Somebody waits for names to be registered.
    pub(super) fn is_asked_to_register(&self) -> bool {
        !self.relayout.registrations.is_empty()
    }

    /// What the store's writer is to register, once it is free.
    pub(super) fn next_registration(&mut self) -> Option<Effect> {
        let (ticket, topology) = self.relayout.registrations.pop_front()?;
        self.relayout.registering = Some(ticket);
        Some(Effect::Register(Topology { now: self.at.wall, ..topology }))
    }

    pub(super) fn registered(&mut self, answer: Result<Registered, StoreError>) {
        self.committer.release();
        let Some(ticket) = self.relayout.registering.take() else { return };
        let answer = match answer {
            Ok(registered) => {
                self.retentions.set_all(registered.retentions.clone());
                Ok(registered)
            }
            Err(error) if error.kind() == portway_store::ErrorKind::Fatal => {
                return self.end(Err(EngineError::Store(error)));
            }
            Err(error) => {
                // What it wants of old messages may be in force all the same.
                self.retentions.doubt_all();
                Err(ActError::Unavailable(error.to_string()))
            }
        };
        self.out.push(Effect::Registered { ticket, answer });
    }

    pub(super) fn change_layout(&mut self, ticket: Ticket, change: LayoutChange) {
        match self.phase {
            Phase::Running => self.relayout.changes.push_back((ticket, change)),
            Phase::Stopping { .. } | Phase::Closing | Phase::Ended => {
                self.out.push(Effect::Acted { ticket, outcome: Err(ActError::Stopped) });
            }
        }
    }

    /// What was asked for and is not begun is told why it is not done.
    pub(super) fn refuse_relayout(&mut self, why: &ActError) {
        for (ticket, _) in self.relayout.registrations.drain(..) {
            self.out.push(Effect::Registered { ticket, answer: Err(why.clone()) });
        }
        for (ticket, _) in self.relayout.changes.drain(..) {
            self.out.push(Effect::Acted { ticket, outcome: Err(why.clone()) });
        }
    }

    /// Makes the changes that wait, if no batch is in hand; lets destinations go that are done.
    pub(super) fn follow_relayout(&mut self) {
        let is_between_batches = self.committer.is_idle() && self.dispatcher.is_known();
        if is_between_batches && self.phase == Phase::Running {
            while let Some((ticket, change)) = self.relayout.changes.pop_front() {
                let waits = self.make_change(change);
                self.relayout.settling.push((ticket, waits));
                self.out.push(Effect::Acted { ticket, outcome: Ok(ActionOutcome::Done(Vec::new())) });
            }
        }
        self.let_destinations_go();
    }

    /// The destinations that have to be waited for.
    fn make_change(&mut self, change: LayoutChange) -> BTreeSet<Place> {
        let changes = self.layout.change(change);
        self.completer.grow(self.layout.places_count());
        self.intake.grow(self.layout.interfaces_count());
        self.gate.keep(self.layout.interfaces().map(|interface| interface.id));
        let fate = Fate::busy("its interface is not there any more", BUSY_AFTER);
        for source in changes.sources_gone {
            for (ticket, fates) in self.intake.refuse_source(source, &fate) {
                self.answer(ticket, fates);
            }
        }
        let layout = &self.layout;
        self.completer.routed_mut().for_each(|message| layout.readdress(message));
        let mut waits = BTreeSet::new();
        self.with_dispatcher(|dispatcher, ctx| {
            for place in changes.leave {
                dispatcher.leave(place);
                waits.insert(place);
            }
            waits.extend(changes.begin.into_iter().filter(|place| dispatcher.begin(*place, ctx)));
        });
        waits
    }

    fn let_destinations_go(&mut self) {
        let is_asked = !self.relayout.settling.is_empty() || self.dispatcher.has_leaving();
        if !is_asked || !self.ownership.is_owner() {
            return;
        }
        let mut left = Vec::new();
        self.with_dispatcher(|dispatcher, ctx| left = dispatcher.let_go(ctx));
        for (place, how) in left {
            if how == Left::Gone {
                self.layout.free(place);
            }
            for (_, waits) in &mut self.relayout.settling {
                waits.remove(&place);
            }
        }
        let is_over = |(_, waits): &mut (Ticket, BTreeSet<Place>)| waits.is_empty();
        for (ticket, _) in self.relayout.settling.extract_if(.., is_over) {
            self.out.push(Effect::Settled { ticket });
        }
    }
}
