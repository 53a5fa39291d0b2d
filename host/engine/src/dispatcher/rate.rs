//! How fast a destination is sent to: a bucket of tokens by the monotonic clock.
//!
//! A delivery that begins takes one; they come back at the destination's rate. Nothing is kept for a
//! delivery that waits, and nothing is looked at before a token is there.

use std::time::Duration;

use portway_model::{OverRate, RateLimit};

/// Tokens of one destination.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub limit: RateLimit,
    /// What is there, in the time that `count` tokens take each: so it is exact.
    level: u128,
    /// When that was so, by the monotonic clock.
    at: Duration,
    /// A timer is set for this time.
    timer: Option<Duration>,
}

/// Whether deliveries may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// At most so many, at least one.
    Some(u32),
    /// None before this time, by the monotonic clock.
    Wait(Duration),
    /// What would begin now is not sent.
    Drop,
}

impl Bucket {
    /// It is full.
    pub fn new(limit: RateLimit) -> Self {
        let mut bucket = Bucket { limit, level: 0, at: Duration::ZERO, timer: None };
        bucket.level = bucket.full();
        bucket
    }

    /// What may begin now.
    pub fn admits(&self, monotonic: Duration) -> Admission {
        let (level, worth) = (self.level_at(monotonic), self.worth());
        let tokens = u32::try_from(level / self.cost()).unwrap_or(u32::MAX);
        match self.limit.over {
            OverRate::Drop if tokens == 0 => Admission::Drop,
            OverRate::Wait if tokens < worth => {
                let missing = (u128::from(worth) * self.cost()).saturating_sub(level);
                let nanos = missing.div_ceil(u128::from(self.limit.rate.count.get()));
                let wait = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                // A wait of nothing would look without end.
                Admission::Wait(monotonic + wait.max(Duration::from_micros(1)))
            }
            OverRate::Drop | OverRate::Wait => Admission::Some(tokens),
        }
    }

    pub fn take(&mut self, count: usize, monotonic: Duration) {
        (self.level, self.at) = (self.level_at(monotonic), monotonic);
        self.level = self.level.saturating_sub(self.cost().saturating_mul(count as u128));
    }

    /// So many were taken and not sent.
    pub fn give_back(&mut self, count: usize) {
        self.level = self.level.saturating_add(self.cost().saturating_mul(count as u128)).min(self.full());
    }

    /// Whether a timer has to be set for this time.
    pub fn arms(&mut self, until: Duration) -> bool {
        let is_news = self.timer.is_none_or(|timer| until < timer);
        if is_news {
            self.timer = Some(until);
        }
        is_news
    }

    /// The timer fired.
    pub fn disarm(&mut self, monotonic: Duration) {
        if self.timer.is_some_and(|timer| timer <= monotonic) {
            self.timer = None;
        }
    }

    /// Tokens to wait for: with a high rate several, so that timers are few.
    fn worth(&self) -> u32 {
        self.limit.grain().min(self.limit.capacity())
    }

    fn level_at(&self, monotonic: Duration) -> u128 {
        let gained = monotonic
            .saturating_sub(self.at)
            .as_nanos()
            .saturating_mul(u128::from(self.limit.rate.count.get()));
        self.level.saturating_add(gained).min(self.full())
    }

    fn cost(&self) -> u128 {
        self.limit.rate.per.duration().as_nanos()
    }

    fn full(&self) -> u128 {
        u128::from(self.limit.capacity()).saturating_mul(self.cost())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use portway_model::Rate;

    use super::*;

    fn bucket(rate: &str, burst: u32, over: OverRate) -> Bucket {
        let rate = Rate::parse(rate).unwrap();
        Bucket::new(RateLimit { rate, burst: NonZeroU32::new(burst).unwrap(), over })
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn after_a_burst_tokens_come_back_at_the_rate_and_no_more_than_fit() {
        let mut bucket = bucket("2/s", 3, OverRate::Wait);
        assert_eq!(bucket.admits(Duration::ZERO), Admission::Some(3));
        bucket.take(3, Duration::ZERO);
        assert_eq!(bucket.admits(MS), Admission::Wait(500 * MS));
        assert_eq!(bucket.admits(500 * MS), Admission::Some(1));
        bucket.take(1, 500 * MS);
        assert_eq!(bucket.admits(1_499 * MS), Admission::Some(1));
        assert_eq!(bucket.admits(1_500 * MS), Admission::Some(2));
        assert_eq!(bucket.admits(3_600_000 * MS), Admission::Some(3));
    }

    #[test]
    fn what_was_not_sent_comes_back() {
        let mut bucket = bucket("1/h", 2, OverRate::Wait);
        bucket.take(2, MS);
        bucket.give_back(1);
        assert_eq!(bucket.admits(MS), Admission::Some(1));
        bucket.give_back(9);
        assert_eq!(bucket.admits(MS), Admission::Some(2));
    }

    #[test]
    fn a_fast_one_waits_for_several_at_once_and_is_exact_in_the_long_run() {
        let mut bucket = bucket("7000/s", 1, OverRate::Wait);
        let (mut now, mut sent, mut looks) = (Duration::ZERO, 0_u64, 0);
        while now < Duration::from_secs(10) {
            match bucket.admits(now) {
                Admission::Some(count) => {
                    sent += u64::from(count);
                    bucket.take(count as usize, now);
                }
                Admission::Wait(until) => (now, looks) = (until, looks + 1),
                Admission::Drop => panic!("it waits"),
            }
        }
        assert!((70_000..=70_071).contains(&sent), "{sent}");
        assert!(looks <= 1_001, "{looks}");
    }

    #[test]
    fn one_that_drops_says_so_without_a_wait() {
        let mut bucket = bucket("1/s", 1, OverRate::Drop);
        bucket.take(1, Duration::ZERO);
        assert_eq!(bucket.admits(999 * MS), Admission::Drop);
        assert_eq!(bucket.admits(1_000 * MS), Admission::Some(1));
    }

    #[test]
    fn a_timer_is_set_once() {
        let mut bucket = bucket("1/s", 1, OverRate::Wait);
        assert!(bucket.arms(5 * MS) && !bucket.arms(5 * MS) && !bucket.arms(6 * MS) && bucket.arms(4 * MS));
        bucket.disarm(3 * MS);
        assert!(!bucket.arms(4 * MS));
        bucket.disarm(4 * MS);
        assert!(bucket.arms(4 * MS));
    }
}
