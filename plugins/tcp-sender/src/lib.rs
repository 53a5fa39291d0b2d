//! The TCP sender: one frame a message, and one answer to it where the receiver gives one.
//!
//! Between two messages the connection lies with the host, which lets go of one on which the peer spoke
//! or closed meanwhile; so what comes behind a message was said after it. Whenever an answer is missing
//! or unclear, the connection is closed, so that a late answer meets nothing. Framing is
//! `portway-framing`'s, the exchange is in `exchange`, what an answer says in `answer`.

mod answer;
mod exchange;
mod reply;
mod settings;

use portway_sdk::{Answer, Call, Context, Failure, Message, Problem, Sender};

use crate::exchange::Exchange;

pub use reply::REPLY_BYTES_MAX;
pub use settings::{AnswerSettings, PatternSettings, Settings};

/// One destination.
#[derive(Debug)]
pub struct TcpSender {
    exchange: Exchange,
}

impl Sender for TcpSender {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(TcpSender { exchange: Exchange::new(&settings)? })
    }

    fn send(&mut self, call: &Call, message: Message) -> Result<Answer, Problem> {
        self.exchange.deliver(&message.body, call.deadline)
    }
}

portway_sdk::export_sender!(TcpSender);
