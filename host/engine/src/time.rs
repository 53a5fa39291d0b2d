//! Time as the machines see it: given with every event, never asked for.
//!
//! Waits are monotonic. What is stored is wall time that never goes back while the process
//! lives, so that a clock that steps neither stalls a retry nor repeats it in a hurry.

use std::time::Duration;

use portway_model::Timestamp;

/// The two clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall time; may step either way.
    pub wall: Timestamp,
    /// Since some fixed moment; never goes back.
    pub monotonic: Duration,
}

/// A [`Now`] with the steady time made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub wall: Timestamp,
    /// Wall time that follows the clock forward and the monotonic time always.
    pub steady: Timestamp,
    pub monotonic: Duration,
}

impl Moment {
    /// When, by the monotonic clock, a stored time is reached; never further away than `longest`.
    pub fn deadline(&self, due_at: Timestamp, longest: Duration) -> Duration {
        self.monotonic + due_at.since(self.steady).min(longest)
    }

    /// The wall time of a monotonic deadline, for people.
    pub fn wall_of(&self, deadline: Duration) -> Timestamp {
        self.wall + deadline.saturating_sub(self.monotonic)
    }
}

/// Makes a [`Moment`] of each [`Now`].
#[derive(Debug)]
pub(crate) struct SteadyClock {
    last: Now,
}

impl SteadyClock {
    pub fn new(now: Now) -> Self {
        SteadyClock { last: now }
    }

    pub fn moment(&mut self, now: Now) -> Moment {
        let monotonic = now.monotonic.max(self.last.monotonic);
        // Whole milliseconds only: what is left over counts the next time.
        let whole = Duration::from_millis(whole_ms(monotonic - self.last.monotonic));
        self.last = Now { wall: self.last.wall + whole, monotonic: self.last.monotonic + whole };
        if now.wall > self.last.wall {
            self.last = Now { wall: now.wall, monotonic };
        }
        let steady = self.last.wall;
        Moment { wall: now.wall, steady, monotonic }
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall: u64, monotonic_ms: u64) -> Now {
        Now { wall: Timestamp(wall), monotonic: Duration::from_millis(monotonic_ms) }
    }

    #[test]
    fn a_clock_that_steps_back_does_not_stop_time() {
        let mut clock = SteadyClock::new(now(1_000_000, 0));
        assert_eq!(clock.moment(now(1_000_010, 10)).steady, Timestamp(1_000_010));
        assert_eq!(clock.moment(now(500_000, 20)).steady, Timestamp(1_000_020));
        assert_eq!(clock.moment(now(500_100, 120)).steady, Timestamp(1_000_120));
    }

    #[test]
    fn many_short_moments_are_not_lost_to_rounding() {
        let mut clock = SteadyClock::new(now(1_000, 0));
        let mut steady = Timestamp(0);
        for step in 1..=10_000_u64 {
            let monotonic = Duration::from_micros(step * 130);
            steady = clock.moment(Now { wall: Timestamp(0), monotonic }).steady;
        }
        assert_eq!(steady, Timestamp(2_300));
    }

    #[test]
    fn a_stored_time_is_never_further_away_than_the_longest_wait() {
        let moment = SteadyClock::new(now(1_000, 0)).moment(now(1_000, 50));
        let longest = Duration::from_secs(60);
        assert_eq!(moment.deadline(Timestamp(0), longest), Duration::from_millis(50));
        assert_eq!(moment.deadline(Timestamp(u64::MAX), longest), Duration::from_millis(60_050));
    }
}
