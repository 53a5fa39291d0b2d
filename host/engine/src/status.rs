//! A picture of the engine for people: what is stuck, since when, and why.

use std::time::Duration;

use portway_model::{AttemptNo, DestinationId, Epoch, Failure, Lane, MessageId, RateLimit, Timestamp};
use portway_store::{Owner, Pause};

use crate::age::ClockDoubt;
use crate::drain::DrainStatus;

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// What waited in the store at the start is known.
    pub ready: bool,
    pub ownership: OwnershipStatus,
    pub intake: IntakeStatus,
    pub retention: RetentionStatus,
    /// None: messages are taken and delivered as usual.
    pub drain: Option<DrainStatus>,
    pub commits: CommitStatus,
    pub memory: MemoryStatus,
    /// In the order of the settings.
    pub destinations: Vec<DestinationStatus>,
}

/// Whether this engine runs the deliveries of its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnershipStatus {
    Owner {
        epoch: Epoch,
    },
    /// It stores messages, and waits until it can own its groups.
    Standby {
        /// Who owned groups when it asked last.
        owners: Vec<Owner>,
    },
}

impl Default for OwnershipStatus {
    fn default() -> Self {
        OwnershipStatus::Standby { owners: Vec::new() }
    }
}

/// Whether messages are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntakeStatus {
    /// Why nothing is taken; none: it is open.
    pub closed: Option<Failure>,
    /// Messages that wait for a commit.
    pub waiting: u64,
    pub stored: u64,
    pub duplicates: u64,
    /// Not stored, by code.
    pub refused: Vec<(&'static str, u64)>,
    /// Free bytes on the disk of the store, where known.
    pub free_bytes: Option<u64>,
    /// Bytes of log that are not yet in the store's main file.
    pub log_bytes: u64,
    /// Messages removed because they were old enough.
    pub pruned: u64,
}

/// How old messages fare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionStatus {
    /// By which messages are old.
    pub age_now: Timestamp,
    /// Why they do not age as the clock says.
    pub doubt: Option<ClockDoubt>,
    /// Interfaces whose messages are getting another retention.
    pub changing: usize,
    /// Interfaces with a retention that waits for a confirmation.
    pub unconfirmed: usize,
    /// Messages that got another retention.
    pub moved: u64,
}

/// What commits cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitStatus {
    pub commits: u64,
    /// Of these, flushed to disk before they returned.
    pub strict: u64,
    pub messages: u64,
    pub results: u64,
    /// Time with a commit in hand.
    pub busy: Duration,
    /// The part of `busy` that strict commits took.
    pub busy_strict: Duration,
    /// Commits by duration: the upper edge of each bucket is 2^n × 64 µs, the last has none.
    pub by_duration: [u64; CommitStatus::BUCKETS],
    /// Time since the start of the engine.
    pub elapsed: Duration,
    pub failures: u64,
    /// The time of the last commit.
    pub last: Duration,
}

/// Limits in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Deliveries that wait in memory.
    pub waiting: usize,
    /// Bytes of bodies kept since their commit.
    pub carried_bytes: usize,
    /// Bytes of bodies read for runs in hand.
    pub loaded_bytes: usize,
    pub runs: usize,
    /// Lanes with an entry in memory.
    pub lanes: usize,
}

/// One destination.
#[derive(Clone, Debug)]
pub struct DestinationStatus {
    pub id: DestinationId,
    pub state: DestinationState,
    /// Runs in hand.
    pub runs: u32,
    /// Lanes that wait for a retry or for an operator.
    pub lanes_blocked: u32,
    /// The first of them, at most [`DestinationStatus::BLOCKED_MAX`].
    pub blocked: Vec<BlockedLane>,
    pub counts: Counts,
    /// None: as fast as it takes.
    pub rate: Option<RateStatus>,
}

/// How fast a destination is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStatus {
    pub limit: RateLimit,
    /// Something could be sent, if the rate was not used up.
    pub waits: bool,
}

/// Whether a destination works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DestinationState {
    Running,
    /// It is away and asked again at `until`.
    Waiting {
        why: Failure,
        since: Timestamp,
        until: Timestamp,
    },
    /// Until `resume`.
    Stopped {
        why: Failure,
        since: Timestamp,
    },
    /// An operator's word, until `resume`.
    Paused(Pause),
}

/// What a lane waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedLane {
    pub lane: Lane,
    pub message: MessageId,
    pub attempts: AttemptNo,
    pub reason: String,
    /// When it is tried again; none: when an operator says so.
    pub due_at: Option<Timestamp>,
}

/// What was stored of a destination's deliveries since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sent: u64,
    pub filtered: u64,
    pub quarantined: u64,
    pub retried: u64,
    /// Not sent because the rate was used up; these are among the filtered.
    pub dropped: u64,
    /// Results of deliveries that an operator changed meanwhile.
    pub stale: u64,
    /// Reports that were not as agreed.
    pub lies: u64,
}

impl IntakeStatus {
    /// Adds what was refused before it came to the engine.
    pub(crate) fn refuse(&mut self, code: &'static str, count: u64) {
        match self.refused.iter_mut().find(|(known, _)| *known == code) {
            Some((_, known)) => *known += count,
            None if count > 0 => self.refused.push((code, count)),
            None => {}
        }
    }
}

impl DestinationStatus {
    /// Blocked lanes shown of one destination.
    pub const BLOCKED_MAX: usize = 100;
}

impl CommitStatus {
    /// Buckets of durations.
    pub const BUCKETS: usize = 16;

    pub(crate) fn record(&mut self, took: Duration) {
        self.commits += 1;
        self.last = took;
        self.busy += took;
        let scaled = took.as_micros() / 64;
        let bucket = (u128::BITS - scaled.leading_zeros()) as usize;
        if let Some(count) = self.by_duration.get_mut(bucket.min(Self::BUCKETS - 1)) {
            *count += 1;
        }
    }

    /// The mean time of a commit.
    pub fn mean(&self) -> Duration {
        u32::try_from(self.commits)
            .ok()
            .and_then(|commits| self.busy.checked_div(commits))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_falls_into_the_bucket_of_its_duration() {
        let mut status = CommitStatus::default();
        for micros in [1, 63, 64, 127, 128, u64::MAX / 2_000_000] {
            status.record(Duration::from_micros(micros));
        }
        assert_eq!(status.by_duration[..3], [2, 2, 1]);
        assert_eq!(status.by_duration[CommitStatus::BUCKETS - 1], 1);
        assert_eq!(status.commits, 6);
    }
}
