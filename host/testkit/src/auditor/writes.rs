//! Transactions: what is stored, when it is flushed, and whether it was ever said. Rules 1 and 2.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_model::{DeliveryState, DestinationId, Lane, MessageId, Round, Timestamp, code};
use portway_store::{
    ActionKind, ActionOutcome, DeliveryResult, DestinationActionKind, Durability, MessageOutcome, NewMessage,
    ResultOutcome, Settled, WriteBatch, WriteOutcome,
};

use super::books::{Duty, Ledger, Shadow};
use super::{Auditor, Verdict};
use crate::content;

impl Auditor {
    /// A transaction is in the store; the engine does not know it yet.
    pub fn committed(&mut self, batch: &WriteBatch, outcome: &WriteOutcome) -> Verdict {
        for (message, outcome) in batch.messages.iter().zip(&outcome.messages) {
            self.stored(message, outcome, (batch.durability, batch.now))?;
        }
        for (result, outcome) in batch.results.iter().zip(&outcome.results) {
            self.settled(result, outcome, (batch.durability, batch.now))?;
        }
        for (action, outcome) in batch.actions.iter().zip(&outcome.actions) {
            if let ActionOutcome::Done(changed) = outcome {
                for (destination, lane, round) in changed {
                    self.changed(action.kind, action.message, (*destination, *lane, *round));
                }
            }
        }
        for suspect in &batch.suspects {
            let is_once = self.own.ledgers.get(&suspect.destination).is_some_and(Ledger::is_once);
            if is_once && batch.durability != Durability::Strict {
                return Err("what may not arrive twice is recorded and not flushed".into());
            }
            self.own.recorded.insert((suspect.destination, suspect.message));
            self.own.ever_recorded.insert((suspect.destination, suspect.message));
            if let Some(duty) = self.duty(suspect.destination, suspect.message) {
                duty.was_recorded = true;
            }
        }
        for action in &batch.destination_actions {
            if batch.durability != Durability::Strict {
                return Err("an operator's word on a destination is not flushed".into());
            }
            match &action.kind {
                DestinationActionKind::Pause => self.paused.insert(action.destination),
                DestinationActionKind::Resume => self.paused.remove(&action.destination),
                DestinationActionKind::RemoveState(_) => false,
            };
        }
        if batch.durability == Durability::Strict {
            self.unflushed.clear();
            for ledger in self.own.ledgers.values_mut() {
                ledger.accepted = ledger.accepted.saturating_sub(ledger.written);
                ledger.written = 0;
            }
        }
        Ok(())
    }

    fn stored(
        &mut self,
        message: &NewMessage,
        outcome: &MessageOutcome,
        (durability, stored_at): (Durability, Timestamp),
    ) -> Verdict {
        let MessageOutcome::Stored { id, .. } = outcome else { return Ok(()) };
        let state =
            if message.draft.doubt.is_some() { DeliveryState::Quarantined } else { DeliveryState::Pending };
        let mut duties = BTreeMap::new();
        for delivery in &message.deliveries {
            let holds = self.own.ledgers.get(&delivery.destination).is_some_and(Ledger::holds);
            let mut duty = Duty::new(delivery.lane, state);
            duty.said.quarantined = state == DeliveryState::Quarantined;
            duty.is_holding = duty.said.quarantined && holds && delivery.lane.is_ordered();
            duties.insert(delivery.destination, duty);
        }
        let body = message.draft.body.clone();
        let (content, _) = content::read(&body).ok_or("a stored message without content")?;
        if durability == Durability::Relaxed {
            self.unflushed.insert(*id);
        }
        let same = self.by_content.entry(content).or_default();
        same.push(*id);
        if same.len() > 1 && self.once.contains(&content) {
            return Err(format!("{content:?} came with a cursor and is stored twice"));
        }
        let shadow = Shadow {
            interface: message.interface,
            body,
            stored_at,
            acknowledged: None,
            received: self.received.get(&content).copied().unwrap_or(0),
            is_of_second: self.is_second,
            duties,
        };
        if self.messages.insert(*id, shadow).is_some() {
            return Err(format!("message {id} is stored twice"));
        }
        Ok(())
    }

