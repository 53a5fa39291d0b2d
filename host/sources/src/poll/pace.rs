//! When a poll source is asked again: its own word, or longer and longer after failures.

use std::time::Duration;

use portway_model::{Failure, Later, code};

use super::ports::PollError;

/// After the first failure; doubled with each that follows.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A source may ask to be left alone for so long.
const AGAIN_MAX: Duration = Duration::from_secs(3_600);
/// Of a source that found nothing and wants to be asked at once.
const EMPTY_WAIT: Duration = Duration::from_millis(20);

/// Counts failures that followed each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    failures: u32,
}

/// Why a source is not asked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    pub wait: Duration,
    pub failure: Failure,
    /// Nothing will change before a person does something.
    pub needs_person: bool,
}

impl Pace {
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How long to wait after a failure of the source.
    pub fn failed(&mut self, error: PollError) -> Pause {
        match error {
            PollError::Unavailable(later) => self.refused(later),
            PollError::Misconfigured(failure) => {
                // Asking is harmless, and what was wrong may be right again without a word to us.
                self.failures = u32::MAX;
                Pause { wait: LONGEST_WAIT, failure, needs_person: true }
            }
            PollError::Fault(text) => self.grown(Failure::new(code::FAULT, text)),
            PollError::Busy(text) => self.grown(Failure::new(code::BUSY, text)),
        }
    }

    /// How long to wait when nothing could be stored, or the other side is away.
    pub fn refused(&mut self, later: Later) -> Pause {
        let own = later.after_ms.map(|ms| Duration::from_millis(u64::from(ms)).clamp(EMPTY_WAIT, AGAIN_MAX));
        let grown = self.grown(later.failure);
        Pause { wait: own.unwrap_or(grown.wait), ..grown }
    }

    /// How long to wait when all went well.
    pub fn again(asked: Duration, found_something: bool) -> Duration {
        let least = if found_something { Duration::ZERO } else { EMPTY_WAIT };
        asked.clamp(least, AGAIN_MAX)
    }

    fn grown(&mut self, failure: Failure) -> Pause {
        let doubled = FIRST_WAIT.saturating_mul(1_u32 << self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        Pause { wait: doubled.min(LONGEST_WAIT), failure, needs_person: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> PollError {
        PollError::Fault("it trapped".into())
    }

    #[test]
    fn waits_grow_and_a_success_begins_anew() {
        let mut pace = Pace::default();
        let waits: Vec<u64> = (0..8).map(|_| pace.failed(fault()).wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        pace.succeeded();
        assert_eq!(pace.failed(fault()).wait, FIRST_WAIT);
    }

    #[test]
    fn the_sources_own_word_counts_within_limits() {
        let mut pace = Pace::default();
        let later = |after_ms| Later { failure: Failure::new("away", "no route"), after_ms };
        let waits = [Some(0), Some(500), Some(u32::MAX), None].map(|ms| pace.refused(later(ms)).wait);
        let expected = [EMPTY_WAIT, Duration::from_millis(500), AGAIN_MAX, Duration::from_secs(8)];
        assert_eq!(waits, expected);
        assert_eq!(Pace::again(Duration::ZERO, true), Duration::ZERO);
        assert_eq!(Pace::again(Duration::ZERO, false), EMPTY_WAIT);
        assert_eq!(Pace::again(Duration::MAX, false), AGAIN_MAX);
    }

    #[test]
    fn what_needs_a_person_is_still_looked_at_now_and_then() {
        let pause = Pace::default().failed(PollError::Misconfigured(Failure::new("no-folder", "gone")));
        assert_eq!((pause.needs_person, pause.wait), (true, LONGEST_WAIT));
    }
}
