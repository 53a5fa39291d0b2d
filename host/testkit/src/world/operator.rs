//! The operator: resends, dismisses, stops, resumes and changes the project; and the end of a seed,
//! where faults cease and everything must drain.

use std::time::Duration;

use portway_engine::{AfterDrain, DrainOrder, Event, InterfaceSettings, LayoutChange, Ticket, split_resend};
use portway_model::{DeliveryState, DestinationId, MessageId};
use portway_store::{Action, ActionKind, DestinationAction, DestinationActionKind, Store};
use rand::RngExt;
use rand::seq::IteratorRandom;

use super::engines::Engine;
use super::{DRAIN_MAX, Phase, Step, Task, World};

impl World {
    pub(super) fn operate(&mut self) {
        let destination = self.auditor.own.ledgers.keys().copied().choose(&mut self.rng);
        let message = self.auditor.messages.keys().copied().choose(&mut self.rng);
        let (Some(destination), Some(message)) = (destination, message) else { return };
        if self.here.core.is_none() {
            return;
        }
        match self.rng.random_range(0..20) {
            18.. => self.confirm_any(),
            17 => self.want_retention(),
            16 => self.renew(destination),
            15 => self.register_again(),
            14 => self.edit(message),
            12.. => self.act(message, ActionKind::Retry),
            10 => self.drain(),
            11 => self.order_drain(DrainOrder::Cancel),
            0 => self.act_on(destination, DestinationActionKind::Pause),
            1..3 => self.act_on(destination, DestinationActionKind::Resume),
            // Which of the two it is the engine decides, by the destination's policy.
            3..7 => self.act(message, ActionKind::Resend { keep_lane: false }),
            _ => self.act(message, ActionKind::Dismiss),
        }
    }

    fn act_on(&mut self, destination: DestinationId, kind: DestinationActionKind) {
        self.tickets += 1;
        let (author, reason) = ("the operator".into(), "a simulation".into());
        let action = DestinationAction { destination, kind, author, reason };
        self.tell(Event::ActOnDestination { ticket: Ticket(self.tickets), action });
    }

    /// A destination begins anew, as after a change of what delivers for it.
    fn renew(&mut self, destination: DestinationId) {
        let settings = self.scenario.settings(&self.registered);
        let owns =
            |interface: &InterfaceSettings| interface.destinations.iter().any(|own| own.id == destination);
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.here.renewing.insert(ticket, destination);
        let change = LayoutChange {
            interfaces: settings.interfaces.into_iter().filter(owns).collect(),
            renewed: [destination].into(),
            pauses: settings.pauses,
            ..LayoutChange::default()
        };
        self.tell(Event::ChangeLayout { ticket, change });
    }

    pub(super) fn register_again(&mut self) {
        self.tickets += 1;
        let topology = self.scenario.topology();
        self.tell(Event::Register { ticket: Ticket(self.tickets), topology });
    }

    fn drain(&mut self) {
        // What follows is the business of whoever runs the process.
        let order = DrainOrder::Begin { author: "the operator".into(), then: AfterDrain::Stay };
        self.order_drain(order);
    }

    fn order_drain(&mut self, order: DrainOrder) {
        self.tickets += 1;
        self.here.is_draining = matches!(order, DrainOrder::Begin { .. });
        self.tell(Event::Drain { ticket: Ticket(self.tickets), order });
    }

    /// Every engine says so.
    fn is_drained(&self) -> bool {
        let is_quiet = |engine: &Engine| {
            let drain = engine.core.as_ref().and_then(|core| core.status().drain);
            drain.is_some_and(|drain| drain.is_quiet)
        };
        is_quiet(&self.here) && (self.scenario.is_alone || is_quiet(&self.there))
    }

    fn act(&mut self, message: MessageId, kind: ActionKind) {
        let deliveries = super::now(self.here.store.list_deliveries(message)).unwrap_or_default();
        let one = deliveries.iter().map(|delivery| delivery.destination).choose(&mut self.rng);
        let destination = one.filter(|_| self.rng.random_bool(0.6));
        let action = Action {
            message,
            destination,
            kind,
            author: "the operator".into(),
            reason: "a simulation".into(),
            request: None,
        };
        let actions = match (kind, destination) {
            (ActionKind::Resend { .. }, None) => split_resend(action, &deliveries),
            _ => vec![action],
        };
        for action in actions {
            self.send(action);
        }
    }