    /// Rule 2: a delivery ends only as somebody said.
    fn settled(
        &mut self,
        result: &DeliveryResult,
        outcome: &ResultOutcome,
        how: (Durability, Timestamp),
    ) -> Verdict {
        let (destination, message) = (result.destination, result.message);
        if let Some(ledger) = self.own.ledgers.get_mut(&destination) {
            ledger.written += 1;
        }
        let ResultOutcome::Applied(routed) = outcome else { return Ok(()) };
        if Some(result.epoch) != self.tenures.newest {
            return self.settled_late(result, routed, how);
        }
        if matches!(&result.settled, Settled::Retry { failure, .. } if failure.code == "not-tried") {
            // It was tried by itself and lived: no suspicion is left.
            self.kills.remove(&(destination, message));
        }
        let name = format!("message {message} at destination {destination}");
        let ledger = self.own.ledgers.get(&destination).ok_or("a result of no destination")?;
        let (attempts_max, holds) = (ledger.settings.retry.attempts_max, ledger.holds());
        // Nobody outside sees what is dropped before it is stored.
        let is_once = ledger.is_once();
        self.own.recorded.remove(&(destination, message));
        let ledger = self.own.ledgers.get(&destination).ok_or("a result of no destination")?;
        let is_drop = ledger.drops() && result.attempted.is_none();
        let Some(duty) = self.duty(destination, message) else {
            return Err(format!("{name} is settled and unknown"));
        };
        let is_final = !matches!(result.settled, Settled::Retry { .. });
        if is_drop && is_final && !duty.is_over {
            duty.said.filtered = true;
            duty.is_over = true;
            duty.is_finished = true;
        }
        if is_once
            && matches!(&result.settled, Settled::Quarantined(why) if why.code == code::MAY_HAVE_ARRIVED)
        {
            duty.said.quarantined |= duty.was_recorded;
        }
        if matches!(result.settled, Settled::Routed(_)) {
            *duty.routed.entry(result.round).or_default() += 1;
        }
        if !duty.was_said(result, routed) {
            return Err(format!(
                "rule 2: {name} is stored as {:?}, and nobody said so: {duty:?}",
                result.settled
            ));
        }
        if duty.is_unclear || duty.was_reverted {
            duty.is_unclear = false;
            duty.attempts = result.attempts.0;
            duty.is_over |= is_final;
            duty.is_finished |= is_final;
        }
        if result.attempts.0 > duty.attempts || (attempts_max > 0 && result.attempts.0 > attempts_max) {
            return Err(format!("{name} has {} attempts, {} were seen", result.attempts, duty.attempts));
        }
        if duty.routed.get(&result.round).is_some_and(|count| *count > 1) {
            return Err(format!("{name} was routed twice"));
        }
        duty.settle(&result.settled, holds);
        if let Settled::Routed(messages) = &result.settled {
            for (message, outcome) in messages.iter().zip(routed) {
                self.stored(message, outcome, how)?;
            }
        }
        Ok(())
    }

    /// A result of a tenure that is over: the owner may not know, and try it as well.
    fn settled_late(
        &mut self,
        result: &DeliveryResult,
        routed: &[MessageOutcome],
        how: (Durability, Timestamp),
    ) -> Verdict {
        let name = format!("message {} at destination {}", result.message, result.destination);
        if !result.settled.outlives_owner() {
            return Err(format!("rule 4: {name} is stored as {:?} in a lost epoch", result.settled));
        }
        self.own.recorded.remove(&(result.destination, result.message));
        let duty = self.duty(result.destination, result.message);
        let duty = duty.ok_or_else(|| format!("{name} is settled and unknown"))?;
        if !duty.said.sent {
            return Err(format!("rule 2: {name} is stored as sent, and nobody said so: {duty:?}"));
        }
        duty.state = DeliveryState::Sent;
        (duty.is_finished, duty.is_holding) = (true, false);
        if let Settled::Routed(messages) = &result.settled {
            *duty.routed.entry(result.round).or_default() += 1;
            if duty.routed.get(&result.round).is_some_and(|count| *count > 1) {
                return Err(format!("{name} was routed twice"));
            }
            for (message, outcome) in messages.iter().zip(routed) {
                self.stored(message, outcome, how)?;
            }
        }
        Ok(())
    }

