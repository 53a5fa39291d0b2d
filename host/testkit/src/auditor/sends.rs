//! Runs: what may be sent now, what arrived, what was said of it. Rules 2 and 3.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_engine::{Run, RunId, RunReport};
use portway_model::{AttemptNo, DeliveryState, DestinationId, Envelope, Lane, MessageId};

use super::books::{Ledger, Shadow};
use super::duty::{Hearing, Reading, read};
use super::recovery::Trial;
use super::tenures::Handed;
use super::{Auditor, Verdict};

/// Times are stored in milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);

impl Auditor {
    /// The engine hands a run over.
    pub fn handed_over(&mut self, id: RunId, run: &Run, monotonic: Duration) -> Verdict {
        self.run_limits(run)?;
        self.may_send(monotonic)?;
        let destination = run.destination;
        if self.own.ledgers.get(&destination).is_some_and(|ledger| !ledger.may_run()) {
            return Err(format!("a run for destination {destination}, which is stopped or paused"));
        }
        let is_owner = self.is_owner();
        if is_owner {
            self.state_is_readable(run)?;
        }
        let mut before = Vec::new();
        for envelope in &run.messages {
            self.is_stored(run, envelope)?;
            if is_owner {
                self.may_be_sent(run, envelope, &before, monotonic)?;
            }
            before.push(envelope.id);
        }
        let mut hints = Vec::new();
        for envelope in &run.messages {
            hints.push((envelope.id, self.hand_over(id, destination, envelope.id)));
        }
        if let Some(ledger) = self.own.ledgers.get_mut(&destination) {
            ledger.meter.begin(run.messages.len(), &ledger.settings, monotonic)?;
            ledger.runs += 1;
            ledger.in_hand += u32::try_from(run.messages.len()).unwrap_or(u32::MAX);
        }
        self.own.runs.insert(id, Handed { epoch: self.own.epoch, hints });
        Ok(())
    }

    /// The round in which a delivery is in hand; the highest number: nobody outside knows.
    fn hand_over(&mut self, id: RunId, destination: DestinationId, message: MessageId) -> u32 {
        let is_owner = self.is_owner();
        let Some(duty) = self.duty(destination, message) else { return u32::MAX };
        let mut round = duty.round.0;
        // The tenure of another engine may be over, and it does not know yet: what it sends may arrive twice.
        if is_owner && duty.is_uncertain() {
            duty.is_unclear = true;
            round = u32::MAX;
        } else if is_owner {
            duty.in_hand = Some((id, duty.round));
        }
        let lane = duty.lane;
        self.begins_in(destination, lane);
        round
    }

    fn is_stored(&self, run: &Run, envelope: &Envelope) -> Verdict {
        let (destination, id) = (run.destination, envelope.id);
        let name = || format!("message {id} at destination {destination}");
        let known = self.messages.get(&id).or_else(|| self.vanished.get(&id));
        // What an owner before sent is done in the store and may expire; the owner of now may not know it.
        let is_open = |shadow: &&Shadow| shadow.duties.get(&destination).is_some_and(|duty| !duty.is_over);
        let expired = || self.expired.get(&id).filter(|shadow| !self.is_owner() || is_open(shadow));
        let Some(shadow) = known.or_else(expired) else {
            return Err(format!("{} is sent and not stored", name()));
        };
        if shadow.body != envelope.body {
            return Err(format!("{} is sent with other bytes than were received", name()));
        }
        if !shadow.duties.contains_key(&destination) {
            return Err(format!("{} is no delivery", name()));
        }
        Ok(())
    }

