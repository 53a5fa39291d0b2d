//! The routes that do something to many messages.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use portway_model::MessageId;

use super::{Answer, Api, author, check_list, check_words};
use crate::error::ApiError;
use crate::{ActionKind, BulkAction, params, views};

type Asked = Result<Json<params::BulkAct>, JsonRejection>;

pub(super) async fn resend(State(api): State<Api>, asked: Asked) -> Answer<views::BulkDone> {
    act(&api, ActionKind::Resend, asked).await
}

pub(super) async fn dismiss(State(api): State<Api>, asked: Asked) -> Answer<views::BulkDone> {
    if asked.as_ref().is_ok_and(|Json(asked)| asked.reason.is_empty()) {
        return Err(ApiError::invalid("a dismissal needs a `reason`"));
    }
    act(&api, ActionKind::Dismiss, asked).await
}

async fn act(api: &Api, kind: ActionKind, asked: Asked) -> Answer<views::BulkDone> {
    let Json(asked) = asked.map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    check_words(&asked.reason, &asked.author)?;
    let is_named = (1..=params::BulkAct::REQUEST_BYTES_MAX).contains(&asked.request.len());
    if !is_named {
        let text = format!("`request` names it, in 1 to {} bytes", params::BulkAct::REQUEST_BYTES_MAX);
        return Err(ApiError::invalid(text));
    }
    let (messages, next) = match (asked.ids, asked.search) {
        (Some(ids), None) => (listed(ids)?, None),
        (None, Some(search)) => {
            check_list(&search)?;
            let page = api.control.list_messages(search).await?;
            (page.items.into_iter().map(|message| message.id).collect(), page.next)
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(ApiError::invalid("name the messages with `ids`, or find them with `search`"));
        }
    };
    let (request, reason) = (asked.request, asked.reason);
    let (author, destination) = (author(asked.author), asked.destination);
    let bulk = BulkAction { messages, destination, kind, author, reason, request: request.clone() };
    let items = api.control.act_all(bulk).await?;
    Ok(Json(views::BulkDone { request, action: kind.as_str().to_owned(), items, next }))
}

/// Each once, in their order.
fn listed(ids: Vec<MessageId>) -> Result<Vec<MessageId>, ApiError> {
    if !(1..=params::BulkAct::MESSAGES_MAX).contains(&ids.len()) {
        let text = format!("{} messages, it goes from 1 to {}", ids.len(), params::BulkAct::MESSAGES_MAX);
        return Err(ApiError::invalid(text));
    }
    let mut seen = std::collections::HashSet::new();
    Ok(ids.into_iter().filter(|id| seen.insert(*id)).collect())
}
