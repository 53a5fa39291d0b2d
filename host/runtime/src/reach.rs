//! Grants made ready for use: folders, TCP pools, HTTP APIs, secrets, by slot.
//!
//! One set serves all instances of a pool, so that kept connections outlive a call.

use std::collections::HashMap;
use std::sync::Arc;

use portway_model::code;
use portway_net::folder::Folder;
use portway_net::http::{Connector, HttpError};
use portway_net::tcp::TcpPool;

use crate::manifest::{Manifest, SlotKind};
use crate::opening::{Grant, Grants};
use crate::outgoing::Api;
use crate::secret::SecretGrant;
use crate::state::Space;

/// What one set of grants reaches.
#[derive(Default)]
pub(crate) struct Reach {
    pub folders: HashMap<String, Folder>,
    pub tcp: HashMap<String, TcpPool>,
    pub http: HashMap<String, Api>,
    /// Through which all HTTP goes.
    pub connector: Connector,
    /// Variables, for a component that responds.
    pub environment: Vec<(String, String)>,
    pub secrets: HashMap<String, SecretGrant>,
    pub state: Option<Arc<Space>>,
}

/// Why grants do not fit a plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("grant `{slot}` is for no slot of the plugin; it has {slots}")]
    UnknownSlot { slot: String, slots: String },
    #[error("slot `{slot}` wants a grant of type `{wanted}`, it has one of type `{given}`")]
    WrongType { slot: String, wanted: SlotKind, given: SlotKind },
    #[error("slot `{slot}` needs a grant of type `{wanted}`")]
    Missing { slot: String, wanted: SlotKind },
    #[error("grant `{slot}` cannot be used: {reason}")]
    Unusable { slot: String, reason: String },
}

impl GrantError {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            GrantError::UnknownSlot { .. } => code::GRANT_WITHOUT_SLOT,
            GrantError::WrongType { .. } => code::GRANT_WRONG_TYPE,
            GrantError::Missing { .. } => code::GRANT_MISSING,
            GrantError::Unusable { .. } => code::GRANT_UNUSABLE,
        }
    }
}

impl Reach {
    /// Manifest and project decide together: a grant needs a slot, a required slot a grant.
    pub fn new(manifest: &Manifest, grants: &Grants, connector: Connector) -> Result<Reach, GrantError> {
        for slot in manifest.slots.iter().filter(|slot| slot.required) {
            if grants.get(&slot.name).is_none() {
                return Err(GrantError::Missing { slot: slot.name.clone(), wanted: slot.kind });
            }
        }
        let mut reach = Reach { connector, ..Reach::default() };
        for (name, grant) in &grants.0 {
            let Some(wanted) = manifest.takes(name) else {
                return Err(GrantError::UnknownSlot { slot: name.clone(), slots: list(manifest) });
            };
            if wanted != grant.kind() {
                let given = grant.kind();
                return Err(GrantError::WrongType { slot: name.clone(), wanted, given });
            }
            reach.add(name, grant)?;
        }
        Ok(reach)
    }

    /// Nothing is granted. Every part is named, so that a new one cannot be forgotten.
    pub fn is_empty(&self) -> bool {
        // An environment is no grant, and through the connector nothing is reached without one.
        let Reach { folders, tcp, http, connector: _, environment: _, secrets, state } = self;
        let no_peer = folders.is_empty() && tcp.is_empty() && http.is_empty();
        no_peer && secrets.is_empty() && state.is_none()
    }

    fn add_api(&mut self, name: &str, api: Api) -> Result<(), GrantError> {
        let unusable =
            |error: HttpError| GrantError::Unusable { slot: name.to_owned(), reason: error.to_string() };
        api.grant.check().map_err(unusable)?;
        self.http.insert(name.to_owned(), api);
        Ok(())
    }

    fn add(&mut self, name: &str, grant: &Grant) -> Result<(), GrantError> {
        let unusable = |reason: String| GrantError::Unusable { slot: name.to_owned(), reason };
        match grant {
            Grant::Http(grant) => self.add_api(name, Api { grant: grant.clone(), answers: None })?,
            Grant::Rehearsed(grant, answers) => {
                self.add_api(name, Api { grant: grant.clone(), answers: Some(answers.clone()) })?;
            }
            Grant::Folder(grant) => {
                self.folders.insert(name.to_owned(), Folder::new(grant.clone()));
            }
            Grant::State(grant) => self.state = Some(Arc::new(Space::new(grant.clone()))),
            Grant::Secret(grant) => {
                self.secrets.insert(name.to_owned(), grant.clone());
            }
            Grant::Tcp(grant) => {
                let pool = TcpPool::new(grant.clone()).map_err(|error| unusable(error.to_string()))?;
                self.tcp.insert(name.to_owned(), pool);
            }
        }
        Ok(())
    }
}

fn list(manifest: &Manifest) -> String {
    if manifest.slots.is_empty() {
        return "none".into();
    }
    manifest.slots.iter().map(|slot| format!("`{}`", slot.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use portway_net::folder::{Access, FolderGrant};
    use portway_net::http::HttpGrant;
    use zeroize::Zeroizing;

    use super::*;
    use crate::secret::{SecretAction, SecretValue};
    use crate::state::{NoState, StateGrant};

    #[test]
    fn whatever_is_granted_it_is_not_nothing() {
        let value = SecretValue::new(Zeroizing::new(b"x".to_vec()));
        let grants = [
            Grant::Http(HttpGrant::new("https://h/".parse().unwrap())),
            Grant::Folder(FolderGrant { path: "in".into(), access: Access::Read }),
            Grant::Secret(SecretGrant { name: "KEY".into(), value, action: SecretAction::Sign }),
            Grant::State(StateGrant { space: "s".into(), keys_max: 1, store: Arc::new(NoState) }),
        ];
        assert!(Reach::default().is_empty());
        for grant in grants {
            let mut reach = Reach::default();
            reach.add("slot", &grant).unwrap();
            assert!(!reach.is_empty(), "{grant:?}");
        }
    }
}
