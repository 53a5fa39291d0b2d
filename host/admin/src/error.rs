//! Answers that are errors: one kind, one HTTP status, one body.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use portway_model::code;

use crate::{ControlError, ControlErrorKind, views};

/// An error on its way to the caller. The guard writes the body: it knows the request's id.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) text: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, text: impl Into<String>) -> Self {
        ApiError { status, code, text: text.into() }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code::INVALID, text)
    }

    pub(crate) fn no_message(id: portway_model::MessageId) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, code::NO_MESSAGE, format!("there is no message `{id}`"))
    }

    pub(crate) fn body(&self, request_id: &str) -> views::Error {
        views::Error { code: self.code.into(), message: self.text.clone(), request_id: request_id.into() }
    }
}

impl From<ControlError> for ApiError {
    fn from(error: ControlError) -> Self {
        let status = match error.kind {
            ControlErrorKind::NotFound => StatusCode::NOT_FOUND,
            ControlErrorKind::Conflict => StatusCode::CONFLICT,
            ControlErrorKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            ControlErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ControlErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ApiError { status, code: error.code, text: error.text }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