    fn may_be_sent(
        &self,
        run: &Run,
        envelope: &Envelope,
        before: &[MessageId],
        monotonic: Duration,
    ) -> Verdict {
        let (destination, id) = (run.destination, envelope.id);
        let name = format!("message {id} at destination {destination}");
        let duty = self.messages.get(&id).and_then(|shadow| shadow.duties.get(&destination));
        // The store lost it, and the engine does not know.
        let Some(duty) = duty else { return Ok(()) };
        if duty.is_over && !duty.was_reverted {
            return Err(format!("{name} is sent though nothing is to be sent: {duty:?}"));
        }
        if duty.is_uncertain() {
            return Ok(());
        }
        if duty.in_hand.is_some_and(|(_, round)| round == duty.round) || before.contains(&id) {
            return Err(format!("{name} is in hand twice"));
        }
        if duty.lane.is_ordered() != run.ordered {
            return Err(format!("{name} is sent as of another lane than it is stored in"));
        }
        let attempts_max =
            self.own.ledgers.get(&destination).map_or(0, |ledger| ledger.settings.retry.attempts_max);
        if envelope.attempt != AttemptNo(duty.attempts + 1)
            || (attempts_max > 0 && envelope.attempt.0 > attempts_max)
        {
            return Err(format!(
                "{name} is sent as attempt {}, after {} of {attempts_max}",
                envelope.attempt, duty.attempts
            ));
        }
        if monotonic + ROUNDING < duty.not_before {
            return Err(format!("{name} is tried again {:?} early", duty.not_before - monotonic));
        }
        let key = (destination, id);
        let is_once = self.own.ledgers.get(&destination).is_some_and(Ledger::is_once);
        if is_once && self.suspects.contains_key(&key) {
            return Err(format!("{name} may have arrived, and is sent again"));
        }
        if is_once && !self.own.recorded.contains(&key) {
            return Err(format!("{name} may not arrive twice, and was not recorded before it is sent"));
        }
        let is_excused = duty.was_put_off || self.is_displaced(destination, id);
        match self.suspects.get(&key).filter(|_| !is_excused) {
            Some(_) if !self.own.ever_recorded.contains(&key) => {
                return Err(format!("{name} was in hand when the process died and is not recorded"));
            }
            Some(Trial::Singly) if !run.singly => {
                return Err(format!("{name} was in hand when two processes died and is not tried by itself"));
            }
            Some(Trial::Recorded | Trial::Singly) | None => {}
        }
        if run.ordered { self.is_next(destination, duty.lane, id, before) } else { Ok(()) }
    }

    /// Messages of the other engine stand before it, which its own did not know when it had it in hand: then it
    /// need not be among the first, which are tried by themselves.
    pub(super) fn is_displaced(&self, destination: DestinationId, id: MessageId) -> bool {
        let Some(own) = self.messages.get(&id) else { return false };
        let is_open = |shadow: &Shadow| {
            shadow.duties.get(&destination).is_some_and(|duty| duty.state == DeliveryState::Pending)
        };
        self.messages
            .range(..id)
            .any(|(_, shadow)| shadow.is_of_second != own.is_of_second && is_open(shadow))
    }

    /// Rule 3: everything before it in its lane is finished, and nothing holds the lane.
    fn is_next(
        &self,
        destination: DestinationId,
        lane: Lane,
        id: MessageId,
        before: &[MessageId],
    ) -> Verdict {
        let Some(own) = self.messages.get(&id) else { return Ok(()) };
        for (earlier, shadow) in self.messages.range(..id) {
            let Some(duty) = shadow.duties.get(&destination).filter(|duty| duty.lane == lane) else {
                continue;
            };
            // Of what two engines stored side by side either may be first.
            let is_before = shadow.acknowledged.is_some_and(|at| at < own.received);
            if shadow.is_of_second != own.is_of_second && !is_before {
                continue;
            }
            if duty.is_holding {
                return Err(format!(
                    "rule 3: message {id} is sent to destination {destination}, held by {earlier}"
                ));
            }
            if !duty.is_finished && !before.contains(earlier) {
                return Err(format!(
                    "rule 3: message {id} is sent to destination {destination} before {earlier} is finished"
                ));
            }
        }
        let in_order = before.last().is_none_or(|last| *last < id);
        if in_order { Ok(()) } else { Err(format!("rule 3: message {id} is out of order in its run")) }
    }

