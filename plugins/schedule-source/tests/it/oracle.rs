//! The same patterns through another cron library, and brute force over every minute.

use std::collections::BTreeSet;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use cron::Schedule;
use portway_schedule_source::timetable::Timetable;

use crate::ms;

/// In the five fields that both read alike; days of the week by name, since the other
/// library counts them from 1, and never together with days of the month.
const PATTERNS: &[&str] = &[
    "* * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "*/20 1-3 * * *",
    "0,30 2 * * *",
    "0 6 * * MON-FRI",
    "15 2 * * SUN",
    "59 23 28-31 * *",
    "0 0 1 1,3,10 *",
    "5 4 29 2 *",
    "10 */3 * MAR,OCT *",
];

fn other(pattern: &str) -> Schedule {
    Schedule::from_str(&format!("0 {pattern}")).unwrap()
}

fn runs(timetable: &Timetable, from: u64, to: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(timetable.next(from - 1), |run| timetable.next(*run))
        .take_while(move |run| *run <= to)
}

#[test]
fn in_utc_both_libraries_say_the_same() {
    let from = ms("2027-02-01T00:00:00Z");
    for pattern in PATTERNS {
        let timetable = Timetable::cron(pattern, Tz::UTC, from).unwrap();
        let start = DateTime::<Utc>::from_timestamp_millis(from as i64 - 1).unwrap();
        // The other library ends with the year 2100.
        let until = ms("2090-01-01T00:00:00Z");
        let schedule = other(pattern);
        let expected = schedule.after(&start).map(|run| run.timestamp_millis() as u64);
        let expected: Vec<u64> = expected.take_while(|run| *run <= until).take(400).collect();
        let found: Vec<u64> = runs(&timetable, from, until).take(400).collect();
        assert_eq!(found, expected, "{pattern}");
    }
}

/// Each minute that a clock on the wall should show, turned into an instant: the first of
/// two, or the first behind a gap.
fn each_wall_minute_once(pattern: &str, zone: Tz, from: u64, to: u64) -> BTreeSet<u64> {
    let schedule = other(pattern);
    let mut wall = DateTime::from_timestamp_millis(from as i64).unwrap().naive_utc() - TimeDelta::hours(26);
    let end = DateTime::from_timestamp_millis(to as i64).unwrap().naive_utc() + TimeDelta::hours(26);
    let mut instants = BTreeSet::new();
    while wall <= end {
        if schedule.includes(wall.and_utc()) {
            let mut shown = wall;
            let instant = loop {
                match zone.from_local_datetime(&shown).earliest() {
                    Some(instant) => break instant,
                    None => shown += TimeDelta::minutes(1),
                }
            };
            instants.insert(instant.timestamp_millis() as u64);
        }
        wall += TimeDelta::minutes(1);
    }
    instants.into_iter().filter(|run| (from..=to).contains(run)).collect()
}

/// Each minute that passes, where the clock on the wall shows what the pattern wants.
fn each_elapsed_minute(pattern: &str, zone: Tz, from: u64, to: u64) -> BTreeSet<u64> {
    let schedule = other(pattern);
    let minutes = (from..=to).step_by(60_000);
    minutes
        .filter(|ms| {
            let shown =
                DateTime::from_timestamp_millis(*ms as i64).unwrap().with_timezone(&zone).naive_local();
            schedule.includes(shown.and_utc())
        })
        .collect()
}

#[test]
fn across_clock_changes_every_minute_is_right() {
    let changes = [
        ("Europe/Berlin", "2027-03-26T00:00:00Z", "2027-03-30T00:00:00Z"),
        ("Europe/Berlin", "2027-10-29T00:00:00Z", "2027-11-02T00:00:00Z"),
        ("America/New_York", "2027-03-12T00:00:00Z", "2027-03-16T00:00:00Z"),
        ("America/New_York", "2027-11-05T00:00:00Z", "2027-11-09T00:00:00Z"),
        ("Australia/Lord_Howe", "2027-04-02T00:00:00Z", "2027-04-06T00:00:00Z"),
        ("Australia/Lord_Howe", "2027-10-01T00:00:00Z", "2027-10-05T00:00:00Z"),
        ("Asia/Kathmandu", "2027-02-01T00:00:00Z", "2027-02-03T00:00:00Z"),
        ("America/St_Johns", "2027-11-05T00:00:00Z", "2027-11-09T00:00:00Z"),
    ];
    for pattern in PATTERNS {
        for (zone, from, to) in changes {
            let (zone, from, to): (Tz, u64, u64) = (zone.parse().unwrap(), ms(from), ms(to));
            let timetable = Timetable::cron(pattern, zone, from).unwrap();
            let all_hours = pattern.split(' ').nth(1) == Some("*");
            let expected = match all_hours {
                true => each_elapsed_minute(pattern, zone, from, to),
                false => each_wall_minute_once(pattern, zone, from, to),
            };
            let found: Vec<u64> = runs(&timetable, from, to).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{pattern} in {zone}");
            let (last, count) = (timetable.last(from - 1, to), timetable.count(from - 1, to));
            assert_eq!(last, found.last().copied(), "{pattern} in {zone}");
            assert_eq!(count, (found.len() as u64).min(1_000), "{pattern} in {zone}");
        }
    }
}
