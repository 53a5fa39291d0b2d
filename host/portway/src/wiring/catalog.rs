//! The plugins a project can use: those inside the binary and those it names by path.
//!
//! Answers what only manifests can tell: which names there are, whether the grants of a use fit
//! its slots, and its settings the schema. What settings mean is judged by the plugin itself when
//! it is opened.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use portway_config::{
    At, Catalog, GrantSettings, Name, Place, PluginUse, Problem, Project, Role, SourceSettings,
};
use portway_model::code;
use portway_runtime::{Manifest, PluginKind, SlotKind};

use super::embedded::{self, FirstParty};
use super::openings;
use super::plugin_schema::SettingsSchemas;

/// Bytes of a component file that are read at most; the runtime's own limit is lower.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// Every plugin of a project that can be found, with its manifest. By default those that come
/// with Portway.
#[derive(Default)]
pub struct PluginCatalog {
    by_path: BTreeMap<String, Result<Component, BadComponent>>,
    schemas: SettingsSchemas,
}

/// A component that was looked at, but not compiled.
#[derive(Clone)]
pub struct Component {
    pub bytes: Arc<[u8]>,
    pub manifest: Manifest,
}

/// A file that was found and cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct BadComponent {
    code: &'static str,
    text: String,
    hint: Option<String>,
}

/// Why a name gives no component.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no {role} `{name}`", role = role.as_str())]
    Unknown { role: Role, name: String },
    #[error("this binary was built without its plugins, `{name}` among them")]
    NotBuilt { name: String },
    #[error(transparent)]
    Bad(#[from] BadComponent),
    #[error("plugin `{name}` is a {kind}, which cannot stand as a {role}", role = role.as_str())]
    Kind { name: String, kind: PluginKind, role: Role },
}

impl FindError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            FindError::Unknown { .. } => code::PLUGIN_UNKNOWN,
            FindError::NotBuilt { .. } => code::PLUGINS_NOT_BUILT,
            FindError::Bad(bad) => bad.code,
            FindError::Kind { .. } => code::PLUGIN_WRONG_KIND,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            FindError::NotBuilt { .. } => Some("run `cargo xtask plugins` and build again".to_owned()),
            FindError::Bad(bad) => bad.hint.clone(),
            FindError::Unknown { .. } | FindError::Kind { .. } => None,
        }
    }

    fn to_problem(&self, place: &Place) -> Problem {
        let problem = Problem::new(place.clone(), self.code(), self.to_string());
        match self.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl PluginCatalog {
    /// Looks at every component the project names by path.
    pub fn of(project: &Project) -> Self {
        let look = |(name, plugin): (&Name, &portway_config::PluginByPath)| {
            let component = read_component(name.as_str(), plugin.path.value.as_path());
            (name.as_str().to_owned(), component)
        };
        PluginCatalog {
            by_path: project.plugins.iter().map(look).collect(),
            schemas: SettingsSchemas::default(),
        }
    }

    /// What the schema of a plugin says of the settings of its use.
    pub fn check_settings(&self, role: Role, manifest: &Manifest, plugin_use: &PluginUse) -> Vec<Problem> {
        self.schemas.check(role, manifest, plugin_use)
    }

    /// The component behind a name in a role. One by path comes first where it can stand in the
    /// role; a `mllp` sender by path leaves the `mllp` source that comes with Portway alone.
    pub fn find(&self, role: Role, name: &str) -> Result<Component, FindError> {
        let by_path = self.by_path.get(name).cloned().transpose()?;
        let kind = match by_path {
            Some(component) if fits(component.manifest.kind, role) => return Ok(component),
            other => other.map(|component| component.manifest.kind),
        };
        match (embedded::find(role, name), kind) {
            (FirstParty::Found(bytes), _) => Ok(look_at(name, bytes.into())?),
            (FirstParty::NotBuilt, None) => Err(FindError::NotBuilt { name: name.into() }),
            (_, Some(kind)) => Err(FindError::Kind { name: name.into(), kind, role }),
            (FirstParty::Unknown, None) => Err(FindError::Unknown { role, name: name.into() }),
        }
    }
}

fn fits(kind: PluginKind, role: Role) -> bool {
    match role {
        Role::Source => {
            matches!(
                kind,
                PluginKind::StreamSource
                    | PluginKind::PollSource
                    | PluginKind::HttpSource
                    | PluginKind::Respond
            )
        }
        Role::Transform => kind == PluginKind::Transform,
        Role::Sender => matches!(kind, PluginKind::Sender | PluginKind::HttpSender),
    }
}

fn read_component(name: &str, path: &std::path::Path) -> Result<Component, BadComponent> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        let text = format!("cannot read plugin file `{shown}`: {error}");
        BadComponent { code: code::FILE_UNREADABLE, text, hint: None }
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        let text = format!("plugin file `{shown}` is no file of at most {FILE_BYTES_MAX} bytes");
        return Err(BadComponent { code: code::FILE_UNREADABLE, text, hint: None });
    }
    look_at(name, fs::read(path).map_err(unreadable)?.into())
}

fn look_at(name: &str, bytes: Arc<[u8]>) -> Result<Component, BadComponent> {
    let manifest = portway_runtime::read_manifest(name, &bytes).map_err(|error| BadComponent {
        code: error.code(),
        text: error.to_string(),
        hint: Some(error.hint()),
    })?;
    Ok(Component { bytes, manifest })
}

impl Catalog for PluginCatalog {
    fn names(&self, role: Role) -> Vec<String> {
        // One that cannot be read or stands in the wrong role is named all the same: what is
        // wrong with it is said below.
        let mut names: Vec<String> = self.by_path.keys().cloned().collect();
        names.extend(embedded::names(role).into_iter().map(str::to_owned));
        names.sort();
        names.dedup();
        names
    }

