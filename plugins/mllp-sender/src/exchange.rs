//! The exchange: a frame out, its acknowledgement back.

use std::io::Read;
use std::time::Duration;

use portway_hl7::{Message as Hl7, ParseError};
use portway_sdk::connect::{self, Connection, Error};
use portway_sdk::{Answer, Body, Deadline, Failure, Later, Message, Problem, ResultExt, Trouble, log};

use crate::acknowledgement::{Acknowledgement, Code, NotOurs};
use crate::frame::{self, Progress, Received};
use crate::{Settings, WaitFor};

/// The slot of the manifest.
const PEER: &str = "peer";
/// What is written or read at once.
const CHUNK_BYTES: u32 = 64 * 1024;
/// How much of a large message is looked at for its header.
const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// How long the last byte of a frame may take that some leave out.
const SECOND_END_WAIT: Duration = Duration::from_millis(200);
/// When to try again where our own limit of connections is reached.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// The connection of one call.
pub struct Line<'a> {
    settings: &'a Settings,
    deadline: Deadline,
    connection: Option<Open>,
}

struct Open {
    connection: Connection,
    /// Something was said on it before, in this call or an earlier one: the peer may have
    /// closed it since.
    used: bool,
}

impl<'a> Line<'a> {
    pub fn new(settings: &'a Settings, deadline: Deadline) -> Self {
        Line { settings, deadline, connection: None }
    }

    /// Gives the connection back for a later call.
    pub fn release(self) {
        if let Some(open) = self.connection {
            open.connection.keep();
        }
    }

    /// Sends one message. Whenever it is not clear what the next bytes of the peer will
    /// mean, the connection is closed.
    pub fn deliver(&mut self, message: &Message) -> Result<Answer, Problem> {
        let control_id = control_id(&message.body)?;
        frame::check(&message.body)?;
        let mut open = self.write_message(&message.body)?;
        let mut received = Received::default();
        let mut acknowledgement =
            self.read_acknowledgement(&mut open, &mut received, &control_id, self.settings.ack_timeout)?;
        let waits_on =
            self.settings.wait_for == WaitFor::Application && acknowledgement.0.code == Code::CommitAccept;
        if waits_on {
            let patience = self.settings.application_ack_timeout;
            acknowledgement = self.read_acknowledgement(&mut open, &mut received, &control_id, patience)?;
        }
        let (acknowledgement, state) = acknowledgement;
        match state {
            LineState::Clean => self.connection = Some(open),
            LineState::Unknown => log::notice(
                "bytes-after-ack",
                "the peer sent more than the acknowledgement; the connection was closed",
            ),
        }
        judge(acknowledgement)
    }

    /// Writes the frame. A connection that was used before may have died unnoticed: where
    /// the very first write finds it closed, no frame can have arrived, and it is dialled
    /// anew once. After that nothing is sent twice without a verdict in between.
    fn write_message(&mut self, body: &Body) -> Result<Open, Problem> {
        let mut open = self.open()?;
        let (first, rest) = first_piece(body)?;
        let mut written = self.write(&mut open, &first);
        if written == Err(Error::Closed) && open.used {
            // Closed first: it counts against the connections that are allowed.
            drop(open);
            open = self.open()?;
            written = self.write(&mut open, &first);
        }
        written.map_err(lost)?;
        if let Some(offset) = rest {
            self.write_rest(&mut open, body, offset)?;
        }
        open.used = true;
        Ok(open)
    }

    fn open(&mut self) -> Result<Open, Problem> {
        if let Some(open) = self.connection.take() {
            return Ok(open);
        }
        let connection = connect::open(PEER).map_err(unreachable)?;
        let used = !connection.is_fresh();
        Ok(Open { connection, used })
    }

    fn write(&self, open: &mut Open, bytes: &[u8]) -> Result<(), Error> {
        let timeout = self.settings.ack_timeout.min(self.deadline.remaining());
        open.connection.write(bytes, timeout)
    }

    fn write_rest(&self, open: &mut Open, body: &Body, offset: u64) -> Result<(), Problem> {
        let mut reader = body.reader_at(offset);
        loop {
            let mut chunk = Vec::new();
            reader.by_ref().take(u64::from(CHUNK_BYTES)).read_to_end(&mut chunk).retry("body")?;
            let is_end = chunk.len() < CHUNK_BYTES as usize;
            if is_end {
                chunk.extend_from_slice(&[frame::END, frame::END_SECOND]);
            }
            self.write(open, &chunk).map_err(lost)?;
            if is_end {
                return Ok(());
            }
        }
    }

    fn read_acknowledgement(
        &self,
        open: &mut Open,
        received: &mut Received,
        control_id: &[u8],
        patience: Duration,
    ) -> Result<(Acknowledgement, LineState), Problem> {
        let wait = Deadline::after(patience.min(self.deadline.remaining()));
        read_frame(open, received, &wait)?;
        let Some(taken) = received.take() else {
            return Err(Problem::retry("bad-ack", "the peer sent no frame"));
        };
        if taken.junk_before > 0 {
            let text = format!("{} bytes before an acknowledgement are no frame", taken.junk_before);
            log::notice("junk-before-ack", text);
        }
        let state = if taken.is_last && taken.is_exact { LineState::Clean } else { LineState::Unknown };
        match Acknowledgement::read(&taken.message, control_id) {
            Ok(acknowledgement) => Ok((acknowledgement, state)),
            Err(NotOurs::Unreadable(why)) => Err(Problem::retry(
                "bad-ack",
                format!("the peer's answer is no acknowledgement: {why}; the connection was closed"),
            )),
            Err(NotOurs::Foreign { control_id: theirs }) => Err(Problem::retry(
                "foreign-ack",
                format!(
                    "the peer acknowledged `{theirs}`, but `{}` was sent; the connection was closed",
                    String::from_utf8_lossy(control_id)
                ),
            )),
        }
    }
}

