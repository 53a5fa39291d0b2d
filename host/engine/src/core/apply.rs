//! What follows a write: waiters are answered, and then destinations learn what is stored.
//!
//! In two steps, so that the shell can send the answers before the second: sources wait for nothing else.

use portway_model::{Failure, MessageId, code};
use portway_store::{
    Action, ActionOutcome, Durability, ErrorKind, Maintenance, MessageOutcome, NewMessage, ResultOutcome,
    Settled, StoreError, WriteOutcome,
};

use super::Core;
use crate::committer::{After, Batch};
use crate::completer::{Completer, Finished};
use crate::dispatcher::Changed;
use crate::event::{ActError, Effect, EngineError, Ticket};
use crate::fate::Fate;
use crate::intake::Seat;

/// A message that was stored, for its destinations.
type Hint = (MessageId, NewMessage);

/// What a commit stored, of which those who did not wait for it do not know yet.
#[derive(Debug)]
pub(super) struct Unspread {
    batch: Batch,
    outcome: WriteOutcome,
    hints: Vec<Hint>,
}

impl Core {
    pub(super) fn after_write(&mut self, after: After) {
        match after {
            After::Committed(batch, outcome) => {
                self.housekeeping.wrote();
                return self.committed(batch, outcome);
            }
            After::Refused(batch, text) => self.refused(batch, &text),
            After::Full(batch, text) => self.full(batch, text),
            After::Again => {}
            After::Ended(error) => self.end(Err(error)),
        }
        self.unpark();
    }

    fn unpark(&mut self) {
        if !self.committer.is_writing() {
            self.with_dispatcher(|dispatcher, ctx| dispatcher.unpark(ctx));
        }
    }

    /// Answers who waited; the rest is left for [`Core::spread`].
    fn committed(&mut self, mut batch: Batch, mut outcome: WriteOutcome) {
        let had_messages = !batch.messages.is_empty();
        let answered_before = self.out.len();
        let mut hints: Vec<Hint> = Vec::with_capacity(batch.messages.len());
        let messages = std::mem::take(&mut batch.messages).into_iter();
        for ((seat, message), outcome) in messages.zip(std::mem::take(&mut outcome.messages)) {
            hints.extend(stored_id(&outcome).map(|id| (id, message)));
            self.tell(seat, fate(&outcome));
        }
        for (seat, _) in std::mem::take(&mut batch.cursors) {
            self.tell(seat, Fate::Kept);
        }
        if had_messages {
            let answered = self.out.len() - answered_before;
            let took = self.committer.status.last;
            self.gather.committed(took, answered, self.at.monotonic);
        }
        self.unspread = Some(Unspread { batch, outcome, hints });
    }

    /// Tells destinations and operators what the last commit stored, if they do not know it yet.
    pub(super) fn spread(&mut self) {
        let Some(Unspread { batch, outcome, mut hints }) = self.unspread.take() else { return };
        self.hear_with_write(&outcome.elsewhere);
        let pairs = || batch.results.iter().zip(&outcome.results);
        if pairs().any(|(finished, outcome)| self.tells_of_loss(&finished.result, outcome)) {
            self.lose();
        }
        for (finished, outcome) in batch.results.into_iter().zip(outcome.results) {
            self.written(finished, outcome, &mut hints);
        }
        // A lane takes hints in the order in which they are stored.
        if !hints.is_sorted_by_key(|(id, _)| *id) {
            hints.sort_by_key(|(id, _)| *id);
        }
        for (id, message) in hints {
            self.with_dispatcher(|dispatcher, ctx| dispatcher.stored(id, message, ctx));
        }
        if batch.durability == Durability::Strict {
            let places = self.completer.flushed();
            self.with_dispatcher(|dispatcher, ctx| dispatcher.flushed(places, ctx));
        }
        for ((ticket, action), outcome) in batch.actions.into_iter().zip(outcome.actions) {
            self.acted(ticket, &action, outcome);
        }
        // Before the suspects: what was only recorded is not handed over to a destination that is paused.
        for (ticket, action) in batch.destination_actions {
            self.remember_while_asking(&action);
            self.with_dispatcher(|dispatcher, ctx| dispatcher.acted_on_destination(action, ctx));
            self.out.push(Effect::Acted { ticket, outcome: Ok(ActionOutcome::Done(Vec::new())) });
        }
        for ((run, suspect), count) in batch.suspects.into_iter().zip(outcome.suspects) {
            self.with_dispatcher_out(|dispatcher, ctx, out| {
                dispatcher.recorded(run, suspect.message, count, ctx, out)
            });
        }
        self.unpark();
    }