    fn changed(&mut self, kind: ActionKind, message: MessageId, now: (DestinationId, Lane, Round)) {
        let (destination, lane, round) = now;
        if kind != ActionKind::Retry {
            self.kills.remove(&(destination, message));
            self.suspects.remove(&(destination, message));
            self.ends.remove(&(destination, message));
        }
        let is_owner = self.is_last_owner();
        let Some(duty) = self.duty(destination, message) else { return };
        if kind == ActionKind::Retry {
            duty.not_before = Duration::ZERO;
            return;
        }
        (duty.lane, duty.round) = (lane, round);
        duty.was_recorded &= matches!(kind, ActionKind::Dismiss);
        duty.is_holding = false;
        // The owner may never know what another engine let an operator do.
        (duty.is_changing, duty.is_unclear) = (true, !is_owner);
        match kind {
            ActionKind::Retry => {}
            ActionKind::Dismiss => {
                duty.state = DeliveryState::Dismissed;
                duty.is_finished = true;
            }
            ActionKind::Resend { .. } => {
                duty.state = DeliveryState::Pending;
                duty.is_finished = false;
                duty.is_over = false;
                duty.attempts = 0;
                duty.not_before = Duration::ZERO;
                duty.was_put_off |= !lane.is_ordered();
            }
        }
    }

    /// The engine hears what became of its transaction.
    pub fn told(&mut self, batch: &WriteBatch, outcome: &WriteOutcome) -> Verdict {
        if self.is_last_owner() {
            self.owner_told(batch, outcome)?;
        }
        for action in &batch.destination_actions {
            let Some(ledger) = self.own.ledgers.get_mut(&action.destination) else { continue };
            match &action.kind {
                DestinationActionKind::Pause => ledger.is_paused = true,
                DestinationActionKind::Resume => {
                    ledger.is_paused = false;
                    ledger.is_stopped = false;
                    ledger.runaways = 0;
                }
                DestinationActionKind::RemoveState(_) => {}
            }
        }
        Ok(())
    }

    fn owner_told(&mut self, batch: &WriteBatch, outcome: &WriteOutcome) -> Verdict {
        for (action, outcome) in batch.actions.iter().zip(&outcome.actions) {
            let ActionOutcome::Done(changed) = outcome else { continue };
            for (destination, _, round) in changed {
                let Some(duty) = self.duty(*destination, action.message) else { continue };
                duty.is_changing = false;
                // The same transaction may have made it pending again.
                duty.is_over |= duty.state == DeliveryState::Dismissed && duty.round == *round;
            }
        }
        for (suspect, count) in batch.suspects.iter().zip(&outcome.suspects) {
            // What an operator changed in the same transaction is not the engine's to give up.
            let is_once = self.own.ledgers.get(&suspect.destination).is_some_and(Ledger::is_once);
            let most = if is_once { 2 } else { 4 };
            let duty = self.duty(suspect.destination, suspect.message);
            if *count >= most && duty.is_some_and(|duty| duty.state == DeliveryState::Pending) {
                let slot = (suspect.destination, suspect.message);
                // That another engine recorded it and lives nobody can tell from an end of its process.
                let of_other = u32::from(self.aside.ever_recorded.contains(&slot));
                let ends = self.ends.get(&slot).copied().unwrap_or(0) + of_other;
                if !is_once && ends + 1 < most {
                    return Err(format!(
                        "message {} at destination {} is given up after {ends} ends of a process",
                        suspect.message, suspect.destination
                    ));
                }
                self.given_up(suspect.destination, suspect.message);
            }
        }
        Ok(())
    }
}