    fn send(&mut self, action: Action) {
        self.tickets += 1;
        self.tell(Event::Act { ticket: Ticket(self.tickets), action });
    }

    /// Faults cease when the clients are done; then everything drains; then the engine stops.
    pub(super) fn follow_phase(&mut self) -> Step {
        match self.phase {
            Phase::Faulty if self.left == 0 => {
                self.note(|world| format!("{:?} faults cease", world.monotonic));
                self.phase = Phase::Calm(self.monotonic);
                self.receiver.is_calm = true;
                self.here.store.set_full(false);
                self.waiting.retain(|_, (_, task)| !task.is_trouble());
                self.with_each(|world| {
                    world.mend_clock();
                    world.later(Duration::from_secs(6), Task::Mend);
                    Ok(())
                })?;
                self.later(Duration::from_secs(1), Task::Settle);
            }
            Phase::Calm(since) if self.monotonic > since + DRAIN_MAX => {
                return Err(format!(
                    "rule 2: what waits does not drain: {} {}",
                    self.waiting_deliveries(),
                    self.picture()
                ));
            }
            Phase::Faulty | Phase::Calm(_) | Phase::Stopping | Phase::Over => {}
        }
        Ok(())
    }

    /// Looks whether everything has drained; helps where only an operator can.
    pub(super) fn settle(&mut self) -> Step {
        if !matches!(self.phase, Phase::Calm(_)) {
            return Ok(());
        }
        let work = super::now(self.here.store.destinations_with_work()).unwrap_or_default();
        let is_missing = self.here.core.is_none() || (self.there.core.is_none() && !self.scenario.is_alone);
        if work.is_empty() && !is_missing && self.clients_are_done() {
            if self.is_drained() && !self.is_changing() {
                self.phase = Phase::Stopping;
                return self.with_each(|world| {
                    world.here.is_due = true;
                    world.tell(Event::Shutdown);
                    Ok(())
                });
            }
            // They have to say so before they may stop. A change of retention that nobody told the owner of
            // is the project's to tell.
            let is_changing = self.is_changing();
            self.with_each(|world| {
                world.here.is_due = true;
                world.drain();
                if is_changing {
                    world.register_again();
                }
                Ok(())
            })?;
        }
        self.with_each(|world| {
            world.here.is_due = true;
            world.help(&work);
            Ok(())
        })?;
        self.later(Duration::from_secs(1), Task::Settle);
        Ok(())
    }

    /// What only an operator can do.
    fn help(&mut self, work: &[DestinationId]) {
        let destinations: Vec<DestinationId> = self.auditor.own.ledgers.keys().copied().collect();
        for destination in destinations {
            // One that only waits must come back by itself.
            if self.auditor.own.ledgers.get(&destination).is_some_and(|ledger| !ledger.may_run()) {
                self.act_on(destination, DestinationActionKind::Resume);
            }
            let held = super::now(self.here.store.held_heads(destination)).unwrap_or_default();
            let waits = work.contains(&destination);
            for head in held.into_iter().filter(|_| waits) {
                self.send(Action {
                    message: head.message,
                    destination: Some(destination),
                    kind: ActionKind::Dismiss,
                    author: "the operator".into(),
                    reason: "it holds its lane".into(),
                    request: None,
                });
            }
        }
    }

    fn waiting_deliveries(&self) -> String {
        let mut waiting = Vec::new();
        for id in self.auditor.messages.keys() {
            let deliveries = super::now(self.here.store.list_deliveries(*id)).unwrap_or_default();
            let pending = deliveries.into_iter().filter(|view| view.state == DeliveryState::Pending);
            waiting.extend(pending.map(|view| format!("{id}@{}/{}", view.destination, view.lane.number())));
        }
        waiting.join(" ")
    }
}
