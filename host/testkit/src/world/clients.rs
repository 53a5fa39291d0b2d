//! Sources: connections that hand over messages and wait for their fates.

use std::time::Duration;

use portway_engine::{Edit, Event, Fate, Submission, Ticket, Unit};
use portway_model::{Draft, Key, MessageId};
use rand::RngExt;

use super::pollers::Position;
use super::{Phase, Step, Task, World};
use crate::auditor::Death;
use crate::content::{self, Content, Kind};

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    /// It is connected to the second engine.
    is_at_second: bool,
    pub(super) interface: usize,
    pub(super) waits_for: Option<Ticket>,
    /// What it sent last, while it does not know that it was stored.
    pub(super) unsure: Vec<Draft>,
    /// Of a source with a cursor.
    pub(super) position: Option<Position>,
}

impl World {
    pub(super) fn start_clients(&mut self) {
        let sources =
            self.scenario.interfaces.iter().enumerate().filter(|(_, interface)| !interface.is_target);
        let sources: Vec<usize> = sources.map(|(number, _)| number).collect();
        for interface in sources {
            let has_poller = self.rng.random_bool(0.4);
            for n in 0..self.scenario.clients {
                let position = (has_poller && n == 0).then(Position::default);
                let is_at_second = self.any_engine();
                let client =
                    Client { is_at_second, interface, waits_for: None, unsure: Vec::new(), position };
                self.clients.push(client);
                let number = self.clients.len() - 1;
                self.client_pauses(number);
            }
        }
    }

    /// Between two messages a connection may be made to the other engine.
    fn client_moves(&mut self, number: usize) {
        if self.rng.random_bool(0.2) {
            let is_at_second = self.any_engine();
            if let Some(client) = self.clients.get_mut(number) {
                client.is_at_second = is_at_second;
            }
        }
        if let Some(is_at_second) = self.clients.get(number).map(|client| client.is_at_second) {
            self.turn_to(is_at_second);
        }
    }

    pub(super) fn client_pauses(&mut self, number: usize) {
        let longest = if self.rng.random_bool(0.1) { 2_000_000 } else { 5_000 };
        let after = Duration::from_micros(self.rng.random_range(0..longest));
        self.later(after, Task::Client(number));
    }

    pub(super) fn client_sends(&mut self, number: usize) -> Step {
        let Some(client) = self.clients.get(number) else { return Ok(()) };
        if client.waits_for.is_some() || self.left == 0 {
            return Ok(());
        }
        self.client_moves(number);
        self.here.is_due = true;
        if self.here.core.is_none() {
            self.client_pauses(number);
            return Ok(());
        }
        let Some(client) = self.clients.get(number) else { return Ok(()) };
        let (source, is_unsure) = (client.interface, !client.unsure.is_empty());
        let has_position = client.position.is_some();
        let Some(interface) = self.registered.interfaces.get(source).map(|(id, _)| *id) else {
            return Ok(());
        };
        self.left -= 1;
        self.something_happens();
        if has_position {
            return self.poller_sends(number, interface);
        }
        let repeats = is_unsure && self.rng.random_bool(0.7);
        let drafts = if repeats { self.unsure(number) } else { self.drafts(source) };
        let bytes = drafts.iter().map(|draft| draft.body.len()).sum();
        match self.here.gate.admit(interface, bytes) {
            Err(_) => self.client_pauses(number),
            Ok(permit) => {
                self.tickets += 1;
                let ticket = Ticket(self.tickets);
                self.auditor.submitted(ticket, (interface, self.here.is_draining), &drafts, repeats);
                if let Some(client) = self.clients.get_mut(number) {
                    client.waits_for = Some(ticket);
                    client.unsure.clone_from(&drafts);
                }
                let (received_at, came_at) = (self.now().wall, self.now().monotonic);
                let (unit, edit) = (Unit::Each, None);
                let submission = Submission { interface, received_at, came_at, drafts, unit, edit, permit };
                self.tell(Event::Submit { ticket, submission });
            }
        }
        Ok(())
    }

    /// An operator corrects a message.
    pub(super) fn edit(&mut self, of: MessageId) {
        let Some(shadow) = self.auditor.messages.get(&of) else { return };
        let (interface, destinations) = (shadow.interface, shadow.duties.keys().copied().collect::<Vec<_>>());
        let only = destinations.into_iter().filter(|_| self.rng.random_bool(0.7)).collect();
        self.contents += 1;
        let draft = content::draft(Content(self.contents), Kind::Plain, None, &mut self.rng);
        let Ok(permit) = self.here.gate.admit(interface, draft.body.len()) else { return };
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let drafts = vec![draft];
        self.auditor.submitted(ticket, (interface, self.here.is_draining), &drafts, false);
        let destinations = self.rng.random_bool(0.5).then_some(only);
        let (author, reason) = ("the operator".into(), "a simulation".into());
        let edit = Some(Box::new(Edit { of, destinations, author, reason }));
        let (received_at, came_at) = (self.now().wall, self.now().monotonic);
        let unit = Unit::Each;
        let submission = Submission { interface, received_at, came_at, drafts, unit, edit, permit };
        self.tell(Event::Submit { ticket, submission });
    }

