//! When runs are: the next one after an instant, and the last one up to an instant.
//!
//! Patterns are matched against the time on the wall by `croner`. Where a clock is changed,
//! a time that does not exist becomes the first one behind the gap, and a time that exists
//! twice is its first half; several that fall together are one run. A pattern for all hours
//! means elapsed time instead: it runs in both halves of an hour that comes twice.

use std::time::Duration;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// The shortest and the longest `every`.
const EVERY_MIN: Duration = Duration::from_secs(1);
const EVERY_MAX: Duration = Duration::from_secs(366 * 86_400);
/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 256;
/// Runs that are counted one by one.
pub const COUNT_MAX: u64 = 1_000;
/// The longest gap: once a whole day was left out.
const GAP_MINUTES_MAX: u32 = 26 * 60;
/// How far back a last run is looked for, in hours. The leap day of a certain weekday comes
/// every 28 years, or 40.
const BACK_HOURS: [i64; 5] = [1, 25, 32 * 24, 366 * 24, 41 * 366 * 24];

/// When something runs.
#[derive(Debug)]
pub enum Timetable {
    /// At the multiples of so many milliseconds since 1970.
    Every(u64),
    Cron(Box<Pattern>),
}

/// A cron pattern in a time zone.
#[derive(Debug)]
pub struct Pattern {
    cron: Cron,
    zone: Tz,
    all_hours: bool,
}

impl Timetable {
    /// Every so often.
    pub fn every(every: Duration) -> Result<Timetable, String> {
        if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
            return Err("must be from `1s` to `366d`".into());
        }
        Ok(Timetable::Every(u64::try_from(every.as_millis()).unwrap_or(u64::MAX)))
    }

    /// At the times of a pattern, which must come true after `now_ms`.
    pub fn cron(pattern: &str, zone: Tz, now_ms: u64) -> Result<Timetable, String> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("is longer than {PATTERN_BYTES_MAX} bytes"));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron =
            parser.parse(pattern).map_err(|error| format!("`{pattern}` is no cron pattern: {error}"))?;
        let all_hours = cron.pattern.hours.values().len() == 24;
        let timetable = Timetable::Cron(Box::new(Pattern { cron, zone, all_hours }));
        match timetable.next(now_ms) {
            Some(_) => Ok(timetable),
            None => Err(format!("`{pattern}` never comes true")),
        }
    }

    /// The first run behind an instant; none where there is none for thousands of years.
    pub fn next(&self, after_ms: u64) -> Option<u64> {
        match self {
            Timetable::Every(every) => (after_ms / every + 1).checked_mul(*every),
            Timetable::Cron(pattern) => pattern.next(after_ms),
        }
    }

    /// The last run behind `after_ms` up to `now_ms`.
    pub fn last(&self, after_ms: u64, now_ms: u64) -> Option<u64> {
        match self {
            Timetable::Every(every) => Some(now_ms / every * every).filter(|last| *last > after_ms),
            Timetable::Cron(_) => {
                // Looking back a little at first costs little where runs are many.
                for hours in BACK_HOURS {
                    let back_ms = u64::try_from(hours).unwrap_or_default() * 3_600_000;
                    let from = now_ms.saturating_sub(back_ms).max(after_ms);
                    let last = self.runs(from).take_while(|run| *run <= now_ms).last();
                    if last.is_some() || from == after_ms {
                        return last;
                    }
                }
                None
            }
        }
    }

    /// How many runs there are behind `after_ms` up to `now_ms`, counted up to a limit.
    pub fn count(&self, after_ms: u64, now_ms: u64) -> u64 {
        match self {
            Timetable::Every(every) => (now_ms / every).saturating_sub(after_ms / every),
            Timetable::Cron(_) => {
                let limit = usize::try_from(COUNT_MAX).unwrap_or(usize::MAX);
                self.runs(after_ms).take_while(|run| *run <= now_ms).take(limit).count() as u64
            }
        }
    }

    /// An instant as the clocks of the zone show it.
    pub fn local(&self, ms: u64) -> String {
        match self {
            Timetable::Every(_) => instant(ms).map(|instant| instant.to_rfc3339()),
            Timetable::Cron(pattern) => {
                instant(ms).map(|instant| instant.with_timezone(&pattern.zone).to_rfc3339())
            }
        }
        .unwrap_or_default()
    }

    fn runs(&self, after_ms: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(self.next(after_ms), |run| self.next(*run))
    }
}

impl Pattern {
    fn next(&self, after_ms: u64) -> Option<u64> {
        let after = instant(after_ms)?.with_timezone(&self.zone);
        if self.all_hours {
            let next = self.cron.find_next_occurrence(&after, false).ok()?;
            return u64::try_from(next.timestamp_millis()).ok();
        }
        // Wall clock times in their order give instants in their order, or the same one.
        let mut wall = after.naive_local().with_nanosecond(0)?.and_utc();
        loop {
            wall = self.cron.find_next_occurrence(&wall, false).ok()?;
            let run = u64::try_from(self.resolve(wall.naive_utc())?.timestamp_millis()).ok()?;
            if run > after_ms {
                return Some(run);
            }
        }
    }

    /// The instant at which the clocks of the zone show a time for the first time.
    fn resolve(&self, wall: NaiveDateTime) -> Option<DateTime<Tz>> {
        match self.zone.from_local_datetime(&wall) {
            MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(instant, _) => Some(instant),
            MappedLocalTime::None => {
                let minute = wall.with_second(0)?;
                let later = (1..=GAP_MINUTES_MAX).filter_map(|minutes| {
                    let later = minute.checked_add_signed(TimeDelta::minutes(i64::from(minutes)))?;
                    self.zone.from_local_datetime(&later).earliest()
                });
                later.take(1).last()
            }
        }
    }
}

fn instant(ms: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(i64::try_from(ms).ok()?)
}
