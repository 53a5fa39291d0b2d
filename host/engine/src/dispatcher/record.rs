//! Deliveries that are recorded before they are tried: suspects, and what may not be sent twice.

use std::collections::BTreeMap;

use portway_model::{DestinationId, Failure, Guarantee, MessageId, code};
use portway_store::Settled;

use super::report::Meaning;
use super::stream::Hint;
use super::{Ctx, Dispatcher};
use crate::event::{Effect, RunId};
use crate::ports::in_doubt;

/// Kept at most. What is forgotten is recorded once more.
const RECORDS_MAX: usize = 4_096;

/// Which suspects this process recorded, and for the how manyth time. It may lose its groups and own them
/// again: that is no end of the process, and is not counted as one. Also not after a result, which the store
/// may lose together with its power.
#[derive(Debug, Default)]
pub(crate) struct Records {
    counts: BTreeMap<(DestinationId, MessageId), u32>,
}

impl Records {
    fn remember(&mut self, destination: DestinationId, message: MessageId, count: u32) {
        if self.counts.len() >= RECORDS_MAX {
            self.counts.pop_first();
        }
        self.counts.insert((destination, message), count);
    }

    /// Zero: it is not recorded by this process.
    pub fn count(&self, destination: DestinationId, message: MessageId) -> u32 {
        self.counts.get(&(destination, message)).copied().unwrap_or(0)
    }

    /// An operator changed it: the store keeps no record of it any more.
    pub fn forget(&mut self, destination: DestinationId, message: MessageId) {
        self.counts.remove(&(destination, message));
    }
}

impl Dispatcher {
    /// A commit recorded that a delivery of a run is about to be tried, for the `count`th time.
    pub fn recorded(
        &mut self,
        id: RunId,
        message: MessageId,
        count: u32,
        ctx: &mut Ctx<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.guarantee == Guarantee::AtLeastOnce && count < run.recorded_max() {
            self.desk.records.remember(run.destination, message, count);
        }
        if !run.recorded(message, count) {
            return;
        }
        let most = run.recorded_max();
        if run.hints.iter().any(|hint| hint.recorded >= most) {
            return self.give_up(id, ctx);
        }
        if self.abandon_unwanted(id, ctx) {
            return;
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.hints.len() > 1 && run.hints.iter().any(|hint| hint.recorded > 1) {
            // Others recorded it meanwhile: it goes by itself.
            if let Some(run) = self.runs.remove(&id) {
                self.abandon(run, Meaning::Untried, ctx);
            }
            return;
        }
        let step = run.next_step(ctx);
        self.take_step(id, step, ctx, out);
    }

    /// These runs are not recorded any more: their destinations end.
    pub fn leave_unrecorded(&mut self, runs: Vec<RunId>, ctx: &mut Ctx<'_>) {
        for id in runs {
            self.abandon_unwanted(id, ctx);
        }
    }

    /// A delivery could not be recorded: it is tried all the same, but for one that may not be sent twice.
    pub fn not_recorded(
        &mut self,
        id: RunId,
        (message, text): (MessageId, &str),
        ctx: &mut Ctx<'_>,
        out: &mut Vec<Effect>,
    ) {
        match self.runs.get(&id).map(|run| run.guarantee) {
            None => {}
            Some(Guarantee::AtLeastOnce) => self.recorded(id, message, 1, ctx, out),
            Some(Guarantee::AtMostOnce) => {
                let Some(run) = self.runs.remove(&id) else { return };
                let failure = Failure::new(code::RESULT_REFUSED, text);
                let meaning = |hint: &Hint| match hint.message == message {
                    true => Meaning::Done(Settled::Quarantined(failure.clone())),
                    false => Meaning::Untried,
                };
                let meanings: Vec<Meaning> = run.hints.iter().map(meaning).collect();
                self.end(run, meanings.into_iter(), ctx);
            }
        }
    }

    /// What was recorded too often is quarantined; the others of its run are not tried.
    fn give_up(&mut self, id: RunId, ctx: &mut Ctx<'_>) {
        let Some(run) = self.runs.remove(&id) else { return };
        let (most, guarantee) = (run.recorded_max(), run.guarantee);
        let meaning = |hint: &Hint| {
            if hint.recorded < most {
                return Meaning::Untried;
            }
            let failure = match guarantee {
                Guarantee::AtMostOnce => in_doubt("the process ended before what became of it was stored"),
                Guarantee::AtLeastOnce => {
                    let count = hint.recorded.saturating_sub(1);
                    let text = format!("the process ended {count} times while this message was in hand");
                    Failure::new(code::SUSPECT, text)
                }
            };
            Meaning::Done(Settled::Quarantined(failure))
        };
        let meanings: Vec<Meaning> = run.hints.iter().map(meaning).collect();
        self.end(run, meanings.into_iter(), ctx);
    }
}
