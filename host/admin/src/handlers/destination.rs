//! The routes of destinations.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};

use super::{Answer, Api, author, check_words, word};
use crate::error::ApiError;
use crate::{
    DestinationAction, DestinationActionKind, Head, LaneAction, LaneActionKind, RemoveState, params, views,
};

type Names = Result<Path<(String, String)>, PathRejection>;
type Lane = Result<Json<params::ActOnLane>, JsonRejection>;

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

pub(super) async fn skip(State(api): State<Api>, names: Names, lane: Lane) -> Answer<views::ActionDone> {
    let action = lane_action(LaneActionKind::Skip, names, lane)?;
    if action.reason.is_empty() {
        return Err(ApiError::invalid("a skip needs a `reason`"));
    }
    Ok(Json(api.control.act_on_lane(action).await?))
}

pub(super) async fn retry(State(api): State<Api>, names: Names, lane: Lane) -> Answer<views::ActionDone> {
    let action = lane_action(LaneActionKind::Retry, names, lane)?;
    Ok(Json(api.control.act_on_lane(action).await?))
}

pub(super) async fn list_actions(
    State(api): State<Api>,
    names: Names,
) -> Answer<Vec<views::DestinationActionRecord>> {
    let (interface, destination) = slot(names)?;
    Ok(Json(api.control.list_destination_actions(&interface, &destination).await?))
}

pub(super) async fn list_state(
    State(api): State<Api>,
    names: Names,
    list: Result<Query<params::ListState>, QueryRejection>,
) -> Answer<views::StatePage> {
    let (interface, destination) = slot(names)?;
    let Query(list) = list.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    if !(1..=params::ListState::LIMIT_MAX).contains(&list.limit) {
        let text = format!("`limit` is {}, it goes from 1 to {}", list.limit, params::ListState::LIMIT_MAX);
        return Err(ApiError::invalid(text));
    }
    if list.after.is_some() && list.space.is_none() {
        return Err(ApiError::invalid("`after` needs `space`: keys are in order within one"));
    }
    Ok(Json(api.control.list_state(&interface, &destination, list).await?))
}

pub(super) async fn get_state(
    State(api): State<Api>,
    names: Names,
    state: Result<Query<params::GetState>, QueryRejection>,
) -> Answer<views::StateValue> {
    let (interface, destination) = slot(names)?;
    let Query(state) = state.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    Ok(Json(api.control.get_state(&interface, &destination, state).await?))
}

pub(super) async fn remove_state(
    State(api): State<Api>,
    names: Names,
    remove: Result<Json<params::RemoveState>, JsonRejection>,
) -> Answer<views::StateRemoved> {
    let (interface, destination) = slot(names)?;
    let Json(remove) = remove.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    let params::RemoveState { space, key, reason, author: given } = remove;
    check_words(&reason, &given)?;
    if reason.is_empty() {
        return Err(ApiError::invalid("to remove a value needs a `reason`"));
    }
    let author = author(given);
    let remove = RemoveState { interface, destination, space, key, author, reason };
    Ok(Json(api.control.remove_state(remove).await?))
}

async fn act(api: &Api, action: DestinationAction) -> Answer<views::DestinationActionDone> {
    let done = views::DestinationActionDone {
        interface: action.interface.clone(),
        destination: action.destination.clone(),
    };
    api.control.act_on_destination(action).await?;
    Ok(Json(done))
}

fn action(kind: DestinationActionKind, names: Names, body: &[u8]) -> Result<DestinationAction, ApiError> {
    let (interface, destination) = slot(names)?;
    let params::Word { reason, author: given } = word(body)?;
    check_words(&reason, &given)?;
    Ok(DestinationAction { interface, destination, kind, author: author(given), reason })
}

fn lane_action(kind: LaneActionKind, names: Names, lane: Lane) -> Result<LaneAction, ApiError> {
    let (interface, destination) = slot(names)?;
    let Json(lane) = lane.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    check_words(&lane.reason, &lane.author)?;
    let head = match (lane.lane, lane.message) {
        (None, None) => Head::Only,
        (Some(lane), None) => Head::Lane(lane),
        (None, Some(message)) => Head::Message(message),
        (Some(_), Some(_)) => return Err(ApiError::invalid("name a `lane` or a `message`, not both")),
    };
    let author = author(lane.author);
    Ok(LaneAction { interface, destination, head, kind, author, reason: lane.reason })
}

fn slot(names: Names) -> Result<(String, String), ApiError> {
    names.map(|Path(names)| names).map_err(|rejection| ApiError::invalid(rejection.body_text()))
}
