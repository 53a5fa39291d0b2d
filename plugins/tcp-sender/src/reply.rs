//! Reads one answer from a connection.

use std::rc::Rc;

use portway_framing::{Decoder, Event, Framing};
use portway_sdk::connect::{Connection, Error};
use portway_sdk::{Deadline, Problem};

use crate::exchange::lost;

/// Bytes of a framed answer.
pub const REPLY_BYTES_MAX: u64 = 64 * 1024;
/// What is read at once.
const CHUNK_BYTES: u32 = 64 * 1024;

/// Where an answer ends.
#[derive(Debug)]
pub(crate) enum Reading {
    Framed(Rc<Framing>),
    Bytes(usize),
}

/// One answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub bytes: Vec<u8>,
    /// Bytes came before it that are no frame.
    pub after_junk: bool,
    pub behind: Behind,
}

/// What came behind an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// Blanks and line ends.
    Blanks,
    /// Something that may be another answer.
    More,
}

impl Behind {
    fn of(bytes: &[u8]) -> Behind {
        if bytes.is_empty() {
            return Behind::Nothing;
        }
        let are_blank = bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0);
        if are_blank { Behind::Blanks } else { Behind::More }
    }
}

impl Reading {
    /// Waits until an answer is whole.
    pub(crate) fn read(&self, connection: &mut Connection, wait: &Deadline) -> Result<Reply, Problem> {
        match self {
            Reading::Framed(framing) => framed(framing, connection, wait),
            Reading::Bytes(count) => counted(*count, connection, wait),
        }
    }
}

fn counted(count: usize, connection: &mut Connection, wait: &Deadline) -> Result<Reply, Problem> {
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        bytes.extend(more(connection, wait, bytes.len())?);
    }
    let behind = Behind::of(bytes.get(count..).unwrap_or(&[]));
    bytes.truncate(count);
    Ok(Reply { bytes, after_junk: false, behind })
}

fn framed(framing: &Rc<Framing>, connection: &mut Connection, wait: &Deadline) -> Result<Reply, Problem> {
    let mut decoder = Decoder::new(Rc::clone(framing), REPLY_BYTES_MAX, 0);
    let mut received = Vec::new();
    let mut after_junk = false;
    let mut taken = 0;
    loop {
        received.extend(more(connection, wait, received.len())?);
        while let Some(rest) = received.get(taken..).filter(|rest| !rest.is_empty()) {
            let (used, event) = decoder.take(rest);
            taken += used;
            let why = match event {
                None => break,
                Some(Event::Junk { .. }) => {
                    after_junk = true;
                    continue;
                }
                Some(Event::Frame(frame)) if frame.start_inside => "a start stands inside its frame",
                Some(Event::Frame(frame)) => {
                    let part = |start: u64, len: u64| {
                        let start = usize::try_from(start).ok()?;
                        received.get(start..start.checked_add(usize::try_from(len).ok()?)?)
                    };
                    let bytes = part(frame.start, frame.len).unwrap_or_default().to_vec();
                    let behind = Behind::of(received.get(taken..).unwrap_or(&[]));
                    return Ok(Reply { bytes, after_junk, behind });
                }
                Some(Event::Empty) => "its frame is empty",
                Some(Event::TooLarge) => "it is too long",
                Some(Event::BadLength) => "the length before it is none",
                Some(Event::NoStart) => "it has no start",
            };
            let text = format!("the peer's answer cannot be read: {why}; the connection was closed");
            return Err(Problem::retry("bad-ack", text));
        }
    }
}

/// The next bytes; not none.
fn more(connection: &mut Connection, wait: &Deadline, before: usize) -> Result<Vec<u8>, Problem> {
    match connection.read(CHUNK_BYTES, wait.remaining()) {
        Ok(bytes) if !bytes.is_empty() => Ok(bytes),
        Ok(_) if before == 0 => {
            Err(Problem::retry("closed", "the peer closed the connection without an answer"))
        }
        Ok(_) => Err(Problem::retry("closed", "the peer closed the connection inside its answer")),
        Err(Error::Timeout) => Err(Problem::retry(
            "ack-timeout",
            "the peer did not answer in time; the connection was closed, so that a late answer meets nothing",
        )),
        Err(error) => Err(lost(&error)),
    }
}
