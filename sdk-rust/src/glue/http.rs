//! Requests and answers of HTTP: those of a sender's plans, and those of the service.

use crate::glue::convert::{body_in, body_out};
use crate::glue::services::portway::host::http as wit;
use crate::glue::services::portway::plugin::types::Later;
use crate::{HttpError, Request, RequestContent, Response};

/// A request; `index` is that of the message at hand. Where a long body cannot be handed over,
/// there is none.
pub fn request_out(request: Request, index: u32) -> Result<wit::Request, Later> {
    let content = match request.content {
        RequestContent::None => wit::Content::None,
        RequestContent::OfMessage => wit::Content::OfMessage(index),
        RequestContent::Body(body) => wit::Content::Body(body_out(body)?),
    };
    Ok(wit::Request {
        method: request.method,
        url: request.url,
        headers: request.headers,
        content,
        timeout_ms: request.timeout_ms,
    })
}

/// What came of a request.
pub fn outcome_in(outcome: Result<wit::Response, wit::Error>) -> Result<Response, HttpError> {
    let response = outcome.map_err(error_in)?;
    Ok(Response { status: response.status, headers: response.headers, body: body_in(response.body) })
}

fn error_in(error: wit::Error) -> HttpError {
    match error {
        wit::Error::Denied(text) => HttpError::Denied(text),
        wit::Error::Timeout => HttpError::Timeout,
        wit::Error::Unreachable(text) => HttpError::Unreachable(text),
        wit::Error::TooLarge => HttpError::TooLarge,
        wit::Error::Invalid(text) => HttpError::Invalid(text),
        wit::Error::Other(text) => HttpError::Other(text),
    }
}
