//! The file sender: messages become records of a file, or files of their own.
//!
//! A message is sent when it is on the disk. In append mode a run costs one append and one
//! sync, and nothing of it counts as sent before that sync has returned; in files mode each
//! file appears whole or not at all. Names are in `name`, what an error of the folder means
//! in `trouble`.

mod append;
mod name;
mod put;
mod record;
mod settings;
mod trouble;

use portway_sdk::{
    Answer, Call, Context, Failure, Message, Problem, SendVerdict, Sender, Trouble, send_each,
};

use crate::append::Appender;
use crate::put::Putter;
use crate::record::Separator;
pub use crate::settings::Settings;
use crate::settings::{DEFAULT_APPEND_NAME, DEFAULT_PUT_NAME, Mode};

/// The slot of the manifest.
const FOLDER: &str = "folder";

/// One destination.
pub enum FileSender {
    Append(Appender),
    Put(Putter),
}

impl Sender for FileSender {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        let file = settings.file.as_deref();
        match settings.mode {
            Mode::Append => {
                let name = file.unwrap_or(DEFAULT_APPEND_NAME).parse()?;
                let separator = Separator::new(settings.separator, settings.separator_in_message);
                Ok(FileSender::Append(Appender::new(name, separator)))
            }
            Mode::Files => {
                let name = file.unwrap_or(DEFAULT_PUT_NAME).parse()?;
                Ok(FileSender::Put(Putter::new(name, settings.on_exists)))
            }
        }
    }

    fn send(&mut self, call: &Call, message: Message) -> Result<Answer, Problem> {
        match self {
            FileSender::Put(putter) => putter.put(call, &message),
            FileSender::Append(appender) => appender.append_one(call, message),
        }
    }

    fn send_batch(&mut self, call: &Call, messages: Vec<Message>) -> Result<Vec<SendVerdict>, Trouble> {
        match self {
            FileSender::Put(putter) => send_each(call, messages, |message| putter.put(call, &message)),
            FileSender::Append(appender) => appender.append(call, messages),
        }
    }
}

portway_sdk::export_sender!(FileSender);
