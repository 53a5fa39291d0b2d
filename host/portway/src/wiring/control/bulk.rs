//! The same action on many messages, with an answer for each.

use portway_admin::{ActionKind, BulkAction, ControlError, views};
use portway_engine::ActError;
use portway_model::{MessageId, code};
use portway_store::ActionOutcome;

use super::{EngineControl, chain, no_message, past, unavailable};

impl EngineControl {
    pub(super) async fn act_on_many(&self, bulk: BulkAction) -> Result<Vec<views::BulkItem>, ControlError> {
        let mut actions = Vec::with_capacity(bulk.messages.len());
        let mut items: Vec<Option<views::BulkItem>> = Vec::with_capacity(bulk.messages.len());
        for message in &bulk.messages {
            match self.bulk_action(*message, &bulk).await {
                Ok(action) => {
                    actions.push(action);
                    items.push(None);
                }
                Err(error) => items.push(Some(failed_item(*message, error.code, error.text))),
            }
        }
        let mut outcomes = self.engine.act_all(actions).await.into_iter();
        let fill = |(message, item): (&MessageId, Option<views::BulkItem>)| match item {
            Some(item) => Some(item),
            None => Some(self.item(*message, bulk.kind, outcomes.next()?)),
        };
        Ok(bulk.messages.iter().zip(items).filter_map(fill).collect())
    }

    async fn bulk_action(
        &self,
        message: MessageId,
        bulk: &BulkAction,
    ) -> Result<portway_store::Action, ControlError> {
        let view = self.store.get_message(message).await.map_err(unavailable)?;
        let view = view.ok_or_else(|| no_message(message))?;
        let interface = self.names.interface_name(view.interface);
        let destination =
            bulk.destination.as_deref().map(|name| self.destination_id(&interface, name)).transpose()?;
        Ok(portway_store::Action {
            message,
            destination,
            kind: match bulk.kind {
                ActionKind::Resend => portway_store::ActionKind::Resend { keep_lane: false },
                ActionKind::Dismiss => portway_store::ActionKind::Dismiss,
                ActionKind::Retry => portway_store::ActionKind::Retry,
            },
            author: bulk.author.clone(),
            reason: bulk.reason.clone(),
            request: Some(bulk.request.clone()),
        })
    }

    fn item(
        &self,
        message: MessageId,
        kind: ActionKind,
        outcome: Result<ActionOutcome, ActError>,
    ) -> views::BulkItem {
        let done = |destinations, repeated| views::BulkItem { message, destinations, repeated, error: None };
        match outcome {
            Ok(ActionOutcome::Done(changed)) if changed.is_empty() => {
                let text = format!("message {message} has no delivery that can be {}", past(kind));
                failed_item(message, code::NOTHING_FITS, text)
            }
            Ok(ActionOutcome::Done(changed)) => {
                done(changed.iter().map(|(id, ..)| self.names.destination_name(*id)).collect(), false)
            }
            Ok(ActionOutcome::Repeated) => done(Vec::new(), true),
            Ok(ActionOutcome::NoMessage) => {
                failed_item(message, code::NO_MESSAGE, format!("there is no message {message}"))
            }
            Ok(ActionOutcome::NoBody) => {
                failed_item(message, code::NO_BODY, format!("message {message} has no body any more"))
            }
            Err(error) => failed_item(message, code::NOT_DONE, chain(&error)),
        }
    }
}

fn failed_item(message: MessageId, code: &str, text: String) -> views::BulkItem {
    let error = Some(views::Reason { code: code.to_owned(), text });
    views::BulkItem { message, destinations: Vec::new(), repeated: false, error }
}