    /// These reached the receiver.
    pub fn arrived(&mut self, id: RunId, run: &Run, arrived: &[MessageId]) -> Verdict {
        self.arrives_in_time(id, run)?;
        let destination = run.destination;
        let is_once = self.own.ledgers.get(&destination).is_some_and(Ledger::is_once);
        let handed = self.own.runs.get(&id).into_iter();
        let rounds: BTreeMap<MessageId, u32> = handed.flat_map(|handed| &handed.hints).copied().collect();
        for message in arrived {
            let Some(duty) = self.duty(destination, *message) else { continue };
            duty.arrived += 1;
            // Of one that an operator just changed nobody outside knows the round.
            let round = rounds.get(message).copied().filter(|round| *round != u32::MAX);
            if is_once && round.is_some_and(|round| !duty.arrived_in.insert(round)) {
                return Err(format!(
                    "message {message} arrived twice at destination {destination}, where it may not"
                ));
            }
            self.arrived += 1;
        }
        Ok(())
    }

    /// A message ended the process.
    pub fn killed(&mut self, destination: DestinationId, message: MessageId) -> Verdict {
        // Among those that were put off it is not always one of the first that are tried by themselves.
        let was_put_off = self.duty(destination, message).is_some_and(|duty| duty.was_put_off);
        let kills = self.kills.entry((destination, message)).or_default();
        *kills += 1;
        // The first is not recorded. A power loss forgets what was, an end in order speaks for what was in hand.
        if *kills > 4 + self.pardons + if was_put_off { 3 } else { 0 } {
            return Err(format!("message {message} ended the process {kills} times"));
        }
        Ok(())
    }

    /// The engine is about to hear this report.
    pub fn reported(&mut self, id: RunId, run: &Run, report: &RunReport, monotonic: Duration) -> Verdict {
        let Handed { epoch, hints } = self.own.runs.remove(&id).ok_or("a report of no run")?;
        // It says nothing of a destination that begins anew after it.
        let was_lost = epoch != self.own.epoch;
        let is_over = epoch != self.tenures.newest;
        let destination = run.destination;
        let Some(ledger) = self.own.ledgers.get_mut(&destination) else { return Ok(()) };
        let readings = read(run, report);
        ledger.give_back(&readings);
        if !was_lost {
            ledger.hear(&readings, report.stop.as_ref());
        }
        let hearing = Hearing { policy: ledger.settings.retry, holds: ledger.holds(), monotonic };
        let mut accepted = 0;
        for ((message, round), reading) in hints.into_iter().zip(readings) {
            if is_over {
                self.said_late(destination, (message, round), reading);
                continue;
            }
            self.suspects.remove(&(destination, message));
            let Some(duty) = self.duty(destination, message) else { continue };
            if duty.in_hand.is_some_and(|(run, _)| run == id) {
                duty.in_hand = None;
            }
            accepted += u32::from(duty.hear(round, reading, &hearing));
        }
        if let Some(ledger) = self.own.ledgers.get_mut(&destination) {
            ledger.accepted += accepted;
        }
        Ok(())
    }

    /// Of a tenure that is over only what was sent counts.
    fn said_late(
        &mut self,
        destination: DestinationId,
        (message, round): (MessageId, u32),
        reading: Reading,
    ) {
        if reading == Reading::Sent
            && let Some(duty) = self.duty(destination, message)
        {
            duty.said.sent = true;
            duty.is_finished |= duty.round.0 == round;
        }
    }

    /// The engine hears that this delivery ended the process too often.
    pub fn given_up(&mut self, destination: DestinationId, message: MessageId) {
        let holds = self.own.ledgers.get(&destination).is_some_and(Ledger::holds);
        self.suspects.remove(&(destination, message));
        if let Some(ledger) = self.own.ledgers.get_mut(&destination) {
            ledger.accepted += 1;
        }
        if let Some(duty) = self.duty(destination, message) {
            duty.said.quarantined = true;
            duty.attempts += 1;
            duty.is_over = true;
            duty.is_finished = true;
            duty.is_holding = holds && duty.lane.is_ordered();
        }
    }

    pub(super) fn duty(
        &mut self,
        destination: DestinationId,
        message: MessageId,
    ) -> Option<&mut super::Duty> {
        self.messages.get_mut(&message)?.duties.get_mut(&destination)
    }
}
