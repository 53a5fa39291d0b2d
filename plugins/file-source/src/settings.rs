//! The settings, as they are written and as they are used.

use std::time::Duration;

use portway_records::{Format, Limits, json};
use portway_sdk::{Failure, Template, duration};
use serde::Deserialize;
use wildmatch::WildMatch;

use crate::draft::{PLACEHOLDERS, Templates};

/// Levels of folders below the inbox.
const DEPTH_MAX: u8 = 8;
/// The longest record there may be: what a call may hold is not much more.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// As in `plugin.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub files: Vec<String>,
    pub depth: u8,
    #[serde(deserialize_with = "duration")]
    pub interval: Duration,
    pub ready: Ready,
    #[serde(deserialize_with = "duration")]
    pub settle: Duration,
    pub marker: String,
    pub split: Split,
    pub header: Header,
    pub delimiter: String,
    pub quote: String,
    pub record_bytes_max: u64,
    pub after: After,
    pub after_failure: AfterFailure,
    pub on_error: OnError,
    pub key: String,
    pub dedupe: String,
    pub attributes: Attributes,
}

/// When a file may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    Rest,
    Marker,
}

/// What becomes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    None,
    Lines,
    Csv,
    Hl7,
    JsonArray,
    Ndjson,
}

/// What the first record of CSV is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    WithEach,
    LeftOut,
    None,
}

/// What becomes of a file that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    Move,
    Delete,
    Leave,
}

/// What becomes of a file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterFailure {
    Move,
    Leave,
}

/// Whether the other files wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    Continue,
    Stop,
}

/// Which attributes messages carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attributes {
    All,
    File,
    None,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            files: vec!["*".into()],
            depth: 0,
            interval: Duration::from_secs(1),
            ready: Ready::Rest,
            settle: Duration::from_secs(2),
            marker: ".done".into(),
            split: Split::None,
            header: Header::WithEach,
            delimiter: ",".into(),
            quote: "\"".into(),
            record_bytes_max: 16 << 20,
            after: After::Move,
            after_failure: AfterFailure::Leave,
            on_error: OnError::Continue,
            key: String::new(),
            dedupe: String::new(),
            attributes: Attributes::All,
        }
    }
}

/// Settings that fit together.
#[derive(Debug)]
pub struct Rules {
    pub patterns: Vec<WildMatch>,
    pub depth: u8,
    pub interval: Duration,
    pub settle_ms: u64,
    /// None: files are ready when they rest.
    pub marker: Option<String>,
    /// None: a file is one message.
    pub format: Option<Format>,
    /// None: the first record is one as others.
    pub header: Option<Header>,
    pub limits: Limits,
    pub after: After,
    pub after_failure: AfterFailure,
    pub on_error: OnError,
    pub templates: Templates,
    pub attributes: Attributes,
}

impl Rules {
    /// Settings that do not fit together are refused with a sentence.
    pub fn of(settings: Settings) -> Result<Rules, Failure> {
        if settings.files.is_empty() || settings.files.len() > 100 {
            return Err(bad("files", "from 1 to 100 patterns are needed"));
        }
        if settings.depth > DEPTH_MAX {
            return Err(bad("depth", format!("at most {DEPTH_MAX} levels are looked through")));
        }
        if !(1..=RECORD_BYTES_MAX).contains(&settings.record_bytes_max) {
            return Err(bad("record_bytes_max", format!("must be from 1 to {RECORD_BYTES_MAX}")));
        }
        if settings.interval.is_zero() {
            return Err(bad("interval", "must be longer than nothing"));
        }
        if settings.ready == Ready::Marker && (settings.marker.is_empty() || settings.marker.contains('/')) {
            return Err(bad("marker", "must be the end of a name, such as `.done`"));
        }
        let format = format_of(&settings)?;
        let is_csv = matches!(format, Some(Format::Csv { .. }));
        let template = |name: &str, text: &str| {
            Template::of(text, PLACEHOLDERS).map_err(|error| bad(name, error.to_string()))
        };
        Ok(Rules {
            patterns: settings.files.iter().map(|pattern| WildMatch::new(pattern)).collect(),
            depth: settings.depth,
            interval: settings.interval,
            settle_ms: u64::try_from(settings.settle.as_millis()).unwrap_or(u64::MAX),
            marker: (settings.ready == Ready::Marker).then_some(settings.marker),
            format,
            header: (is_csv && settings.header != Header::None).then_some(settings.header),
            limits: Limits { record_bytes_max: settings.record_bytes_max, depth_max: json::DEPTH_MAX },
            after: settings.after,
            after_failure: settings.after_failure,
            on_error: settings.on_error,
            templates: Templates {
                key: template("key", &settings.key)?,
                dedupe: template("dedupe", &settings.dedupe)?,
            },
            attributes: settings.attributes,
        })
    }
}

fn format_of(settings: &Settings) -> Result<Option<Format>, Failure> {
    Ok(match settings.split {
        Split::None => None,
        Split::Lines => Some(Format::Lines),
        Split::Csv => {
            let Some(delimiter) = character("delimiter", &settings.delimiter)? else {
                return Err(bad("delimiter", "must be one character"));
            };
            let quote = character("quote", &settings.quote)?;
            if quote == Some(delimiter) {
                return Err(bad("quote", "must differ from `delimiter`"));
            }
            Some(Format::Csv { delimiter, quote })
        }
        Split::Hl7 => Some(Format::Hl7),
        Split::JsonArray => Some(Format::JsonArray),
        Split::Ndjson => Some(Format::Ndjson),
    })
}

/// One ASCII character that is no line end; none for an empty text.
fn character(name: &str, text: &str) -> Result<Option<u8>, Failure> {
    match text.as_bytes() {
        [] => Ok(None),
        [byte] if byte.is_ascii() && !matches!(byte, b'\r' | b'\n') => Ok(Some(*byte)),
        _ => Err(bad(name, "must be one ASCII character and no line end")),
    }
}

fn bad(name: &str, text: impl std::fmt::Display) -> Failure {
    Failure::new("bad-settings", format!("setting `{name}`: {text}"))
}
