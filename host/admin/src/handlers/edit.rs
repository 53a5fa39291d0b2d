//! The route that takes a corrected copy of a message.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use http::StatusCode;
use portway_model::{MessageId, code};

use super::{Answer, Api, author, check_words, message_id};
use crate::error::ApiError;
use crate::{Edit, params, views};

/// The body of the request is the message's new bytes, as they are.
pub(super) async fn edit(
    State(api): State<Api>,
    id: Result<Path<MessageId>, PathRejection>,
    asked: Result<Query<params::Edit>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Answer<views::Edited> {
    let message = message_id(id)?;
    let Query(asked) = asked.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    check_words(&asked.reason, &asked.author)?;
    let too_large = |rejection: BytesRejection| {
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, code::TOO_LARGE, rejection.body_text())
    };
    let body = body.map_err(too_large)?;
    if body.is_empty() {
        return Err(ApiError::invalid("the corrected message is empty"));
    }
    let _held = api.bodies.try_acquire().map_err(|_| {
        let text = "other message bodies are on their way; ask again";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code::BUSY, text)
    })?;
    let names = |list: String| list.split(',').map(str::to_owned).collect::<Vec<_>>();
    let destinations = asked.destinations.filter(|list| !list.is_empty()).map(names);
    let (author, reason) = (author(asked.author), asked.reason);
    Ok(Json(api.control.edit(Edit { message, body, destinations, author, reason }).await?))
}