/// What the next byte of a connection can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// The beginning of the next answer, and nothing else.
    Clean,
    Unknown,
}

/// Reads until a frame is whole, or as whole as it gets.
fn read_frame(open: &mut Open, received: &mut Received, wait: &Deadline) -> Result<(), Problem> {
    loop {
        let timeout = match received.progress() {
            Progress::Whole => return Ok(()),
            Progress::TooLong => {
                return Err(Problem::retry(
                    "bad-ack",
                    format!(
                        "the peer sent more than {} bytes without an acknowledgement",
                        frame::ACK_BYTES_MAX
                    ),
                ));
            }
            Progress::Partial => wait.remaining(),
            Progress::NoSecondEnd => wait.remaining().min(SECOND_END_WAIT),
        };
        let is_readable = received.progress() == Progress::NoSecondEnd;
        match open.connection.read(CHUNK_BYTES, timeout) {
            Ok(bytes) if !bytes.is_empty() => received.push(&bytes),
            // The frame can be read without its last byte.
            Ok(_) | Err(_) if is_readable => return Ok(()),
            Ok(_) => {
                let text = "the peer closed the connection without an acknowledgement";
                return Err(Problem::retry("closed", format!("{text}{}", received.remains())));
            }
            Err(Error::Timeout) => {
                let text = "the peer did not acknowledge in time; the connection was closed, so that a late \
                            acknowledgement meets nothing";
                return Err(Problem::retry("ack-timeout", format!("{text}{}", received.remains())));
            }
            Err(error) => return Err(lost(error)),
        }
    }
}

/// The frame as far as it goes in one write, and where in the message the rest begins.
fn first_piece(body: &Body) -> Result<(Vec<u8>, Option<u64>), Problem> {
    let (bytes, rest) = match body {
        Body::Inline(bytes) => (bytes.as_slice().into(), None),
        Body::Blob(blob) => {
            let chunk = blob.read(0, CHUNK_BYTES).retry("body")?;
            let offset = chunk.len() as u64;
            (std::borrow::Cow::Owned(chunk), (offset < blob.size()).then_some(offset))
        }
    };
    let mut piece = Vec::with_capacity(bytes.len() + 3);
    piece.push(frame::START);
    piece.extend_from_slice(&bytes);
    if rest.is_none() {
        piece.extend_from_slice(&[frame::END, frame::END_SECOND]);
    }
    Ok((piece, rest))
}

/// MSH-10 as written; empty where there is none.
fn control_id(body: &Body) -> Result<Vec<u8>, Problem> {
    let start = match body {
        Body::Inline(bytes) => std::borrow::Cow::Borrowed(bytes.as_slice()),
        Body::Blob(blob) => std::borrow::Cow::Owned(blob.read(0, HEADER_BYTES_MAX).retry("body")?),
    };
    let no_message =
        |error: ParseError| Problem::quarantine("not-hl7", format!("the message is no HL7 v2: {error}"));
    let header = Hl7::parse(&start).map_err(no_message)?.header();
    if !header.is("MSH") {
        return Err(Problem::quarantine(
            "batch",
            "the message is a batch, which no single acknowledgement can answer; split it before it is sent",
        ));
    }
    Ok(header.field(10).map_or_else(Vec::new, |field| field.raw().to_vec()))
}

fn judge(acknowledgement: Acknowledgement) -> Result<Answer, Problem> {
    let Acknowledgement { code, written, text } = acknowledgement;
    match code {
        Code::ApplicationAccept | Code::CommitAccept => Ok(Answer::new(written, text)),
        Code::Error => Err(Later { failure: refused(written, &text), after_ms: None }.into()),
        Code::Reject => Err(refused(written, &text).into()),
    }
}

fn refused(code: String, text: &str) -> Failure {
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    let text = format!("the peer answered {code}{said}");
    Failure::new(code, text)
}

/// Nothing was sent.
fn unreachable(error: Error) -> Problem {
    let text = error.to_string();
    let trouble = match error {
        Error::Denied => Trouble::misconfigured("denied", text),
        Error::Untrusted(_) => Trouble::misconfigured("untrusted", text),
        Error::Busy => Trouble::Unavailable(
            Later::new("busy", format!("{text}: grant more, or set a lower `concurrency`"))
                .not_before(BUSY_WAIT),
        ),
        Error::Timeout => {
            Trouble::unavailable("unreachable", "the peer cannot be reached: no connection in time")
        }
        Error::Unreachable(_) | Error::Closed | Error::Other(_) => Trouble::unavailable("unreachable", text),
    };
    trouble.into()
}

/// Something may have arrived.
fn lost(error: Error) -> Problem {
    let code = match error {
        // Both before the peer took a byte of a message.
        Error::Denied | Error::Untrusted(_) => return unreachable(error),
        Error::Timeout => "timeout",
        _ => "connection-lost",
    };
    Problem::retry(code, format!("the connection was lost before the acknowledgement: {error}"))
}
