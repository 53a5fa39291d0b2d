//! The line: commands out, replies back, and whether both sides still mean the same.

use std::time::Duration;

use portway_sdk::connect::{Connection, Credential, Error, Protection};
use portway_sdk::{Deadline, log};

use crate::reply::{Heard, Reply};

/// What is read at once.
const READ_BYTES: u32 = 4 * 1024;
/// How long a server that stopped taking a mail may take to say why.
const LAST_WORD_WAIT: Duration = Duration::from_secs(2);

/// A connection to a server that is in a known state, or is not used again.
pub(crate) struct Line {
    connection: Connection,
    heard: Heard,
    timeout: Duration,
    deadline: Deadline,
    /// What was said last had its answer, and nothing else came.
    is_clear: bool,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    Failed(Error),
    /// The server closed the connection.
    Closed,
    /// What came is no reply, or came unasked.
    Bad(String),
}

impl Line {
    pub fn new(connection: Connection, timeout: Duration, deadline: Deadline) -> Line {
        Line { connection, heard: Heard::default(), timeout, deadline, is_clear: true }
    }

    /// May go on, or be given back.
    pub fn is_clear(&self) -> bool {
        self.is_clear
    }

    pub fn protection(&self) -> Protection {
        self.connection.protection()
    }

    pub fn has_credentials(&self) -> bool {
        self.connection.has_credentials()
    }

    /// A command without its line end, and the reply to it.
    pub fn command(&mut self, command: &str) -> Result<Reply, LineError> {
        self.say(format!("{command}\r\n").as_bytes())?;
        self.reply()
    }

    /// A line of the credentials, and the reply to it.
    pub fn credential(&mut self, credential: Credential) -> Result<Reply, LineError> {
        self.ask_quiet()?;
        let timeout = self.patience();
        let written = self.connection.write_credential(credential, timeout);
        self.noted(written)?;
        self.reply()
    }

    /// Begins TLS. What came before it must not count as said under it.
    pub fn start_tls(&mut self) -> Result<(), LineError> {
        self.ask_quiet()?;
        let timeout = self.patience();
        let started = self.connection.start_tls(timeout);
        self.noted(started)
    }

    /// Writes a part of something that is answered as a whole.
    pub fn say(&mut self, bytes: &[u8]) -> Result<(), LineError> {
        self.ask_quiet()?;
        self.write_on(bytes)
    }

    /// The same without a look at what the server said meanwhile.
    pub fn write_on(&mut self, bytes: &[u8]) -> Result<(), LineError> {
        let timeout = self.patience();
        let written = self.connection.write(bytes, timeout);
        self.noted(written)
    }

    /// The reply to what was said.
    pub fn reply(&mut self) -> Result<Reply, LineError> {
        let wait = Deadline::after(self.patience());
        self.reply_within(&wait)
    }

    /// The reply of a server that did not take all of a mail, if it gives one.
    pub fn last_word(&mut self) -> Option<Reply> {
        let reply = self.reply_within(&Deadline::after(self.patience().min(LAST_WORD_WAIT))).ok();
        self.is_clear = false;
        reply
    }

    fn reply_within(&mut self, wait: &Deadline) -> Result<Reply, LineError> {
        self.is_clear = false;
        loop {
            if let Some(reply) = self.heard.take().map_err(LineError::Bad)? {
                self.is_clear = !reply.is_farewell();
                return Ok(reply);
            }
            let bytes = self.connection.read(READ_BYTES, wait.remaining()).map_err(LineError::Failed)?;
            if bytes.is_empty() {
                return Err(LineError::Closed);
            }
            self.heard.push(&bytes);
        }
    }

    /// Nothing came that nobody asked for: every later answer would be taken for another's.
    fn ask_quiet(&mut self) -> Result<(), LineError> {
        if self.heard.is_empty() {
            return Ok(());
        }
        self.is_clear = false;
        Err(LineError::Bad("the server answers more than it was asked".into()))
    }

    fn noted(&mut self, result: Result<(), Error>) -> Result<(), LineError> {
        self.is_clear = result.is_ok();
        result.map_err(LineError::Failed)
    }

    fn patience(&self) -> Duration {
        self.timeout.min(self.deadline.remaining())
    }

    /// Gives the connection back where the next command would have its own answer.
    pub fn release(self) {
        if !self.is_clear {
            return;
        }
        if self.heard.is_empty() {
            self.connection.keep();
        } else {
            log::notice(
                "bytes-after-ack",
                "the server said more than it was asked; the connection was closed",
            );
        }
    }

    /// Says goodbye; nobody waits for the answer.
    pub fn quit(mut self) {
        if self.is_clear {
            // Whether it arrives changes nothing.
            let _ = self.write_on(b"QUIT\r\n");
        }
    }
}
