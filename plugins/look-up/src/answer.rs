//! What an answer means, and the values in it.
//!
//! An API that is away is no message's fault; one that lets us in no more is an operator's matter; one
//! that answers a message badly, or not in time, is asked again for that message.

use portway_json::{Path, Value};
use portway_sdk::http::{Error, Response};
use portway_sdk::{Failure, Later, Problem, ResultExt, Trouble};

/// Bytes of an attribute's value.
const VALUE_BYTES_MAX: usize = 4096;
/// Bytes of an answer that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// What the API has.
pub enum Found {
    Answer(String),
    Nothing,
}

/// Sorts an answer.
pub fn found(answer: Result<Response, Error>) -> Result<Found, Problem> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(error.into_problem()),
    };
    let code = answer.status.to_string();
    match answer.status {
        200..=299 => Ok(Found::Answer(answer.body.text()?.into_owned())),
        404 | 410 => Ok(Found::Nothing),
        401 => Err(Trouble::misconfigured(code, said(&answer)).into()),
        // It may be what was asked for this one message: others go on.
        408 | 425 | 429 | 500..=599 => {
            Err(Later { failure: Failure::new(code, said(&answer)), after_ms: wait(&answer) }.into())
        }
        _ => Err(Problem::quarantine(code, said(&answer))),
    }
}

/// Seconds of `Retry-After`, in milliseconds.
fn wait(answer: &Response) -> Option<u32> {
    let seconds: u32 = answer.header("retry-after")?.trim().parse().ok()?;
    Some(seconds.saturating_mul(1_000).min(i32::MAX as u32))
}

/// The beginning of what the API says.
fn said(answer: &Response) -> String {
    let text = answer.body.text().unwrap_or_default();
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    text.get(..end).unwrap_or_default().to_owned()
}

/// The answer as a document.
pub fn read(text: &str) -> Result<Value<'_>, Problem> {
    portway_json::parse(text).quarantine("bad-answer")
}

/// The value at a place: texts as they are, all else as it is written.
pub fn value(document: &Value<'_>, path: &Path) -> Result<String, Problem> {
    let found = path.find(document, document);
    let found = found
        .ok_or_else(|| Problem::quarantine("bad-answer", format!("the answer has nothing at `{path}`")))?;
    let text = match found {
        Value::Text(text) => text.to_string(),
        other => other.to_json(),
    };
    if text.len() > VALUE_BYTES_MAX {
        let text = format!("what the answer has at `{path}` is longer than {VALUE_BYTES_MAX} bytes");
        return Err(Problem::quarantine("bad-answer", text));
    }
    Ok(text)
}
