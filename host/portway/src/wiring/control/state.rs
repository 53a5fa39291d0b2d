//! What plugins keep for destinations, shown and removed.
//!
//! Which uses of a plugin keep something is known from the project; one that left it can still be
//! named, so that nothing stays behind that nobody can see.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portway_admin::{ControlError, ControlErrorKind, RemoveState, params, views};
use portway_config::{DestinationSettings, GrantSettings};
use portway_model::{DestinationId, StateWrite, code};
use portway_store::{DestinationAction, DestinationActionKind, ListStateKeys, StateKey};

use super::{EngineControl, chain, failed, not_found, unavailable};

impl EngineControl {
    pub(super) async fn list_plugin_state(
        &self,
        interface: &str,
        destination: &str,
        list: params::ListState,
    ) -> Result<views::StatePage, ControlError> {
        let id = self.destination_id(interface, destination)?;
        let spaces = match list.space {
            Some(space) => vec![space],
            None => self.spaces(interface, destination),
        };
        let mut page = views::StatePage { keys: Vec::new(), next: None };
        for space in spaces {
            let left = (list.limit as usize).saturating_sub(page.keys.len());
            let query = ListStateKeys {
                destination: id,
                space: space.clone(),
                prefix: list.prefix.clone(),
                after: list.after.clone(),
                // One more tells whether that was all.
                limit: u32::try_from(left).unwrap_or(u32::MAX).saturating_add(1),
            };
            let mut keys = self.store.list_state_keys(&query).await.map_err(unavailable)?;
            let is_more = keys.len() > left;
            keys.truncate(left);
            page.keys.extend(keys.into_iter().map(|key| views::StateKey { space: space.clone(), key }));
            if is_more {
                page.next = page.keys.last().cloned();
                break;
            }
        }
        Ok(page)
    }

    pub(super) async fn get_plugin_state(
        &self,
        interface: &str,
        destination: &str,
        state: params::GetState,
    ) -> Result<views::StateValue, ControlError> {
        let (id, at) = self.state_key(interface, destination, state.space, state.key)?;
        let value = self.store.get_state(id, &at.space, &at.key).await.map_err(unavailable)?;
        let value = value.ok_or_else(|| no_value(&at))?;
        let bytes = value.len() as u64;
        let (value, encoding) = match std::str::from_utf8(&value) {
            Ok(text) => (text.to_owned(), "text"),
            Err(_) => (STANDARD.encode(&value), "base64"),
        };
        let StateKey { space, key } = at;
        Ok(views::StateValue { space, key, bytes, value, encoding: encoding.to_owned() })
    }

    pub(super) async fn remove_plugin_state(
        &self,
        remove: RemoveState,
    ) -> Result<views::StateRemoved, ControlError> {
        let RemoveState { interface, destination, space, key, author, reason } = remove;
        let (id, at) = self.state_key(&interface, &destination, space, key)?;
        if self.store.get_state(id, &at.space, &at.key).await.map_err(unavailable)?.is_none() {
            return Err(no_value(&at));
        }
        // The record of actions has no columns of its own for which value it was.
        let reason = format!("`{}` of {}: {reason}", at.key, at.space);
        let kind = DestinationActionKind::RemoveState(at.clone());
        let action = DestinationAction { destination: id, kind, author, reason };
        let done = self.engine.act_on_destination(action).await;
        done.map_err(|error| failed(code::NOT_DONE, chain(&error)))?;
        Ok(views::StateRemoved { interface, destination, space: at.space, key: at.key })
    }

    fn state_key(
        &self,
        interface: &str,
        destination: &str,
        space: Option<String>,
        key: String,
    ) -> Result<(DestinationId, StateKey), ControlError> {
        let id = self.destination_id(interface, destination)?;
        if !StateWrite::is_key(&key) {
            let text = format!("a key has 1 to {} bytes, none of them 0", StateWrite::KEY_BYTES_MAX);
            return Err(ControlError::new(ControlErrorKind::Invalid, code::INVALID, text));
        }
        let space = match space {
            Some(space) => space,
            None => only(self.spaces(interface, destination), destination)?,
        };
        Ok((id, StateKey { space, key }))
    }

    /// The uses of plugins that are granted a state at a destination.
    fn spaces(&self, interface: &str, destination: &str) -> Vec<String> {
        let found = self.project.interfaces.iter().find(|one| one.name.as_str() == interface);
        let settings = found.and_then(|one| {
            one.destinations.iter().find(|settings| settings.name.value.as_str() == destination)
        });
        settings.map(spaces_of).unwrap_or_default()
    }
}

fn spaces_of(destination: &DestinationSettings) -> Vec<String> {
    let mut spaces = Vec::new();
    for plugin_use in destination.transform.iter().chain(&destination.sender) {
        for grant in plugin_use.grants.values() {
            if let GrantSettings::State(state) = &grant.value {
                spaces.push(state.space(plugin_use).to_string());
            }
        }
    }
    spaces
}

fn only(spaces: Vec<String>, destination: &str) -> Result<String, ControlError> {
    let text = match spaces.as_slice() {
        [space] => return Ok(space.clone()),
        [] => format!("no plugin of `{destination}` is granted a state"),
        several => format!("several plugins of `{destination}` keep a state: {}", several.join(", ")),
    };
    Err(not_found(code::NO_STATE, text))
}

fn no_value(at: &StateKey) -> ControlError {
    not_found(code::NO_STATE, format!("`{}` keeps nothing under `{}`", at.space, at.key))
}