    fn tell(&mut self, seat: Seat, fate: Fate) {
        if let Some((ticket, fates)) = self.intake.answer(seat, fate) {
            self.answer(ticket, fates);
        }
    }

    fn written(&mut self, finished: Finished, outcome: ResultOutcome, hints: &mut Vec<Hint>) {
        self.completer.wrote(&finished, self.at.monotonic);
        let (applied, routed) = match outcome {
            ResultOutcome::Applied(routed) => (true, routed),
            ResultOutcome::Stale | ResultOutcome::Disowned => (false, Vec::new()),
        };
        self.with_dispatcher(|dispatcher, ctx| dispatcher.written(&finished, applied, ctx));
        if let Settled::Routed(messages) = finished.result.settled {
            let stored = messages.into_iter().zip(routed);
            hints.extend(stored.filter_map(|(message, outcome)| Some((stored_id(&outcome)?, message))));
        }
    }

    fn acted(&mut self, ticket: Ticket, action: &Action, outcome: ActionOutcome) {
        if let ActionOutcome::Done(changed) = &outcome {
            for now in changed {
                let changed = Changed::new(action, *now);
                self.with_dispatcher(|dispatcher, ctx| dispatcher.acted(changed, action.kind, ctx));
            }
        }
        self.out.push(Effect::Acted { ticket, outcome: Ok(outcome) });
    }

    /// One row is not acceptable: only that one is refused.
    fn refused(&mut self, mut batch: Batch, text: &str) {
        for seat in batch.take_seats() {
            self.tell(seat, Fate::invalid(text));
        }
        for (ticket, _) in batch.actions.drain(..) {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::Refused(text.into())) });
        }
        for (ticket, _) in batch.destination_actions.drain(..) {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::Refused(text.into())) });
        }
        for (run, suspect) in batch.suspects.drain(..) {
            self.with_dispatcher_out(|dispatcher, ctx, out| {
                dispatcher.not_recorded(run, (suspect.message, text), ctx, out)
            });
        }
        for finished in batch.results.drain(..) {
            let was_quarantined = matches!(finished.result.settled, Settled::Quarantined(_));
            let Some(instead) = Completer::instead(finished, text) else {
                let text = format!("it refuses the simplest result of a delivery: {text}");
                return self.end(Err(EngineError::Contract(text)));
            };
            let is_quarantined = matches!(instead.result.settled, Settled::Quarantined(_));
            if is_quarantined && !was_quarantined {
                self.with_dispatcher(|dispatcher, ctx| dispatcher.turned_quarantined(&instead, ctx));
            }
            self.completer.put_back(instead);
        }
    }

    /// No room: messages are refused until there is; everything else is tried again.
    fn full(&mut self, mut batch: Batch, text: String) {
        let waiting = batch.take_seats();
        self.closed = Some(Failure::new(code::FULL, &text));
        self.refuse_waiting(waiting, &Fate::full(text));
        batch.results.iter_mut().for_each(Finished::leave_output);
        self.committer.give_back(batch);
        self.housekeeping.wrote();
    }

    pub(super) fn maintained(&mut self, answer: Result<Maintenance, StoreError>) {
        self.committer.release();
        match answer {
            Ok(found) => {
                let text = "the store has no room, or its log is above its limit";
                self.closed = found.full.then(|| Failure::new(code::FULL, text));
                self.housekeeping.maintained(Some(found), &self.at);
                if let Some(why) = &self.closed {
                    let fate = Fate::full(&why.text);
                    self.refuse_waiting(Vec::new(), &fate);
                }
            }
            Err(error) if error.kind() == ErrorKind::Fatal => self.end(Err(EngineError::Store(error))),
            Err(_) => self.housekeeping.maintained(None, &self.at),
        }
    }
}

fn stored_id(outcome: &MessageOutcome) -> Option<MessageId> {
    match outcome {
        MessageOutcome::Stored { id, .. } => Some(*id),
        MessageOutcome::Duplicate { .. } => None,
    }
}

fn fate(outcome: &MessageOutcome) -> Fate {
    match outcome {
        MessageOutcome::Stored { id, conflict } => Fate::Stored { id: *id, conflict: *conflict },
        MessageOutcome::Duplicate { id, of } => Fate::Duplicate { id: *id, of: *of },
    }
}
