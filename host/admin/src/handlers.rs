//! The routes: decode, one call, encode. Those of destinations are in `destination`.

mod bulk;
mod destination;
mod edit;
mod retention;

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use http::{StatusCode, header};
use http_body_util::{BodyExt, Full};
use portway_model::{MessageId, code};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::ApiError;
use crate::guard::{Guard, guard};
use crate::{Action, ActionKind, Control, DrainOrder, metrics, openapi, params, stream, views, web};

/// Bytes in the body of a request.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Message bodies on their way to callers at the same time.
const BODIES_MAX: usize = 4;

/// What the handlers share.
#[derive(Clone)]
struct Api {
    control: Arc<dyn Control>,
    bodies: Arc<Semaphore>,
}

type Answer<T> = Result<Json<T>, ApiError>;

/// Everything the API answers.
pub(crate) fn router(
    control: Arc<dyn Control>,
    with: Arc<Guard>,
    message_bytes_max: usize,
    stopped: watch::Receiver<bool>,
) -> Router {
    let api = Api { control: control.clone(), bodies: Arc::new(Semaphore::new(BODIES_MAX)) };
    Router::new()
        .merge(web::routes())
        .merge(openapi::routes())
        .merge(stream::routes(control, stopped))
        .route("/health", get(health))
        .route("/metrics", get(show_metrics))
        .route("/api/v1/status", get(status))
        .route("/api/v1/refusals", get(list_refusals))
        .route("/api/v1/messages", get(list_messages))
        .route("/api/v1/messages/resend", post(bulk::resend))
        .route("/api/v1/messages/dismiss", post(bulk::dismiss))
        .route("/api/v1/messages/{id}", get(get_message))
        .route("/api/v1/messages/{id}/body", get(get_body))
        .route("/api/v1/messages/{id}/outputs/{name}", get(get_output))
        .route("/api/v1/messages/{id}/edit", post(edit::edit).layer(DefaultBodyLimit::max(message_bytes_max)))
        .route("/api/v1/messages/{id}/resend", post(resend))
        .route("/api/v1/messages/{id}/dismiss", post(dismiss))
        .route("/api/v1/destinations/{interface}/{name}/pause", post(destination::pause))
        .route("/api/v1/destinations/{interface}/{name}/resume", post(destination::resume))
        .route("/api/v1/destinations/{interface}/{name}/lanes/skip", post(destination::skip))
        .route("/api/v1/destinations/{interface}/{name}/lanes/retry", post(destination::retry))
        .route("/api/v1/destinations/{interface}/{name}/actions", get(destination::list_actions))
        .route("/api/v1/destinations/{interface}/{name}/state", get(destination::list_state))
        .route("/api/v1/destinations/{interface}/{name}/state/value", get(destination::get_state))
        .route("/api/v1/destinations/{interface}/{name}/state/remove", post(destination::remove_state))
        .route("/api/v1/retention", get(retention::list))
        .route("/api/v1/retention/{interface}/confirm", post(retention::confirm))
        .route("/api/v1/drain", post(drain).delete(cancel_drain))
        .route("/api/v1/backup", post(backup))
        .fallback(async || {
            ApiError::new(StatusCode::NOT_FOUND, code::NO_ROUTE, "there is nothing at this path")
        })
        .method_not_allowed_fallback(async || {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                code::METHOD_NOT_ALLOWED,
                "this path does not take that method",
            )
        })
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(axum::middleware::from_fn_with_state(with, guard))
        .with_state(api)
}

async fn health(State(api): State<Api>) -> Response {
    let health = api.control.health().await;
    let status = match health.state {
        views::EngineState::Running | views::EngineState::Standby => StatusCode::OK,
        views::EngineState::Starting | views::EngineState::Stopping => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(health)).into_response()
}

async fn show_metrics(State(api): State<Api>) -> Result<Response, ApiError> {
    let status = api.control.status().await?;
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((content_type, metrics::render(&status)).into_response())
}

async fn status(State(api): State<Api>) -> Answer<views::Status> {
    Ok(Json(api.control.status().await?))
}

async fn list_refusals(State(api): State<Api>) -> Answer<Vec<views::Refused>> {
    Ok(Json(api.control.list_refusals().await?))
}

async fn list_messages(
    State(api): State<Api>,
    list: Result<Query<params::ListMessages>, QueryRejection>,
) -> Answer<views::MessagePage> {
    let Query(list) = list.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    check_list(&list)?;
    Ok(Json(api.control.list_messages(list).await?))
}

fn check_list(list: &params::ListMessages) -> Result<(), ApiError> {
    if !(1..=params::ListMessages::LIMIT_MAX).contains(&list.limit) {
        let text =
            format!("`limit` is {}, it goes from 1 to {}", list.limit, params::ListMessages::LIMIT_MAX);
        return Err(ApiError::invalid(text));
    }
    if list.destination.is_some() && list.interface.is_none() {
        return Err(ApiError::invalid("`destination` needs `interface`: names are unique within one"));
    }
    if list.attribute.as_ref().is_some_and(|attribute| !attribute.contains('=')) {
        return Err(ApiError::invalid("`attribute` is `NAME=VALUE`"));
    }
    let texts = [&list.key, &list.attribute, &list.text];
    let is_long = |text: &String| text.len() > params::ListMessages::TEXT_BYTES_MAX;
    if texts.into_iter().flatten().any(is_long) {
        return Err(ApiError::invalid("what is searched for is too long"));
    }
    Ok(())
}

