//! The routes of retention.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use super::{Answer, Api, author, check_words, word};
use crate::error::ApiError;
use crate::{ConfirmRetention, views};

pub(super) async fn list(State(api): State<Api>) -> Answer<views::Retentions> {
    Ok(Json(api.control.list_retention().await?))
}

pub(super) async fn confirm(
    State(api): State<Api>,
    interface: Result<Path<String>, PathRejection>,
    body: Bytes,
) -> Answer<views::RetentionConfirmed> {
    let Path(interface) = interface.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    let word = word(&body)?;
    check_words(&word.reason, &word.author)?;
    let confirm = ConfirmRetention { interface, author: author(word.author), reason: word.reason };
    Ok(Json(api.control.confirm_retention(confirm).await?))
}
