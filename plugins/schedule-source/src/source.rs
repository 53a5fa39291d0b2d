//! The source as the host sees it: makes one message for all runs that are due.
//!
//! Runs that were missed while nothing asked, or that a clock jumped over, are one run with
//! a count. A clock that is set back makes nothing run again.

use portway_sdk::{
    Attributes, Content, Context, Draft, Failure, Found, Item, PollSource, Query, Receipt, Template, Trouble,
    clock, key_of, log,
};

use crate::cursor::Cursor;
use crate::settings::Settings;
use crate::timetable::Timetable;

/// The longest pause, so that a clock that is set is noticed.
const PAUSE_MS_MAX: u64 = 5 * 60 * 1000;
/// A clock that is further behind the last run is told.
const BEHIND_MS: u64 = 60 * 60 * 1000;

/// One interface's schedule.
#[derive(Debug)]
pub struct ScheduleSource {
    timetable: Timetable,
    body: Template,
    key: Option<String>,
    skip_while_unfinished: bool,
    /// Before the first cursor: when this instance was opened.
    opened_ms: u64,
    said_behind: bool,
}

impl PollSource for ScheduleSource {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        let opened_ms = clock::now_ms();
        Ok(ScheduleSource {
            timetable: settings.timetable(opened_ms)?,
            body: settings.body()?,
            key: key_of(settings.key),
            skip_while_unfinished: settings.skip_while_unfinished,
            opened_ms,
            said_behind: false,
        })
    }

    fn poll(&mut self, query: Query) -> Result<Found, Trouble> {
        let now_ms = clock::now_ms();
        let mut cursor =
            Cursor::decode(&query.cursor)?.unwrap_or(Cursor { last_ms: self.opened_ms, skipped: 0 });
        let mut items = Vec::new();
        if let Some(run_ms) = self.timetable.last(cursor.last_ms, now_ms) {
            let due = self.timetable.count(cursor.last_ms, now_ms).max(1);
            cursor.last_ms = run_ms;
            if self.skip_while_unfinished && query.unfinished > 0 {
                cursor.skipped = cursor.skipped.saturating_add(due);
                self.say_skipped(run_ms, &query);
            } else {
                items.push(Item::Message(self.draft(run_ms, due - 1, cursor.skipped)));
                cursor.skipped = 0;
            }
        }
        self.say_behind(cursor.last_ms, now_ms);
        Ok(Found { items, cursor: cursor.encode(), again_ms: self.pause_ms(cursor.last_ms, now_ms) })
    }

    fn settle(&mut self, _cursor: &[u8], _receipts: Vec<Receipt>) -> Result<(), Trouble> {
        Ok(())
    }
}

impl ScheduleSource {
    fn draft(&self, run_ms: u64, missed: u64, skipped: u64) -> Draft {
        let scheduled = clock::rfc3339(run_ms);
        let body = self.body.fill(|text, name| match name {
            "scheduled" => text.push_str(&scheduled),
            "local" => text.push_str(&self.timetable.local(run_ms)),
            "missed" => text.push_str(&missed.to_string()),
            _ => text.push_str(&skipped.to_string()),
        });
        Draft {
            key: self.key.clone(),
            occurred_ms: Some(run_ms),
            attributes: Attributes::from([
                ("schedule.time", scheduled),
                ("schedule.missed", missed.to_string()),
                ("schedule.skipped", skipped.to_string()),
            ]),
            ..Draft::new(Content::Inline(body.into_bytes()), Vec::new())
        }
    }

    fn say_skipped(&self, run_ms: u64, query: &Query) {
        let scheduled = clock::rfc3339(run_ms);
        let unfinished = query.unfinished;
        let text = format!("the run of {scheduled} is skipped: {unfinished} messages are not finished");
        log::notice("run-skipped", text);
    }

    /// A clock that was wrong by years and is right again would make a silent schedule.
    fn say_behind(&mut self, last_ms: u64, now_ms: u64) {
        if last_ms <= now_ms.saturating_add(BEHIND_MS) {
            self.said_behind = false;
        } else if !std::mem::replace(&mut self.said_behind, true) {
            let (last, now) = (clock::rfc3339(last_ms), clock::rfc3339(now_ms));
            log::notice(
                "clock-set-back",
                format!(
                    "it is {now}, but the last run was at {last}; nothing runs before that time comes again"
                ),
            );
        }
    }

    fn pause_ms(&self, last_ms: u64, now_ms: u64) -> u32 {
        let next_ms = self.timetable.next(last_ms.max(now_ms));
        let pause = next_ms.map_or(PAUSE_MS_MAX, |next_ms| next_ms.saturating_sub(now_ms));
        u32::try_from(pause.clamp(1, PAUSE_MS_MAX)).unwrap_or(u32::MAX)
    }
}
