//! What can be seen of a poll source.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portway_model::{Failure, Timestamp};

use crate::counters::{Counters, SourceStatus};

/// What a driver does now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PollState {
    #[default]
    Starting,
    Polling,
    Storing,
    Settling,
    /// Until it is asked again.
    Resting,
    /// Something failed that may pass by itself.
    Waiting(Failure),
    /// Something failed that a person has to change; it is looked at again now and then.
    Misconfigured(Failure),
    Stopped,
}

/// A moment of a poll source.
#[derive(Clone, Debug, Default)]
pub struct PollStatus {
    pub state: PollState,
    /// When the source answered last.
    pub polled_at: Option<Timestamp>,
    pub counts: SourceStatus,
}

/// What can be seen of a driver. Cheap to clone.
#[derive(Clone)]
pub struct PollHandle {
    counters: Counters,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    state: PollState,
    polled_at: Option<Timestamp>,
}

impl PollHandle {
    pub(super) fn new(counters: Counters) -> Self {
        PollHandle { counters, seen: Arc::default() }
    }

    pub fn status(&self) -> PollStatus {
        let counts = self.counters.status();
        let seen = self.lock();
        PollStatus { state: seen.state.clone(), polled_at: seen.polled_at, counts }
    }

    pub(super) fn set(&self, state: PollState) {
        let mut seen = self.lock();
        if seen.state == state {
            return;
        }
        if let PollState::Waiting(failure) | PollState::Misconfigured(failure) = &state {
            tracing::warn!(%failure, "the source waits");
        }
        seen.state = state;
    }

    pub(super) fn polled(&self, at: Timestamp) {
        self.lock().polled_at = Some(at);
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PollState {
    /// As shown to people and programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            PollState::Starting => "starting",
            PollState::Polling => "polling",
            PollState::Storing => "storing",
            PollState::Settling => "settling",
            PollState::Resting => "resting",
            PollState::Waiting(_) => "waiting",
            PollState::Misconfigured(_) => "misconfigured",
            PollState::Stopped => "stopped",
        }
    }

    /// Why it waits.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            PollState::Waiting(failure) | PollState::Misconfigured(failure) => Some(failure),
            PollState::Starting
            | PollState::Polling
            | PollState::Storing
            | PollState::Settling
            | PollState::Resting
            | PollState::Stopped => None,
        }
    }
}
