//! How many deliveries may begin in a time, and what becomes of those beyond it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// Deliveries in a unit of time, such as `100/s` or `30/min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub count: NonZeroU32,
    pub per: Per,
}

/// The unit of a [`Rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    Second,
    Minute,
    Hour,
    Day,
}

/// What becomes of a delivery beyond the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverRate {
    /// It waits for its turn, in order.
    #[default]
    Wait,
    /// It is not sent: its state is `filtered`, with the rate as its reason.
    Drop,
}

/// How fast a destination is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub rate: Rate,
    /// Deliveries that may begin at once after a pause.
    pub burst: NonZeroU32,
    pub over: OverRate,
}

impl Rate {
    /// The highest there is.
    pub const COUNT_MAX: u32 = 1_000_000;

    /// Reads `"100/s"`, `"30/min"`, `"500/h"` or `"20/d"`.
    pub fn parse(text: &str) -> Option<Rate> {
        let (count, unit) = text.split_once('/')?;
        if !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let count = count.parse().ok().filter(|count: &NonZeroU32| count.get() <= Rate::COUNT_MAX)?;
        let per =
            [Per::Second, Per::Minute, Per::Hour, Per::Day].into_iter().find(|per| per.as_str() == unit)?;
        Some(Rate { count, per })
    }

    /// So many fall into this time, rounded up; at least one.
    pub fn within(&self, time: Duration) -> u32 {
        let exact = time.as_nanos().saturating_mul(u128::from(self.count.get()));
        let count = exact.div_ceil(self.per.duration().as_nanos());
        u32::try_from(count).unwrap_or(u32::MAX).max(1)
    }
}

impl Per {
    pub const fn duration(self) -> Duration {
        match self {
            Per::Second => Duration::from_secs(1),
            Per::Minute => Duration::from_secs(60),
            Per::Hour => Duration::from_secs(3_600),
            Per::Day => Duration::from_secs(86_400),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Per::Second => "s",
            Per::Minute => "min",
            Per::Hour => "h",
            Per::Day => "d",
        }
    }
}

impl OverRate {
    pub const fn as_str(self) -> &'static str {
        match self {
            OverRate::Wait => "wait",
            OverRate::Drop => "drop",
        }
    }
}

impl RateLimit {
    /// Timers are no finer than this: what comes together meanwhile goes together.
    const GRAIN: Duration = Duration::from_millis(10);

    /// Deliveries that may begin at once, at most.
    pub fn capacity(&self) -> u32 {
        self.burst.get().max(self.grain())
    }

    /// Deliveries that are worth a look.
    pub fn grain(&self) -> u32 {
        self.rate.within(RateLimit::GRAIN)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_and_show_the_same() {
        for text in ["1/s", "100/s", "30/min", "500/h", "20/d", "1000000/s"] {
            assert_eq!(Rate::parse(text).map(|rate| rate.to_string()).as_deref(), Some(text));
        }
        for text in
            ["", "100", "/s", "0/s", "-1/s", "+1/s", "1.5/s", "1/m", "1/S", "1 / s", "1000001/s", "1/s/s"]
        {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_falls_into_a_time_is_rounded_up() {
        let within = |text: &str, millis| Rate::parse(text).unwrap().within(Duration::from_millis(millis));
        assert_eq!([within("100/s", 10), within("1000/s", 10), within("1001/s", 10)], [1, 10, 11]);
        assert_eq!(
            [within("30/min", 4_000), within("1/d", 10), within("1000000/s", 86_400_000)],
            [2, 1, u32::MAX]
        );
    }
}
