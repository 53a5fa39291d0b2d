//! What an operator can set; as in `plugin.toml`.

use std::time::Duration;

use portway_framing::{FramingSettings, Sequence};
use portway_sdk::Failure;
use serde::Deserialize;

/// The settings of one destination's sender.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub framing: FramingSettings,
    #[serde(default = "half_a_minute", deserialize_with = "portway_sdk::duration")]
    pub write_timeout: Duration,
    /// None: a message is sent when its bytes are written.
    #[serde(default)]
    pub answer: Option<AnswerSettings>,
}

/// What the receiver answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerSettings {
    /// Bytes of an answer. None: it is framed as messages are.
    #[serde(default)]
    pub bytes: Option<usize>,
    #[serde(default = "half_a_minute", deserialize_with = "portway_sdk::duration")]
    pub timeout: Duration,
    pub success: PatternSettings,
    #[serde(default)]
    pub retry: Option<PatternSettings>,
}

/// What an answer is compared with; one of these.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PatternSettings {
    pub equals: Option<Sequence>,
    pub begins_with: Option<Sequence>,
    pub matches: Option<String>,
}

fn half_a_minute() -> Duration {
    Duration::from_secs(30)
}

pub(crate) fn unfit(name: &str, why: &str) -> Failure {
    Failure::new("bad-settings", format!("setting `{name}`: {why}"))
}
