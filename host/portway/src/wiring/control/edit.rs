//! A corrected copy of a message: stored as a message of its own.

use portway_admin::{ControlError, ControlErrorKind, Edit, views};
use portway_engine::Fate;
use portway_engine::ports::Clock;
use portway_model::{Draft, Key, code};

use super::{EngineControl, failed, no_message, unavailable};
use crate::wiring::clock::SystemClock;

impl EngineControl {
    /// It has the key and the attributes of the original, and no dedupe key: it repeats nothing.
    pub(super) async fn store_edit(&self, edit: Edit) -> Result<views::Edited, ControlError> {
        let Edit { message, body, destinations, author, reason } = edit;
        let view = self.store.get_message(message).await.map_err(unavailable)?;
        let view = view.ok_or_else(|| no_message(message))?;
        let interface = self.names.interface_name(view.interface);
        self.interface_id(&interface)?;
        let named = |name: &String| self.destination_id(&interface, name);
        let destinations = destinations.map(|names| names.iter().map(named).collect()).transpose()?;
        let draft = Draft {
            body,
            key: view.key.as_deref().and_then(Key::new),
            dedupe: None,
            occurred_at: view.occurred_at,
            attributes: view.attributes,
            doubt: None,
        };
        let edit = portway_engine::Edit { of: message, destinations, author, reason };
        let now = SystemClock::new().now();
        match self.engine.edit(view.interface, now, draft, edit).await {
            Fate::Stored { id, .. } => Ok(views::Edited { message: id, of: message }),
            Fate::NotStored { code, text, .. } => {
                Err(ControlError::new(ControlErrorKind::Unavailable, code, text))
            }
            Fate::Kept => Err(failed(code::ENGINE, "the engine answered a cursor".into())),
            // It has no dedupe key.
            Fate::Duplicate { of, .. } => {
                let text = format!("it repeats message {of}");
                Err(ControlError::new(ControlErrorKind::Conflict, code::NOT_DONE, text))
            }
        }
    }
}
