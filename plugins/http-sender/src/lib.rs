//! The HTTP sender: one request a message, and what its answer means.
//!
//! It does no IO: the host keeps connections, attaches credentials and sends the body of the
//! message without it ever passing through here. What is asked is in `ask`, what an answer
//! means in `verdict`, when a server wants to be asked again in `retry_after`.

mod ask;
mod retry_after;
mod settings;
mod verdict;

use portway_sdk::{Answer, Call, Context, Failure, HttpReply, HttpSender as Plugin, Message, Plan, Problem};

use crate::ask::Asking;
pub use crate::settings::Settings;
use crate::verdict::Judging;

/// One destination.
pub struct HttpSender {
    asking: Asking,
    judging: Judging,
}

impl Plugin for HttpSender {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        let judging = Judging::new(&settings);
        Ok(HttpSender { asking: Asking::new(settings)?, judging })
    }

    fn prepare(&mut self, call: &Call, message: &Message) -> Result<Plan, Problem> {
        self.asking.request(call, message).map(Plan::from)
    }

    fn judge(&mut self, reply: HttpReply) -> Result<Answer, Problem> {
        self.judging.judge(reply.outcome)
    }
}

portway_sdk::export_http_sender!(HttpSender);
