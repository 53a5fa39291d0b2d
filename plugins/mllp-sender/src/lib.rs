//! The MLLP sender: one message, one acknowledgement, on one kept connection.
//!
//! A message is sent when its own acknowledgement says so. Anything else on the connection
//! (an acknowledgement of another message, one that came too late, bytes that are none)
//! leaves it in an unknown state: it is closed, and the message goes again on a new one.
//! Frames are in `frame`, what an acknowledgement says in `acknowledgement`, the exchange
//! itself in `exchange`.

mod acknowledgement;
mod exchange;
mod frame;

use std::time::Duration;

use portway_sdk::{
    Answer, Call, Context, Failure, Message, Problem, SendVerdict, Sender, Trouble, send_each,
};
use serde::Deserialize;

use crate::exchange::Line;

/// As in `plugin.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    #[serde(deserialize_with = "portway_sdk::duration")]
    pub ack_timeout: Duration,
    pub wait_for: WaitFor,
    #[serde(deserialize_with = "portway_sdk::duration")]
    pub application_ack_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            ack_timeout: Duration::from_secs(30),
            wait_for: WaitFor::First,
            application_ack_timeout: Duration::from_secs(60),
        }
    }
}

/// Which acknowledgement is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitFor {
    First,
    Application,
}

/// One destination.
pub struct MllpSender {
    settings: Settings,
}

impl Sender for MllpSender {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        if settings.ack_timeout.is_zero() || settings.application_ack_timeout.is_zero() {
            return Err(Failure::new("bad-settings", "a time-out of nothing leaves no time to acknowledge"));
        }
        Ok(MllpSender { settings })
    }

    fn send(&mut self, call: &Call, message: Message) -> Result<Answer, Problem> {
        let mut line = Line::new(&self.settings, call.deadline);
        let answer = line.deliver(&message)?;
        line.release();
        Ok(answer)
    }

    /// A run goes over one connection, which is given back at its end.
    fn send_batch(&mut self, call: &Call, messages: Vec<Message>) -> Result<Vec<SendVerdict>, Trouble> {
        let mut line = Line::new(&self.settings, call.deadline);
        let verdicts = send_each(call, messages, |message| line.deliver(&message));
        line.release();
        verdicts
    }
}

portway_sdk::export_sender!(MllpSender);
