//! The schedule source: a message every so often, or at the times of a cron pattern.
//!
//! [`timetable`] knows when, in every time zone and across daylight saving; [`source`]
//! decides what becomes of runs that were missed or come while another is unfinished. The
//! cursor holds the last run, so that no clock makes one run twice.

mod cursor;
mod settings;
mod source;
pub mod timetable;

pub use settings::Settings;
pub use source::ScheduleSource;

portway_sdk::export_poll_source!(ScheduleSource);
