//! The SMTP sender: a message becomes an e-mail, and is sent when the server has taken it.
//!
//! What the mail looks like is in `mail`, its addresses in `address`; the conversation is in
//! `session`, a transaction of it in `transaction`, the lines and replies below it in `line`
//! and `reply`, what a reply means for the message in `judge`.

mod address;
mod dots;
mod judge;
mod line;
mod mail;
mod reply;
mod session;
mod settings;
mod transaction;

use portway_sdk::{
    Answer, Call, Context, Failure, Message, Problem, SendVerdict, Sender, Trouble, send_each,
};

use crate::mail::MailMaker;
use crate::session::{Conversation, Memory, Session};

pub use crate::settings::Settings;

/// One destination.
pub struct SmtpSender {
    maker: MailMaker,
    conversation: Conversation,
    memory: Memory,
}

impl SmtpSender {
    fn run<T>(&mut self, call: &Call, work: impl FnOnce(&MailMaker, &mut Session<'_>) -> T) -> T {
        let mut session = Session::new(&self.conversation, &mut self.memory, call.deadline);
        let result = work(&self.maker, &mut session);
        session.release();
        result
    }
}

impl Sender for SmtpSender {
    type Settings = Settings;

    fn open(settings: Settings, context: &Context) -> Result<Self, Failure> {
        let conversation = Conversation::new(&settings)?;
        let maker = MailMaker::new(settings, context)?;
        Ok(SmtpSender { maker, conversation, memory: Memory::default() })
    }

    fn send(&mut self, call: &Call, message: Message) -> Result<Answer, Problem> {
        self.run(call, |maker, session| session.deliver(&maker.make(call, &message)?))
    }

    /// A run goes over one connection, which is given back at its end.
    fn send_batch(&mut self, call: &Call, messages: Vec<Message>) -> Result<Vec<SendVerdict>, Trouble> {
        self.run(call, |maker, session| {
            send_each(call, messages, |message| session.deliver(&maker.make(call, &message)?))
        })
    }
}

portway_sdk::export_sender!(SmtpSender);
