//! What a reply, or none, means for the message and for the destination.

use std::time::Duration;

use portway_sdk::connect::Error;
use portway_sdk::{Later, Problem, Trouble};

use crate::line::LineError;
use crate::reply::Reply;

/// When to try again where our own limit of connections is reached.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// No connection.
pub(crate) fn unreachable(error: Error) -> Trouble {
    let text = error.to_string();
    match error {
        Error::Denied => Trouble::misconfigured("denied", text),
        Error::Untrusted(_) => Trouble::misconfigured("untrusted", text),
        Error::Busy => Trouble::Unavailable(
            Later::new("busy", format!("{text}: grant more, or set a lower `concurrency`"))
                .not_before(BUSY_WAIT),
        ),
        Error::Timeout => Trouble::unavailable("unreachable", "the server did not answer in time"),
        Error::Unreachable(_) | Error::Closed | Error::Other(_) => Trouble::unavailable("unreachable", text),
    }
}

/// Before the first message: what fails is the destination's, not a message's.
pub(crate) fn opening(step: &str, error: LineError) -> Trouble {
    match error {
        LineError::Failed(error) => unreachable(error),
        LineError::Closed => {
            Trouble::unavailable("unreachable", format!("the server closed the connection at {step}"))
        }
        LineError::Bad(why) => Trouble::unavailable("bad-reply", format!("at {step}: {why}")),
    }
}

/// The server does not go on, before the first message.
pub(crate) fn not_opened(step: &str, reply: &Reply) -> Trouble {
    Trouble::unavailable("unreachable", format!("the server answered {} to {step}", reply.shown()))
}

/// The conversation about a message broke off. Whether it arrived is not known where its end was
/// said already.
pub(crate) fn lost(step: &str, error: LineError) -> Problem {
    match error {
        LineError::Failed(error @ (Error::Denied | Error::Untrusted(_))) => unreachable(error).into(),
        LineError::Failed(Error::Timeout) => {
            Problem::retry("timeout", format!("the server did not answer {step} in time"))
        }
        LineError::Failed(error) => {
            Problem::retry("connection-lost", format!("the connection was lost at {step}: {error}"))
        }
        LineError::Closed => {
            Problem::retry("connection-lost", format!("the server closed the connection at {step}"))
        }
        LineError::Bad(why) => {
            Problem::retry("bad-reply", format!("at {step}: {why}; the connection was closed"))
        }
    }
}

/// The server refuses a step of a transaction before its end: with its farewell it refuses no message.
pub(crate) fn refused(step: &str, reply: &Reply) -> Problem {
    match reply.code {
        421 => not_opened(step, reply).into(),
        // It wants a login, or a better one.
        530 | 534 | 535 | 538 => {
            let text = format!("the server answered {} to {step}", reply.shown());
            Trouble::misconfigured("login-refused", text).into()
        }
        _ => not_taken(step, reply),
    }
}

/// The server did not take a mail.
pub(crate) fn not_taken(step: &str, reply: &Reply) -> Problem {
    let text = format!("the server answered {} to {step}", reply.shown());
    if reply.is_permanent() {
        Problem::quarantine("smtp-refused", text)
    } else if reply.is_temporary() {
        Problem::retry("smtp-not-now", text)
    } else {
        Problem::retry("bad-reply", text)
    }
}
