//! The time by which messages grow old: a clock that is wrong must not remove what is not old.
//!
//! Messages age while an engine runs. The wall clock is followed as long as it goes on as time does;
//! when it steps, or says after a pause of the engine that much time has passed, the age goes on from
//! where it was, until the clock has said the same for a day. Nothing ages beyond the wall clock.

use std::time::Duration;

use portway_model::Timestamp;

use crate::time::Moment;

/// A step of the clock that is followed at once.
const SLACK: Duration = Duration::from_secs(600);
/// How long a clock has to go on as it does until it is believed.
const PROOF: Duration = Duration::from_secs(86_400);

/// See the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgeClock {
    aged_to: Timestamp,
    looked_at: Duration,
    doubt: Option<Doubt>,
}

/// The wall clock is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    /// How far it is away, in milliseconds; behind is below zero.
    off_ms: i128,
    /// Since when it is, by the monotonic clock.
    since: Duration,
}

/// Why messages do not age as the clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDoubt {
    /// How far the clock is away from how messages age.
    pub off: Duration,
    /// It is ahead; else it is behind.
    pub is_ahead: bool,
    /// When it is believed, if it goes on as it does.
    pub after: Duration,
}

impl AgeClock {
    /// `aged_to` is what the store remembers.
    pub fn new(aged_to: Option<Timestamp>, at: &Moment) -> AgeClock {
        let aged_to = aged_to.unwrap_or(at.wall);
        let mut clock = AgeClock { aged_to, looked_at: at.monotonic, doubt: None };
        clock.follow(at);
        clock
    }

    pub fn follow(&mut self, at: &Moment) {
        // Whole milliseconds only: what is left over counts the next time.
        let ran = Duration::from_millis(whole_ms(at.monotonic.saturating_sub(self.looked_at)));
        self.looked_at += ran;
        self.aged_to = self.aged_to + ran;
        let off_ms = i128::from(at.wall.0) - i128::from(self.aged_to.0);
        if is_slight(off_ms) {
            (self.aged_to, self.doubt) = (at.wall, None);
            return;
        }
        match self.doubt {
            // It stepped once more: what was proven so far is void.
            Some(doubt) if !is_slight(off_ms - doubt.off_ms) => {
                self.doubt = Some(Doubt { off_ms, since: self.looked_at });
            }
            Some(doubt) if doubt.since + PROOF <= self.looked_at => {
                (self.aged_to, self.doubt) = (at.wall, None);
            }
            Some(_) => {}
            None => self.doubt = Some(Doubt { off_ms, since: self.looked_at }),
        }
    }

    /// What the next engine goes on from.
    pub fn aged_to(&self) -> Timestamp {
        self.aged_to
    }

    /// By which messages are old.
    pub fn now(&self, at: &Moment) -> Timestamp {
        self.aged_to.min(at.wall)
    }

    pub fn doubt(&self) -> Option<ClockDoubt> {
        let doubt = self.doubt?;
        Some(ClockDoubt {
            off: Duration::from_millis(u64::try_from(doubt.off_ms.unsigned_abs()).unwrap_or(u64::MAX)),
            is_ahead: doubt.off_ms > 0,
            after: (doubt.since + PROOF).saturating_sub(self.looked_at),
        })
    }
}

fn is_slight(off_ms: i128) -> bool {
    off_ms.unsigned_abs() <= SLACK.as_millis()
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::time::{Now, SteadyClock};

    use super::*;

    const START: u64 = 1_800_000_000_000;
    const HOUR: u64 = 3_600_000;
    const YEAR: u64 = 365 * 24 * HOUR;

    fn at(wall: u64, ran_ms: u64) -> Moment {
        let now = Now { wall: Timestamp(wall), monotonic: Duration::from_millis(ran_ms) };
        SteadyClock::new(now).moment(now)
    }

    /// Looks every minute of some hours, with a wall clock that is off by so much.
    fn run(clock: &mut AgeClock, hours: std::ops::Range<u64>, wall: impl Fn(u64) -> u64) -> Timestamp {
        let mut now = Timestamp(0);
        for minute in hours.start * 60..=hours.end * 60 {
            let ran = minute * 60_000;
            let moment = at(wall(START + ran), ran);
            clock.follow(&moment);
            now = clock.now(&moment);
        }
        now
    }

    #[test]
    fn messages_age_as_the_clock_goes() {
        let mut clock = AgeClock::new(None, &at(START, 0));
        assert_eq!(run(&mut clock, 0..100, |time| time), Timestamp(START + 100 * HOUR));
        assert_eq!(clock.doubt(), None);
        // Set by less than ten minutes, it is followed.
        assert_eq!(run(&mut clock, 100..101, |time| time + 500_000), Timestamp(START + 101 * HOUR + 500_000));
    }

    #[test]
    fn a_clock_that_steps_ahead_is_believed_after_a_day() {
        let mut clock = AgeClock::new(None, &at(START, 0));
        let now = run(&mut clock, 0..23, |time| time + YEAR);
        assert_eq!(now, Timestamp(START + 23 * HOUR), "it ages no faster than time passes");
        let doubt = clock.doubt().unwrap();
        assert_eq!((doubt.off, doubt.is_ahead), (Duration::from_millis(YEAR), true));
        assert!(doubt.after <= Duration::from_millis(HOUR), "{doubt:?}");
        assert_eq!(run(&mut clock, 23..25, |time| time + YEAR), Timestamp(START + 25 * HOUR + YEAR));
        assert_eq!(clock.doubt(), None);
    }

    #[test]
    fn a_clock_that_is_set_right_again_was_never_believed() {
        let mut clock = AgeClock::new(None, &at(START, 0));
        run(&mut clock, 0..20, |time| time + YEAR);
        let now = run(&mut clock, 20..21, |time| time);
        assert_eq!((now, clock.doubt()), (Timestamp(START + 21 * HOUR), None));
        // What was proven before counts no more.
        assert_eq!(run(&mut clock, 21..40, |time| time + YEAR), Timestamp(START + 40 * HOUR));
        // Nor does it for another step.
        assert_eq!(run(&mut clock, 40..60, |time| time + 2 * YEAR), Timestamp(START + 60 * HOUR));
    }

    #[test]
    fn nothing_ages_beyond_a_clock_that_is_behind() {
        let mut clock = AgeClock::new(None, &at(START, 0));
        let now = run(&mut clock, 0..10, |time| time - YEAR);
        assert_eq!(now, Timestamp(START + 10 * HOUR - YEAR));
        assert!(!clock.doubt().unwrap().is_ahead);
        let now = run(&mut clock, 10..11, |time| time);
        assert_eq!(now, Timestamp(START + 11 * HOUR), "set right, it goes on as if nothing had been");
    }

    #[test]
    fn time_without_an_engine_has_to_be_proven_as_well() {
        let before = Some(Timestamp(START - YEAR));
        let mut clock = AgeClock::new(before, &at(START, 0));
        assert_eq!(run(&mut clock, 0..23, |time| time), Timestamp(START - YEAR + 23 * HOUR));
        assert_eq!(run(&mut clock, 23..25, |time| time), Timestamp(START + 25 * HOUR));
        let mut clock = AgeClock::new(Some(Timestamp(START - 500_000)), &at(START, 0));
        assert_eq!(run(&mut clock, 0..0, |time| time), Timestamp(START), "a restart takes no ten minutes");
    }
}