    fn is_first_party(&self, name: &str) -> bool {
        [Role::Source, Role::Transform, Role::Sender]
            .iter()
            .any(|role| embedded::names(*role).contains(&name))
    }

    fn check_source(&self, source: &SourceSettings) -> Vec<Problem> {
        let plugin = &source.plugin;
        match self.find(Role::Source, plugin.value.as_str()) {
            Ok(component) => {
                let mut problems = check_grants(&component.manifest, &source.plugin_use());
                problems.extend(check_listener(component.manifest.kind, source));
                problems.extend(self.check_settings(Role::Source, &component.manifest, &source.plugin_use()));
                problems
            }
            Err(error) => vec![error.to_problem(&plugin.place)],
        }
    }

    fn responds(&self, source: &SourceSettings) -> bool {
        let found = self.find(Role::Source, source.plugin.value.as_str());
        found.is_ok_and(|component| component.manifest.kind == PluginKind::Respond)
    }

    fn check_use(&self, role: Role, plugin_use: &PluginUse) -> Vec<Problem> {
        match self.find(role, plugin_use.plugin.value.as_str()) {
            Ok(component) => {
                let mut problems = check_grants(&component.manifest, plugin_use);
                problems.extend(self.check_settings(role, &component.manifest, plugin_use));
                problems
            }
            Err(error) => vec![error.to_problem(&plugin_use.plugin.place)],
        }
    }
}

/// A listener where there must be one, and nothing that has no effect.
fn check_listener(kind: PluginKind, source: &SourceSettings) -> Vec<Problem> {
    let place = &source.plugin.place;
    let is_http = matches!(kind, PluginKind::HttpSource | PluginKind::Respond);
    let listens = is_http || kind == PluginKind::StreamSource;
    let mut problems = Vec::new();
    if listens && source.listen.is_none() {
        let text = format!("source `{}` has no address to listen on", source.plugin.value);
        let hint = "add such as `listen = \"127.0.0.1:2575\"`";
        problems.push(Problem::new(place.clone(), code::NO_LISTENER, text).hint(hint));
    }
    let unused = [
        ("listen", !listens && source.listen.is_some()),
        ("tls", !listens && source.tls.is_some()),
        ("allow", !listens && !source.allow.is_empty()),
        ("path", !is_http && source.path.is_some()),
        ("methods", !is_http && source.methods.is_some()),
        ("auth", !is_http && source.auth.is_some()),
    ];
    for (option, _) in unused.into_iter().filter(|(_, is_unused)| *is_unused) {
        let text = format!("`{option}` has no effect on a {kind} such as `{}`", source.plugin.value);
        problems.push(Problem::new(place.clone(), code::OPTION_UNUSED, text).hint("remove it"));
    }
    problems
}

/// Slots without a grant, grants without a slot, grants of another type.
fn check_grants(manifest: &Manifest, plugin_use: &PluginUse) -> Vec<Problem> {
    let plugin = &plugin_use.plugin;
    let mut problems = Vec::new();
    for slot in &manifest.slots {
        let is_granted = plugin_use.grants.keys().any(|name| name.as_str() == slot.name);
        if slot.required && !is_granted {
            let text = format!(
                "plugin `{}` needs a grant for its slot `{}`: {}",
                plugin.value, slot.name, slot.description
            );
            let hint = format!("add `grants.{} = {{ type = \"{}\", … }}`", slot.name, slot.kind);
            problems.push(Problem::new(plugin.place.clone(), code::GRANT_MISSING, text).hint(hint));
        }
    }
    for (name, grant) in &plugin_use.grants {
        let place: &Place = &grant.place;
        match manifest.takes(name.as_str()) {
            None => {
                let known: Vec<_> = manifest.slots.iter().map(|slot| slot.name.as_str()).collect();
                let text = format!("plugin `{}` has no slot `{name}`", plugin.value);
                let hint = match known.as_slice() {
                    [] => "it needs no grants".to_owned(),
                    known => format!("its slots are {}", known.join(", ")),
                };
                problems.push(Problem::new(place.clone(), code::GRANT_WITHOUT_SLOT, text).hint(hint));
            }
            Some(kind) if kind != kind_of(&grant.value) => {
                let text =
                    format!("slot `{name}` of plugin `{}` takes a grant of type `{kind}`", plugin.value);
                problems.push(Problem::new(place.clone(), code::GRANT_WRONG_TYPE, text));
            }
            Some(_) => problems.extend(check_secret(name, grant)),
        }
    }
    problems
}

/// A granted secret is written in the form that the grant says.
fn check_secret(name: &Name, grant: &At<GrantSettings>) -> Option<Problem> {
    let (secret, form) = match &grant.value {
        GrantSettings::Reveal(reveal) => (&reveal.secret, reveal.form),
        GrantSettings::Sign(sign) => (&sign.secret, sign.form),
        _ => return None,
    };
    if openings::secret_bytes(secret, form).is_some() {
        return None;
    }
    let text = format!("the secret `{}` of grant `{name}` is not written in its `form`", secret.name);
    let hint = "correct `form`, or the secret";
    Some(Problem::new(grant.place.clone(), code::BAD_SECRETS, text).hint(hint))
}

fn kind_of(grant: &GrantSettings) -> SlotKind {
    match grant {
        GrantSettings::Http(_) => SlotKind::Http,
        GrantSettings::Folder(_) => SlotKind::Folder,
        GrantSettings::Tcp(_) => SlotKind::Tcp,
        GrantSettings::Reveal(_) => SlotKind::Reveal,
        GrantSettings::Sign(_) => SlotKind::Sign,
        GrantSettings::State(_) => SlotKind::State,
    }
}
