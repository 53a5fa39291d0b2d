//! The routes of destinations.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use super::{Answer, Api, author, check_words};
use crate::error::ApiError;
use crate::{DestinationAction, DestinationActionKind, params, views};

type Names = Result<Path<(String, String)>, PathRejection>;

pub(super) async fn pause(
    State(api): State<Api>,
    names: Names,
    word: Bytes,
) -> Answer<views::DestinationActionDone> {
    let action = action(DestinationActionKind::Pause, names, &word)?;
    if action.reason.is_empty() {
        return Err(ApiError::invalid("a pause needs a `reason`"));
    }
    act(&api, action).await
}

pub(super) async fn resume(
    State(api): State<Api>,
    names: Names,
    word: Bytes,
) -> Answer<views::DestinationActionDone> {
    act(&api, action(DestinationActionKind::Resume, names, &word)?).await
}

pub(super) async fn list_actions(
    State(api): State<Api>,
    names: Names,
) -> Answer<Vec<views::DestinationActionRecord>> {
    let (interface, destination) = slot(names)?;
    Ok(Json(api.control.list_destination_actions(&interface, &destination).await?))
}

async fn act(api: &Api, action: DestinationAction) -> Answer<views::DestinationActionDone> {
    let done = views::DestinationActionDone {
        interface: action.interface.clone(),
        destination: action.destination.clone(),
    };
    api.control.act_on_destination(action).await?;
    Ok(Json(done))
}

/// Without a body nothing is said.
fn action(kind: DestinationActionKind, names: Names, word: &[u8]) -> Result<DestinationAction, ApiError> {
    let (interface, destination) = slot(names)?;
    let word: Option<params::Word> = match word {
        [] => None,
        given => serde_json::from_slice(given).map_err(|error| ApiError::invalid(error.to_string()))?,
    };
    let params::Word { reason, author: given } = word.unwrap_or_default();
    check_words(&reason, &given)?;
    Ok(DestinationAction { interface, destination, kind, author: author(given), reason })
}

fn slot(names: Names) -> Result<(String, String), ApiError> {
    names.map(|Path(names)| names).map_err(|rejection| ApiError::invalid(rejection.body_text()))
}
