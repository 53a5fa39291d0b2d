//! Runs that are due, missed or skipped, and clocks that are set.

use portway_schedule_source::ScheduleSource;
use portway_sdk::testing::{self, PollHost};

use crate::{at, ms, open};

const QUARTER: &str = r#"{"every":"15m"}"#;

#[test]
fn a_run_makes_one_message_at_its_time_and_says_when_to_ask_again() {
    let mut host = open(QUARTER, "2026-03-01T10:01:00Z");
    assert_eq!(host.again.as_secs(), 300, "a pause is at most five minutes");
    assert_eq!(at(&mut host, "2026-03-01T10:14:30Z"), None);
    assert_eq!(host.again.as_secs(), 30);
    assert_eq!(at(&mut host, "2026-03-01T10:15:00Z").unwrap(), "2026-03-01T10:15:00.000Z 0 0");
    assert_eq!(at(&mut host, "2026-03-01T10:15:00Z"), None);
    assert_eq!(at(&mut host, "2026-03-01T10:30:07Z").unwrap(), "2026-03-01T10:30:00.000Z 0 0");
    let first = &host.stored[0];
    assert_eq!(first.bytes, br#"{"scheduled":"2026-03-01T10:15:00.000Z"}"#);
    assert_eq!((first.occurred_ms, &first.key, &first.dedupe), (Some(1_772_360_100_000), &None, &None));
}

#[test]
fn missed_runs_are_one_with_a_count_also_after_a_restart() {
    let mut host = open(QUARTER, "2026-03-01T10:01:00Z");
    testing::set_time(ms("2026-03-01T13:20:00Z"));
    host.restart().unwrap();
    assert_eq!(at(&mut host, "2026-03-01T13:20:00Z").unwrap(), "2026-03-01T13:15:00.000Z 12 0");
    assert_eq!(at(&mut host, "2026-03-01T13:20:01Z"), None);
}

#[test]
fn a_run_is_skipped_and_counted_while_a_message_is_unfinished() {
    let mut host = open(QUARTER, "2026-03-01T10:01:00Z");
    host.unfinished = 2;
    assert_eq!(at(&mut host, "2026-03-01T10:15:00Z"), None);
    assert_eq!(at(&mut host, "2026-03-01T10:15:01Z"), None);
    assert_eq!(at(&mut host, "2026-03-01T10:45:00Z"), None);
    let notices = testing::take_notices();
    assert_eq!(notices.len(), 2);
    assert_eq!(notices[0].0, "run-skipped");
    assert_eq!(notices[0].1, "the run of 2026-03-01T10:15:00.000Z is skipped: 2 messages are not finished");
    host.restart().unwrap();
    host.unfinished = 0;
    assert_eq!(at(&mut host, "2026-03-01T10:50:00Z"), None, "it is skipped, not put off");
    assert_eq!(at(&mut host, "2026-03-01T11:00:00Z").unwrap(), "2026-03-01T11:00:00.000Z 0 3");
    assert_eq!(at(&mut host, "2026-03-01T11:15:00Z").unwrap(), "2026-03-01T11:15:00.000Z 0 0");
}

#[test]
fn without_the_setting_nothing_is_skipped() {
    let mut host = open(r#"{"every":"15m","skip_while_unfinished":false}"#, "2026-03-01T10:01:00Z");
    host.unfinished = 1_000;
    assert!(at(&mut host, "2026-03-01T10:15:00Z").is_some());
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_run_twice() {
    let mut host = open(r#"{"cron":"0 * * * *"}"#, "2026-03-01T10:01:00Z");
    assert!(at(&mut host, "2026-03-01T11:00:00Z").is_some());
    for time in
        ["2026-03-01T10:59:59Z", "2026-03-01T11:00:00Z", "2026-03-01T11:00:01Z", "2026-03-01T09:00:00Z"]
    {
        assert_eq!(at(&mut host, time), None);
        host.restart().unwrap();
    }
    assert_eq!(at(&mut host, "2026-03-01T12:00:00Z").unwrap(), "2026-03-01T12:00:00.000Z 0 0");
}

#[test]
fn a_clock_that_jumps_forward_makes_one_run_and_one_that_comes_back_is_told() {
    let mut host = open(r#"{"cron":"* * * * *"}"#, "2026-03-01T10:00:30Z");
    assert_eq!(at(&mut host, "2076-03-01T10:00:00Z").unwrap(), "2076-03-01T10:00:00.000Z 999 0");
    assert_eq!(at(&mut host, "2026-03-01T10:05:00Z"), None);
    assert_eq!(host.again.as_secs(), 300);
    let notices = testing::take_notices();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].0, "clock-set-back");
    assert_eq!(at(&mut host, "2026-03-01T10:06:00Z"), None);
    assert!(testing::take_notices().is_empty(), "told once");
}

#[test]
fn a_run_is_not_lost_where_the_first_cursor_was_never_stored() {
    testing::reset();
    testing::set_time(ms("2026-03-01T10:00:00Z"));
    let mut host = PollHost::<ScheduleSource>::open(QUARTER).unwrap();
    for _ in 0..3 {
        host.poll().unwrap();
        testing::pass_time(300_000);
    }
    assert_eq!(host.turn().unwrap().len(), 1);
    assert_eq!(host.stored[0].attributes.get("schedule.time"), Some("2026-03-01T10:15:00.000Z"));
}

#[test]
fn what_was_not_committed_runs_again_and_only_once() {
    let mut host = open(QUARTER, "2026-03-01T10:01:00Z");
    testing::set_time(ms("2026-03-01T10:15:00Z"));
    assert_eq!(host.poll().unwrap().items.len(), 1);
    assert_eq!(host.turn().unwrap().len(), 1);
    assert_eq!(host.turn().unwrap().len(), 0);
}

#[test]
fn a_body_says_what_the_settings_say() {
    let settings = r#"{"cron":"30 6 * * *","time_zone":"Europe/Berlin","key":"daily","body":"{{{local}}} {missed}/{skipped}"}"#;
    let mut host = open(settings, "2026-06-01T00:00:00Z");
    at(&mut host, "2026-06-02T05:00:00Z").unwrap();
    let stored = &host.stored[0];
    assert_eq!(stored.bytes, b"{2026-06-02T06:30:00+02:00} 1/0");
    assert_eq!(stored.key.as_deref(), Some("daily"));
}
