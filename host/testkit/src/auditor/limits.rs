//! Rule 6: everything is limited, looked at after every turn of the engine.

use portway_engine::{Run, Status};
use portway_store::{NewMessage, Settled, WriteBatch};

use super::{Auditor, Verdict};

/// A destination with a slot and nothing to do reads so many deliveries though nothing is free.
const FLOOR: usize = 16;
/// Of one run, but for a single larger message.
const RUN_BYTES_MAX: usize = 4 << 20;
/// What a message in memory costs beside its body.
const OVERHEAD: usize = 512;

impl Auditor {
    /// What the engine holds in memory.
    pub fn memory(&self, status: &Status, intake_bytes: usize) -> Verdict {
        let limits = &self.settings.limits;
        // A lane that waits keeps its head.
        let blocked: usize = status.destinations.iter().map(|one| one.lanes_blocked as usize).sum();
        let slots: usize =
            self.own.ledgers.values().map(|ledger| ledger.settings.concurrency as usize + 1).sum();
        let waiting_max = limits.waiting_max + slots * FLOOR + blocked;
        // What a run had in hand goes back to its queue.
        let back = limits.unflushed_max * status.destinations.len();
        at_most("deliveries in memory", status.memory.waiting, waiting_max + back)?;
        let bytes = status.memory.carried_bytes + status.memory.loaded_bytes;
        at_most("bytes of bodies in memory", bytes, limits.waiting_bytes_max.max(2))?;
        at_most("runs", status.memory.runs, limits.runs_max)?;
        at_most("bytes of intake", intake_bytes, limits.intake_bytes_max)
    }

    /// What one transaction carries.
    pub fn batch(&self, batch: &WriteBatch) -> Verdict {
        let limits = &self.settings.limits;
        at_most("messages in a batch", batch.messages.len(), limits.batch_messages_max)?;
        let bytes: usize = batch.messages.iter().map(|message| message.body().len()).sum();
        let largest = batch.messages.iter().map(|message| message.body().len()).max().unwrap_or(0);
        at_most("bytes in a batch", bytes, limits.batch_bytes_max + largest)?;
        let routed: usize = batch.results.iter().map(|result| routed_bytes(&result.settled)).sum();
        let in_hand = limits.runs_max * (limits.unflushed_max * (64 + OVERHEAD));
        at_most("bytes of routed messages in a batch", routed, limits.batch_bytes_max + in_hand)
    }

    pub(super) fn run_limits(&self, run: &Run) -> Verdict {
        let ledger = self.own.ledgers.get(&run.destination).ok_or("a run for no destination")?;
        at_most("deliveries in a run", run.messages.len(), ledger.settings.run_max as usize)?;
        if run.messages.is_empty() {
            return Err("a run without messages".into());
        }
        if run.messages.len() > 1 {
            let bytes = run.messages.iter().map(|message| message.body.len()).sum();
            at_most("bytes in a run", bytes, RUN_BYTES_MAX)?;
            if run.singly {
                return Err("a run that should be single is not".into());
            }
        }
        let concurrency = ledger.settings.concurrency as usize;
        at_most("runs of a destination", ledger.runs as usize + 1, concurrency)?;
        let exposed = ledger.in_hand as usize + ledger.accepted as usize + run.messages.len();
        at_most("results of a destination that may be unflushed", exposed, self.settings.limits.unflushed_max)
    }
}

fn routed_bytes(settled: &Settled) -> usize {
    match settled {
        Settled::Routed(messages) => messages.iter().map(NewMessage::bytes).sum(),
        Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => 0,
    }
}

pub(super) fn at_most(what: &str, found: usize, most: usize) -> Verdict {
    if found > most { Err(format!("rule 6: {found} {what}, at most {most} are allowed")) } else { Ok(()) }
}
