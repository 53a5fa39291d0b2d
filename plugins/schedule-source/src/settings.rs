//! The settings, as they are written.

use std::time::Duration;

use portway_sdk::{Failure, Template};
use serde::{Deserialize, Deserializer};

use crate::timetable::Timetable;

/// What the body may ask for.
pub(crate) const PLACEHOLDERS: &[&str] = &["scheduled", "local", "missed", "skipped"];
/// Bytes of the body's template.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// As in `plugin.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    #[serde(deserialize_with = "some_duration")]
    pub every: Option<Duration>,
    pub cron: Option<String>,
    pub time_zone: String,
    pub skip_while_unfinished: bool,
    pub body: String,
    pub key: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            every: None,
            cron: None,
            time_zone: "UTC".into(),
            skip_while_unfinished: true,
            body: r#"{{"scheduled":"{scheduled}"}}"#.into(),
            key: String::new(),
        }
    }
}

impl Settings {
    /// When it runs; `now_ms` is where a pattern that never comes true is looked for from.
    pub(crate) fn timetable(&self, now_ms: u64) -> Result<Timetable, Failure> {
        match (self.every, self.cron.as_deref()) {
            (Some(every), None) => Timetable::every(every).map_err(|text| bad("every", text)),
            (None, Some(pattern)) => {
                let zone = self.time_zone.parse().map_err(|_| {
                    bad("time_zone", format!("`{}` is no time zone, such as `Europe/Berlin`", self.time_zone))
                })?;
                Timetable::cron(pattern, zone, now_ms).map_err(|text| bad("cron", text))
            }
            _ => Err(Failure::new("bad-settings", "set either `every` or `cron`")),
        }
    }

    pub(crate) fn body(&self) -> Result<Template, Failure> {
        if self.body.len() > BODY_BYTES_MAX {
            return Err(bad("body", format!("is longer than {BODY_BYTES_MAX} bytes")));
        }
        Template::of(&self.body, PLACEHOLDERS).map_err(|error| bad("body", error.to_string()))
    }
}

fn bad(name: &str, text: impl std::fmt::Display) -> Failure {
    Failure::new("bad-settings", format!("setting `{name}`: {text}"))
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    portway_sdk::duration(deserializer).map(Some)
}
