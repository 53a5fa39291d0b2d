//! The exchange: a frame out, its answer back.

use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

use portway_framing::{Framing, Scan, Unfit, Wrapping};
use portway_sdk::connect::{self, Connection, Error};
use portway_sdk::{Answer, Body, Deadline, Failure, Later, Problem, ResultExt, Trouble, log};

use crate::{
    AnswerSettings, Settings,
    answer::{Meaning, Pattern},
    reply::{Behind, Reading},
    settings::unfit,
};

/// The slot of the manifest.
const PEER: &str = "peer";
/// What is read of a body, and written, at once.
const CHUNK_BYTES: u64 = 256 * 1024;
/// Bytes of an answer that is not framed.
const ANSWER_BYTES_MAX: usize = 4096;
/// When to try again where our own limit of connections is reached.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// How messages of one destination are sent.
#[derive(Debug)]
pub(crate) struct Exchange {
    framing: Rc<Framing>,
    write_timeout: Duration,
    /// None: a message is sent when it is written.
    answer: Option<Expected>,
}

/// The answer that is waited for.
#[derive(Debug)]
struct Expected {
    reading: Reading,
    timeout: Duration,
    meaning: Meaning,
}

impl Exchange {
    pub(crate) fn new(settings: &Settings) -> Result<Exchange, Failure> {
        let framing = Rc::new(settings.framing.framing()?);
        if settings.write_timeout.is_zero() {
            return Err(unfit("write_timeout", "a time-out of nothing leaves no time to write"));
        }
        let answer = settings.answer.as_ref().map(|answer| expected(answer, &framing)).transpose()?;
        Ok(Exchange { framing, write_timeout: settings.write_timeout, answer })
    }

    /// Sends one message. Whenever it is not clear what the next bytes of the peer will mean, the
    /// connection is closed.
    pub(crate) fn deliver(&self, body: &Body, deadline: Deadline) -> Result<Answer, Problem> {
        let wrapping = wrap(&self.framing, body)?;
        let mut connection = self.write_message(body, &wrapping, &deadline)?;
        let Some(expected) = &self.answer else {
            connection.keep();
            return Ok(Answer::new("written", "written to the connection; no answer is expected"));
        };
        let wait = Deadline::after(expected.timeout.min(deadline.remaining()));
        let reply = expected.reading.read(&mut connection, &wait)?;
        if reply.after_junk {
            log::notice("junk-before-ack", "bytes before an answer are no frame");
        }
        match reply.behind {
            Behind::Nothing => connection.keep(),
            Behind::Blanks => {
                log::notice("bytes-after-ack", "blanks came behind an answer; the connection was closed");
            }
            // Another answer may be the message's, and this one something else's.
            Behind::More => {
                return Err(Problem::retry(
                    "bytes-after-ack",
                    "more than one answer came, so it is not known which is the message's; the connection was closed",
                ));
            }
        }
        expected.meaning.judge(&reply.bytes)
    }

    /// Writes the frame. A kept connection may have died unnoticed: where the very first write finds it
    /// closed, no frame can have arrived, and it is dialled anew once. After that nothing is sent twice
    /// without a verdict in between.
    fn write_message(
        &self,
        body: &Body,
        wrapping: &Wrapping,
        deadline: &Deadline,
    ) -> Result<Connection, Problem> {
        let timeout = || self.write_timeout.min(deadline.remaining());
        let mut connection = connect::open(PEER).map_err(unreachable)?;
        let mut reader = body.reader();
        let mut piece = wrapping.head.clone();
        let mut is_first = true;
        loop {
            let before = piece.len();
            reader.by_ref().take(CHUNK_BYTES).read_to_end(&mut piece).retry("body")?;
            let is_end = ((piece.len() - before) as u64) < CHUNK_BYTES;
            if is_end {
                piece.extend_from_slice(&wrapping.tail);
            }
            let mut written = connection.write(&piece, timeout());
            if is_first && written == Err(Error::Closed) && !connection.is_fresh() {
                // Closed first: it counts against the connections that are allowed.
                drop(connection);
                connection = connect::open(PEER).map_err(unreachable)?;
                written = connection.write(&piece, timeout());
            }
            written.map_err(|error| lost(&error))?;
            if is_end {
                return Ok(connection);
            }
            is_first = false;
            piece.clear();
        }
    }
}

fn expected(settings: &AnswerSettings, framing: &Rc<Framing>) -> Result<Expected, Failure> {
    if settings.timeout.is_zero() {
        return Err(unfit("answer.timeout", "a time-out of nothing leaves no time to answer"));
    }
    let reading = match settings.bytes {
        Some(count) if (1..=ANSWER_BYTES_MAX).contains(&count) => Reading::Bytes(count),
        Some(_) => {
            return Err(unfit("answer.bytes", &format!("an answer has 1 to {ANSWER_BYTES_MAX} bytes")));
        }
        None if framing.has_end() => Reading::Framed(Rc::clone(framing)),
        None => {
            let why = "a frame without an end does not say where an answer ends; set `answer.bytes`";
            return Err(unfit("answer", why));
        }
    };
    let meaning = Meaning {
        success: Pattern::new(&settings.success, "answer.success")?,
        retry: settings.retry.as_ref().map(|retry| Pattern::new(retry, "answer.retry")).transpose()?,
    };
    Ok(Expected { reading, timeout: settings.timeout, meaning })
}

/// What goes around the message; one that would break its frame is never sent.
fn wrap(framing: &Framing, body: &Body) -> Result<Wrapping, Problem> {
    let mut scan = Scan::new(framing);
    match body {
        Body::Inline(bytes) => scan.feed(bytes),
        Body::Blob(blob) => {
            let mut offset = 0;
            while offset < blob.size() {
                let chunk = blob.read(offset, portway_sdk::blobs::CHUNK_BYTES).retry("body")?;
                if chunk.is_empty() {
                    return Err(Problem::retry("body", "the body ended before its size"));
                }
                scan.feed(&chunk);
                offset += chunk.len() as u64;
            }
        }
    }
    scan.finish().map_err(|unfit| match &unfit {
        Unfit::Empty => Problem::quarantine("empty-frame", unfit.to_string()),
        Unfit::TooLong { .. } => Problem::quarantine("too-large", unfit.to_string()),
        Unfit::Closes { .. } | Unfit::Opens { .. } | Unfit::EndUnclear { .. } => {
            Problem::quarantine("frame-byte", unfit.to_string())
        }
    })
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
pub(crate) fn lost(error: &Error) -> Problem {
    let code = match error {
        // Both before the peer took a byte of a message.
        Error::Denied | Error::Untrusted(_) => return unreachable(error.clone()),
        Error::Timeout => "timeout",
        _ => "connection-lost",
    };
    Problem::retry(code, format!("the connection was lost before the message was taken: {error}"))
}