async fn get_message(
    State(api): State<Api>,
    id: Result<Path<MessageId>, PathRejection>,
) -> Answer<views::MessageDetail> {
    let id = message_id(id)?;
    let message = api.control.get_message(id).await?;
    message.map(Json).ok_or_else(|| ApiError::no_message(id))
}

async fn get_body(
    State(api): State<Api>,
    id: Result<Path<MessageId>, PathRejection>,
) -> Result<Response, ApiError> {
    let id = message_id(id)?;
    let permit = permit(&api)?;
    let bytes = api.control.get_body(id).await?.ok_or_else(|| ApiError::no_message(id))?;
    Ok(raw(bytes, permit))
}

async fn get_output(
    State(api): State<Api>,
    path: Result<Path<(MessageId, String)>, PathRejection>,
) -> Result<Response, ApiError> {
    let Path((id, destination)) = path.map_err(|_| ApiError::invalid("a message's id is a number"))?;
    let permit = permit(&api)?;
    Ok(raw(api.control.get_output(id, &destination).await?, permit))
}

/// Bodies may be large: only so many are on their way at once.
fn permit(api: &Api) -> Result<OwnedSemaphorePermit, ApiError> {
    api.bodies.clone().try_acquire_owned().map_err(|_| {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            code::BUSY,
            "other message bodies are on their way; ask again",
        )
    })
}

fn raw(bytes: Bytes, permit: OwnedSemaphorePermit) -> Response {
    let head = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, bytes.len().to_string()),
    ];
    // The permit goes with the body and ends with it.
    let body = Full::new(bytes).map_frame(move |frame| {
        let _held = &permit;
        frame
    });
    (head, Body::new(body)).into_response()
}

async fn resend(
    State(api): State<Api>,
    id: Result<Path<MessageId>, PathRejection>,
    act: Result<Json<params::Act>, JsonRejection>,
) -> Answer<views::ActionDone> {
    let action = action(ActionKind::Resend, message_id(id)?, act)?;
    Ok(Json(api.control.act(action).await?))
}

async fn dismiss(
    State(api): State<Api>,
    id: Result<Path<MessageId>, PathRejection>,
    act: Result<Json<params::Act>, JsonRejection>,
) -> Answer<views::ActionDone> {
    let action = action(ActionKind::Dismiss, message_id(id)?, act)?;
    if action.reason.is_empty() {
        return Err(ApiError::invalid("a dismissal needs a `reason`"));
    }
    Ok(Json(api.control.act(action).await?))
}

async fn drain(
    State(api): State<Api>,
    drain: Result<Json<params::Drain>, JsonRejection>,
) -> Answer<views::Draining> {
    let Json(drain) = drain.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    check_words("", &drain.author)?;
    let order = DrainOrder::Begin { author: author(drain.author), stop: drain.stop };
    api.control.drain(order).await?;
    Ok(Json(views::Draining { draining: true }))
}

async fn cancel_drain(State(api): State<Api>) -> Answer<views::Draining> {
    api.control.drain(DrainOrder::Cancel).await?;
    Ok(Json(views::Draining { draining: false }))
}

async fn backup(
    State(api): State<Api>,
    backup: Result<Json<params::Backup>, JsonRejection>,
) -> Answer<views::Backup> {
    let Json(backup) = backup.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    let target = FilePath::new(&backup.file);
    if !target.is_absolute() {
        return Err(ApiError::invalid("`file` is not an absolute path"));
    }
    Ok(Json(api.control.backup(target).await?))
}

fn message_id(id: Result<Path<MessageId>, PathRejection>) -> Result<MessageId, ApiError> {
    id.map(|Path(id)| id).map_err(|_| ApiError::invalid("a message's id is a number"))
}

fn action(
    kind: ActionKind,
    message: MessageId,
    act: Result<Json<params::Act>, JsonRejection>,
) -> Result<Action, ApiError> {
    let Json(act) = act.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    check_words(&act.reason, &act.author)?;
    let author = author(act.author);
    Ok(Action { message, destination: act.destination, kind, author, reason: act.reason })
}

/// What goes into the record has its limits.
fn check_words(reason: &str, author: &str) -> Result<(), ApiError> {
    if reason.len() <= params::REASON_BYTES_MAX && author.len() <= params::AUTHOR_BYTES_MAX {
        return Ok(());
    }
    let (reason_max, author_max) = (params::REASON_BYTES_MAX, params::AUTHOR_BYTES_MAX);
    Err(ApiError::invalid(format!("`reason` has at most {reason_max} bytes, `author` {author_max}")))
}

/// Without a body nothing is said.
fn word(body: &[u8]) -> Result<params::Word, ApiError> {
    let word: Option<params::Word> = match body {
        [] => None,
        given => serde_json::from_slice(given).map_err(|error| ApiError::invalid(error.to_string()))?,
    };
    Ok(word.unwrap_or_default())
}

fn author(given: String) -> String {
    if given.is_empty() { "operator".to_owned() } else { given }
}
