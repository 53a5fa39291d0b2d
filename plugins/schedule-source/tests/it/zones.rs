//! Daylight saving: what does not exist runs once behind the gap, what exists twice once.

use portway_schedule_source::timetable::Timetable;

use crate::ms;

/// Runs from one instant to another, as the clocks of the zone show them.
#[track_caller]
fn check(pattern: &str, zone: &str, from: &str, to: &str, expected: &[&str]) {
    let timetable = Timetable::cron(pattern, zone.parse().unwrap(), ms(from)).unwrap();
    let mut runs = Vec::new();
    let mut after = ms(from) - 1;
    while let Some(run) = timetable.next(after).filter(|run| *run <= ms(to)) {
        runs.push(timetable.local(run));
        after = run;
    }
    assert_eq!(runs, expected);
}

#[test]
fn a_time_that_does_not_exist_runs_once_at_the_next_one_that_does() {
    let (from, to) = ("2026-03-28T12:00:00+01:00", "2026-03-30T12:00:00+02:00");
    let zone = "Europe/Berlin";
    check("30 2 * * *", zone, from, to, &["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]);
    check("*/15 2 29 3 *", zone, from, to, &["2026-03-29T03:00:00+02:00"]);
    check("0,30 2,3 29 3 *", zone, from, to, &["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]);
    check("0 6 * * 1-5", zone, from, to, &["2026-03-30T06:00:00+02:00"]);
}

#[test]
fn a_time_that_exists_twice_runs_once() {
    let (from, to) = ("2026-10-24T12:00:00+02:00", "2026-10-26T12:00:00+01:00");
    let zone = "Europe/Berlin";
    check("30 2 * * *", zone, from, to, &["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]);
    check("0,30 2 25 10 *", zone, from, to, &["2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00"]);
    check(
        "0 */2 25 10 *",
        zone,
        from,
        "2026-10-25T05:00:00+01:00",
        &["2026-10-25T00:00:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T04:00:00+01:00"],
    );
}

#[test]
fn a_pattern_for_all_hours_means_elapsed_time() {
    check(
        "0 * * * *",
        "Europe/Berlin",
        "2026-10-25T01:00:00+02:00",
        "2026-10-25T03:00:00+01:00",
        &[
            "2026-10-25T01:00:00+02:00",
            "2026-10-25T02:00:00+02:00",
            "2026-10-25T02:00:00+01:00",
            "2026-10-25T03:00:00+01:00",
        ],
    );
    check(
        "30 * * * *",
        "Europe/Berlin",
        "2026-03-29T01:00:00+01:00",
        "2026-03-29T04:00:00+02:00",
        &["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
    );
}

#[test]
fn odd_zones_are_right_too() {
    // Half an hour, forwards and backwards.
    let (from, to) = ("2026-10-03T12:00:00+10:30", "2026-10-05T00:00:00+11:00");
    check("15 2 * * *", "Australia/Lord_Howe", from, to, &["2026-10-04T02:30:00+11:00"]);
    let (from, to) = ("2026-04-04T12:00:00+11:00", "2026-04-06T00:00:00+10:30");
    check("45 1 * * *", "Australia/Lord_Howe", from, to, &["2026-04-05T01:45:00+11:00"]);
    // Samoa left a whole day out.
    let (from, to) = ("2011-12-29T00:00:00-10:00", "2011-12-31T23:59:00+14:00");
    check(
        "0 12 * * *",
        "Pacific/Apia",
        from,
        to,
        &["2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"],
    );
}

#[test]
fn days_are_those_of_the_month_or_of_the_week() {
    let (from, to) = ("2026-02-01T00:00:00Z", "2026-02-28T00:00:00Z");
    check(
        "0 0 13 * 5",
        "UTC",
        "2026-02-10T00:00:00Z",
        "2026-02-21T00:00:00Z",
        &["2026-02-13T00:00:00+00:00", "2026-02-20T00:00:00+00:00"],
    );
    check("0 12 L * *", "UTC", from, "2026-03-01T00:00:00Z", &["2026-02-28T12:00:00+00:00"]);
    check("0 12 * * MON#1", "UTC", from, to, &["2026-02-02T12:00:00+00:00"]);
    check(
        "0 0 29 2 *",
        "UTC",
        from,
        "2032-03-01T00:00:00Z",
        &["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"],
    );
}
