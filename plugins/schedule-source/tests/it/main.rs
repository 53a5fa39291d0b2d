//! The schedule on a clock that the test sets, and its times against another cron library.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod clocks;
mod oracle;
mod settings;
mod zones;

use chrono::DateTime;
use portway_schedule_source::ScheduleSource;
use portway_sdk::testing::{self, PollHost};

fn ms(rfc3339: &str) -> u64 {
    DateTime::parse_from_rfc3339(rfc3339).unwrap().timestamp_millis() as u64
}

/// Opened and asked once at a time.
fn open(settings: &str, at: &str) -> PollHost<ScheduleSource> {
    testing::reset();
    testing::set_time(ms(at));
    let mut host = PollHost::open(settings).unwrap();
    assert_eq!(host.turn().unwrap().len(), 0, "nothing runs at the start");
    host
}

/// What runs when the clock is put to a time: time, missed, skipped.
fn at(host: &mut PollHost<ScheduleSource>, time: &str) -> Option<String> {
    testing::set_time(ms(time));
    let stored = host.turn().unwrap();
    assert!(stored.len() <= 1);
    stored.first().map(|stored| {
        let get = |name: &str| stored.attributes.get(name).unwrap();
        format!("{} {} {}", get("schedule.time"), get("schedule.missed"), get("schedule.skipped"))
    })
}
