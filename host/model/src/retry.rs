//! When a failed delivery is tried again, and when it is given up.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AttemptNo, Failure, Later, Timestamp, code};

/// How a destination retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Wait after the first failed attempt; doubles with each further one.
    pub first_wait: Duration,
    /// No wait is longer, whatever a peer asks for.
    pub longest_wait: Duration,
    /// Part of a wait that chance takes off, in percent, 0 to 100.
    pub jitter_percent: u8,
    /// Attempts in a round before the delivery is quarantined; 0: for ever.
    pub attempts_max: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            jitter_percent: 20,
            attempts_max: 0,
        }
    }
}

/// What becomes of a lane when one of its deliveries is quarantined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnQuarantine {
    /// The lane goes on with the next delivery.
    #[default]
    Continue,
    /// The lane waits until an operator resends or dismisses it.
    Hold,
}

/// What follows a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Retry { at: Timestamp },
    Quarantine(Failure),
}

impl RetryPolicy {
    /// What follows the failure of `attempt`. `chance` is a random number from 0 to 1.
    pub fn after_failure(&self, attempt: AttemptNo, later: &Later, now: Timestamp, chance: f64) -> Next {
        if self.attempts_max != 0 && attempt.0 >= self.attempts_max {
            let text = format!("attempt {attempt} of {} failed: {}", self.attempts_max, later.failure);
            return Next::Quarantine(Failure::new(code::ATTEMPTS_USED_UP, text));
        }
        Next::Retry { at: now + self.wait(attempt, later.after_ms, chance) }
    }

    /// How long to wait after the failure of `attempt`: what the peer asked for, or
    /// the back-off; never longer than the longest wait.
    pub fn wait(&self, attempt: AttemptNo, asked_ms: Option<u32>, chance: f64) -> Duration {
        let doublings = attempt.0.saturating_sub(1).min(32);
        let back_off = self.first_wait.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX));
        let asked = asked_ms.map_or(Duration::ZERO, |ms| Duration::from_millis(u64::from(ms)));
        let cut = f64::from(self.jitter_percent.min(100)) / 100.0 * chance.clamp(0.0, 1.0);
        let jittered = back_off.min(self.longest_wait).mul_f64(1.0 - cut);
        jittered.max(asked).min(self.longest_wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(after_ms: Option<u32>) -> Later {
        Later { failure: Failure::new("http-503", "try later"), after_ms }
    }

    fn policy(attempts_max: u32) -> RetryPolicy {
        RetryPolicy { attempts_max, jitter_percent: 50, ..RetryPolicy::default() }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits = [1, 2, 3, 6, 7, 99].map(|n| policy(0).wait(AttemptNo(n), None, 0.0).as_secs());
        assert_eq!(waits, [1, 2, 4, 32, 60, 60]);
    }

    #[test]
    fn chance_only_shortens_a_wait() {
        assert_eq!(policy(0).wait(AttemptNo(1), None, 1.0), Duration::from_millis(500));
    }

    #[test]
    fn a_peer_may_ask_for_more_time_within_the_limit() {
        assert_eq!(policy(0).wait(AttemptNo(1), Some(5_000), 0.0), Duration::from_secs(5));
        assert_eq!(policy(0).wait(AttemptNo(1), Some(u32::MAX), 0.0), Duration::from_secs(60));
    }

    #[test]
    fn attempts_used_up_is_a_quarantine_and_zero_is_for_ever() {
        let now = Timestamp(0);
        let next = policy(3).after_failure(AttemptNo(3), &later(None), now, 0.0);
        assert!(matches!(next, Next::Quarantine(failure) if failure.code == "attempts-used-up"));
        let next = policy(0).after_failure(AttemptNo(u32::MAX), &later(None), now, 0.0);
        assert_eq!(next, Next::Retry { at: Timestamp(60_000) });
    }
}