    fn unsure(&mut self, number: usize) -> Vec<Draft> {
        self.clients.get_mut(number).map(|client| std::mem::take(&mut client.unsure)).unwrap_or_default()
    }

    pub(super) fn drafts(&mut self, source: usize) -> Vec<Draft> {
        let has_dedupe =
            self.scenario.interfaces.get(source).is_some_and(|source| source.dedupe_window.is_some());
        let count = if self.rng.random_bool(0.7) { 1 } else { self.rng.random_range(1..8) };
        let mut drafts = Vec::with_capacity(count);
        for _ in 0..count {
            self.contents += 1;
            let content = Content(self.contents);
            let kind = content::pick_kind(self.scenario.rates.odd, &mut self.rng);
            let dedupe = if has_dedupe { Key::new(&format!("dedupe-{}", self.contents)) } else { None };
            drafts.push(content::draft(content, kind, dedupe, &mut self.rng));
        }
        drafts
    }

    pub(super) fn client_answered(&mut self, ticket: Ticket, fates: &[Fate]) {
        let Some(number) = self.clients.iter().position(|client| client.waits_for == Some(ticket)) else {
            return;
        };
        if self.clients.get(number).is_some_and(|client| client.position.is_some()) {
            self.poller_answered(number, fates);
        } else if let Some(client) = self.clients.get_mut(number) {
            client.waits_for = None;
            let is_stored = |fate: &Fate| !matches!(fate, Fate::NotStored { .. });
            let mut fates = fates.iter();
            client.unsure.retain(|_| !fates.next().is_some_and(is_stored));
        }
        self.client_pauses(number);
    }

    /// The process is gone: nobody answers.
    pub(super) fn disconnect_clients(&mut self) {
        for number in 0..self.clients.len() {
            if let Some(client) = self.clients.get_mut(number)
                && client.is_at_second == self.is_second
                && client.waits_for.take().is_some()
            {
                self.client_pauses(number);
            }
        }
    }

    /// With each submission something else may happen.
    fn something_happens(&mut self) {
        if self.phase != Phase::Faulty {
            return;
        }
        let rates = self.scenario.rates;
        // Not always to the engine that was handed something.
        let (before, other) = (self.is_second, self.any_engine());
        self.turn_to(other);
        self.here.is_due = true;
        let soon = Duration::from_micros(self.rng.random_range(0..50_000));
        if self.rng.random_bool(rates.death) {
            let death = if self.rng.random_bool(0.5) { Death::Process } else { Death::Power };
            self.later(soon, Task::Die(death));
        }
        if self.rng.random_bool(rates.death / 3.0) {
            self.tell(Event::Shutdown);
        }
        if self.rng.random_bool(rates.operator) {
            self.later(soon, Task::Operate);
        }
        if self.rng.random_bool(rates.locks) {
            self.later(soon, Task::LoseLock);
        }
        if self.rng.random_bool(rates.server) {
            self.later(soon, Task::EndServer);
        }
        if self.rng.random_bool(rates.clock_step) {
            self.step_clock();
        }
        if self.rng.random_bool(rates.leap) {
            self.leap();
        }
        if self.rng.random_bool(rates.wrong_clock) {
            self.break_clock();
        }
        if self.rng.random_bool(rates.full) {
            self.later(soon, Task::Room(false));
            self.later(soon + Duration::from_secs(3), Task::Room(true));
        }
        self.turn_to(before);
    }

    fn step_clock(&mut self) {
        let step = self.rng.random_range(1..7_200_000);
        if self.rng.random_bool(0.5) {
            self.here.wall += step;
            self.auditor.clock_stepped();
            self.auditor.clock_is_ahead(Duration::from_millis(self.here.wall.saturating_sub(super::START)));
        } else {
            self.here.wall = self.here.wall.saturating_sub(step);
        }
        self.note(|world| format!("{:?} the clock says {}", world.monotonic, world.now().wall));
    }

    pub(super) fn clients_are_done(&self) -> bool {
        self.left == 0 && self.clients.iter().all(|client| client.waits_for.is_none())
    }
}
