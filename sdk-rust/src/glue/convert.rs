//! What several kinds convert.

use std::time::Duration;

use crate::glue::services::portway::host::blobs as wit_blobs;
use crate::glue::services::portway::plugin::types as wit;
use crate::{Answer, Body, Call, Context, Failure, Later, Message, Trouble, blobs, host, parse_settings};

/// Context and settings.
pub fn opening<S: serde::de::DeserializeOwned>(context: wit::Context) -> Result<(S, Context), wit::Failure> {
    let settings = parse_settings(&context.settings).map_err(failure)?;
    let context = Context {
        origin: context.origin,
        destination: context.destination,
        attributes: context.attributes.into(),
    };
    Ok((settings, context))
}

/// Whether a kind looks at the time that is left.
pub enum Clock {
    Read,
    Spared,
}

pub fn batch(batch: wit::Batch, clock: Clock) -> (Call, Vec<Message>) {
    let time_left = Duration::from_millis(u64::from(batch.time_left_ms));
    let call = match clock {
        Clock::Read => Call::new(batch.store, batch.ordered, time_left),
        Clock::Spared => Call::untimed(batch.store, batch.ordered, time_left),
    };
    (call, batch.messages.into_iter().map(message).collect())
}

fn message(message: wit::Message) -> Message {
    Message {
        id: message.id,
        received_ms: message.received_ms,
        attempt: message.attempt,
        key: message.key,
        attributes: message.attributes.into(),
        body: body_in(message.body),
    }
}

pub fn body_in(body: wit_blobs::Body) -> Body {
    match body {
        wit_blobs::Body::Inline(bytes) => Body::Inline(bytes),
        wit_blobs::Body::Blob(blob) => Body::Blob(blobs::Blob(host::Blob(blob))),
    }
}

/// A long body goes to the host as a blob; where that fails, so does the message.
pub fn body_out(body: Body) -> Result<wit_blobs::Body, wit::Later> {
    match body.into_portable() {
        Ok(Body::Inline(bytes)) => Ok(wit_blobs::Body::Inline(bytes)),
        Ok(Body::Blob(blob)) => Ok(wit_blobs::Body::Blob(blob.0.0)),
        Err(error) => Err(later(Later::new("body", error.to_string()))),
    }
}

pub fn failure(failure: Failure) -> wit::Failure {
    wit::Failure { code: failure.code, text: failure.text }
}

pub fn later(later: Later) -> wit::Later {
    wit::Later { failure: failure(later.failure), after_ms: later.after_ms }
}

pub fn later_in(later: wit::Later) -> Later {
    let failure = Failure { code: later.failure.code, text: later.failure.text };
    Later { failure, after_ms: later.after_ms }
}

pub fn trouble(trouble: Trouble) -> wit::Trouble {
    match trouble {
        Trouble::Unavailable(why) => wit::Trouble::Unavailable(later(why)),
        Trouble::Misconfigured(why) => wit::Trouble::Misconfigured(failure(why)),
    }
}

/// Code and text of an answer, which each kind's own type takes.
pub fn answer(answer: Answer) -> (String, String) {
    (answer.code, answer.text)
}
