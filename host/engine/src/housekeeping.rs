//! What the store's writer does between batches: checkpoints, the look at free space, pruning.

use std::time::Duration;

use portway_store::Maintenance;

use crate::event::Effect;
use crate::layout::Layout;
use crate::time::Moment;

/// Between looks at the store while it is written to or full.
const MAINTAIN_BUSY: Duration = Duration::from_secs(1);
/// Between looks at the store while nothing happens.
const MAINTAIN_IDLE: Duration = Duration::from_secs(10);
/// How long a look may hold up the next batch.
const FREE_WAIT: Duration = Duration::from_millis(20);
/// Messages removed in one go.
const PRUNE_LIMIT: u32 = 256;
/// Between two goes at the same interface, so that pruning leaves room for batches.
const PRUNE_PAUSE: Duration = Duration::from_millis(50);

/// See the file.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    maintain_at: Duration,
    maintained_at: Duration,
    /// None: never.
    prune_at: Option<Duration>,
    /// The interface whose turn it is.
    source: usize,
    pub last: Maintenance,
    pub pruned: u64,
}

impl Housekeeping {
    pub fn new(layout: &Layout, monotonic: Duration) -> Self {
        let every = layout.limits.prune_every;
        Housekeeping {
            // At once: whether there is room has to be known before the first message.
            maintain_at: monotonic,
            maintained_at: monotonic,
            prune_at: (every > Duration::ZERO).then_some(monotonic.saturating_add(every)),
            source: 0,
            last: Maintenance::default(),
            pruned: 0,
        }
    }

    /// What is due now. Messages are removed by their owner.
    pub fn next(&mut self, layout: &Layout, is_owner: bool, at: &Moment) -> Option<Effect> {
        if self.maintain_at <= at.monotonic {
            return Some(Effect::Maintain { free_wait: FREE_WAIT });
        }
        self.prune_at.filter(|prune_at| *prune_at <= at.monotonic)?;
        if !is_owner {
            self.prune_at = Some(at.monotonic.saturating_add(layout.limits.prune_every));
            return None;
        }
        // Numbers of interfaces that are gone are free.
        let is_free = |source| source < layout.interfaces_count() && layout.interface(source).is_none();
        while is_free(self.source) {
            self.source += 1;
        }
        let Some(interface) = layout.interface(self.source) else {
            self.source = 0;
            self.prune_at = Some(at.monotonic.saturating_add(layout.limits.prune_every));
            return None;
        };
        // By time that passed while the engine ran: a clock that steps forward removes nothing early.
        let now = at.wall.min(at.elapsed);
        Some(Effect::Prune { interface: interface.id, before: now - interface.keep, now, limit: PRUNE_LIMIT })
    }

    /// Something was written: the next look comes sooner.
    pub fn wrote(&mut self) {
        self.maintain_at = self.maintain_at.min(self.maintained_at + MAINTAIN_BUSY);
    }

    pub fn maintained(&mut self, found: Option<Maintenance>, at: &Moment) {
        self.maintained_at = at.monotonic;
        self.maintain_at = at.monotonic + MAINTAIN_IDLE;
        if let Some(found) = found {
            self.last = found;
        }
        if self.last.full || found.is_none() {
            self.maintain_at = at.monotonic + MAINTAIN_BUSY;
        }
    }

    /// How many went; none: the store could not.
    pub fn pruned(&mut self, count: Option<u64>, at: &Moment) {
        self.pruned += count.unwrap_or(0);
        if count.is_some_and(|count| count >= u64::from(PRUNE_LIMIT)) {
            self.prune_at = Some(at.monotonic + PRUNE_PAUSE);
        } else {
            self.source += 1;
        }
    }

    pub fn wake_at(&self) -> Duration {
        self.prune_at.map_or(self.maintain_at, |prune_at| prune_at.min(self.maintain_at))
    }
}
