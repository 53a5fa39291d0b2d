//! From a project's settings to the parts of an engine: plugins loaded, destinations and
//! sources opened, settings translated.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use portway_admin::views;
use portway_config::{
    DestinationSettings, Durability, InterfaceSettings, LimitSettings, PluginUse, Project, Role,
};
use portway_engine::settings as engine;
use portway_model::{DestinationId, GroupId, InterfaceId, code};
use portway_runtime::{LoadError, OpeningError, Plugin, PluginKind, Runtime};
use portway_store::{Registered, Store};

use super::catalog::{FindError, PluginCatalog};
use super::deliver::{Destination, Target};
use super::names::Names;
use super::observer::{Observers, PluginObserver};
use super::openings::{self, Owner};
use super::secret_ledger::SecretLedger;
use super::state_store;
use super::traces::Traces;

/// Why a project's plugins cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Opening(#[from] OpeningError),
    #[error(
        "destination `{destination}` of interface `{interface}` has neither a sender nor a route that exists"
    )]
    NoTarget { interface: String, destination: String },
}

impl AssembleError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            AssembleError::Find(error) => error.code(),
            AssembleError::Load(error) => error.code(),
            AssembleError::Opening(error) => error.code(),
            AssembleError::NoTarget { .. } => code::NO_TARGET,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            AssembleError::Find(error) => error.hint(),
            AssembleError::Load(error) => Some(error.hint()),
            AssembleError::Opening(_) | AssembleError::NoTarget { .. } => None,
        }
    }

    /// The catalog says the same when it checks a project.
    pub fn is_found_by_the_catalog(&self) -> bool {
        matches!(self, AssembleError::Find(_))
    }
}

/// The plugins of a project, each loaded once.
pub struct Plugins<'a> {
    runtime: &'a Runtime,
    catalog: &'a PluginCatalog,
    loaded: BTreeMap<(Role, String), Plugin>,
    /// Of every plugin that was opened.
    observers: Observers,
    /// Where uses of secrets are written down; none: nothing is delivered.
    ledger: Option<Arc<SecretLedger>>,
    /// Whether what sources cost is measured.
    pub times_sources: bool,
}

impl<'a> Plugins<'a> {
    pub fn new(runtime: &'a Runtime, catalog: &'a PluginCatalog) -> Self {
        let observers = Observers::new();
        Plugins { runtime, catalog, loaded: BTreeMap::new(), observers, ledger: None, times_sources: false }
    }

    /// The same, where uses of secrets are written down.
    pub fn recording(self, ledger: Arc<SecretLedger>) -> Self {
        Plugins { ledger: Some(ledger), ..self }
    }

    /// The same, where what sources cost is measured if anybody wants to know.
    pub fn timing(self, traces: Option<&Arc<Traces>>) -> Self {
        Plugins { times_sources: traces.is_some(), ..self }
    }

    pub fn catalog(&self) -> &'a PluginCatalog {
        self.catalog
    }

    pub async fn load(&mut self, role: Role, name: &str) -> Result<Plugin, AssembleError> {
        let key = (role, name.to_owned());
        if let Some(plugin) = self.loaded.get(&key) {
            return Ok(plugin.clone());
        }
        let component = self.catalog.find(role, name)?;
        let plugin = self.runtime.load(name, &component.bytes).await?;
        self.loaded.insert(key, plugin.clone());
        Ok(plugin)
    }

    /// One who listens to a plugin of an interface; `destination` is empty for a source.
    pub fn observer(&mut self, interface: &str, destination: &str, plugin: &str) -> Arc<PluginObserver> {
        let ledger = self.ledger.clone();
        let observer = PluginObserver::recording(interface, destination, plugin, ledger);
        self.observers.entry(interface.to_owned()).or_default().push(observer.clone());
        observer
    }

    /// Everyone who listens to a plugin.
    pub fn observers(&self) -> Observers {
        self.observers.clone()
    }

    /// What was loaded, for people.
    pub fn views(&self, project: &Project) -> Vec<views::Plugin> {
        let view = |((_, name), plugin): (&(Role, String), &Plugin)| {
            let by_path = project.plugins.iter().find(|(own, _)| own.as_str() == name);
            views::Plugin {
                name: name.clone(),
                version: plugin.version().to_owned(),
                kind: plugin.kind().as_str().to_owned(),
                digest: plugin.digest().to_owned(),
                path: by_path.map(|(_, own)| own.path.value.as_path().display().to_string()),
                replaces: by_path.is_some_and(|(_, own)| own.replaces),
            }
        };
        self.loaded.iter().map(view).collect()
    }
}

/// The destinations of a project that are wanted, opened; nothing of a plugin has run yet.
pub async fn destinations(
    project: &Project,
    is_wanted: impl Fn(&str, &str) -> bool,
    plugins: &mut Plugins<'_>,
    names: &Names,
    kept: &Arc<dyn Store>,
) -> Result<HashMap<DestinationId, Destination>, AssembleError> {
    let mut destinations = HashMap::new();
    for interface in &project.interfaces {
        for settings in &interface.destinations {
            let (of, name) = (interface.name.as_str(), settings.name.value.as_str());
            if let Some(id) = names.destination(of, name).filter(|_| is_wanted(of, name)) {
                let home = Home { names, limits: &project.limits, store: kept, id };
                let opened = destination(of, settings, &home, plugins).await?;
                destinations.insert(id, opened);
            }
        }
    }
    Ok(destinations)
}

/// What a destination's plugins are opened with, beside their own settings.
struct Home<'a> {
    names: &'a Names,
    limits: &'a LimitSettings,
    /// Where they keep their state.
    store: &'a Arc<dyn Store>,
    id: DestinationId,
}

async fn destination(
    interface: &str,
    settings: &DestinationSettings,
    home: &Home<'_>,
    plugins: &mut Plugins<'_>,
) -> Result<Destination, AssembleError> {
    let owner = Owner { interface, destination: settings.name.value.as_str() };
    let mut transforms = Vec::with_capacity(settings.transform.len());
    for transform in &settings.transform {
        let plugin = plugins.load(Role::Transform, transform.plugin.value.as_str()).await?;
        let opening = opening(&owner, transform, &plugin, home, plugins);
        transforms.push(plugin.transformer(opening)?);
    }
    let route = settings.route.as_ref().and_then(|route| home.names.interface(route.value.as_str()));
    let target = match (&settings.sender, route) {
        (Some(sender), _) => {
            let plugin = plugins.load(Role::Sender, sender.plugin.value.as_str()).await?;
            let opening = opening(&owner, sender, &plugin, home, plugins);
            match plugin.kind() {
                PluginKind::HttpSender => Target::HttpSender(plugin.http_sender(opening)?),
                PluginKind::Sender
                | PluginKind::Transform
                | PluginKind::StreamSource
                | PluginKind::PollSource
                | PluginKind::HttpSource
                | PluginKind::Respond => Target::Sender(plugin.sender(opening)?),
            }
        }
        (None, Some(target)) => Target::Route(target),
        (None, None) => {
            let (interface, destination) = (interface.to_owned(), owner.destination.to_owned());
            return Err(AssembleError::NoTarget { interface, destination });
        }
    };
    Ok(Destination {
        interface: interface.to_owned(),
        name: owner.destination.to_owned(),
        transforms,
        target,
        timeout: settings.timeout,
        save_output: settings.save_output,
        latency: Arc::default(),
    })
}

fn opening(
    owner: &Owner<'_>,
    plugin_use: &PluginUse,
    plugin: &Plugin,
    home: &Home<'_>,
    plugins: &mut Plugins<'_>,
) -> portway_runtime::Opening {
    let observer = plugins.observer(owner.interface, owner.destination, plugin.name());
    let mut opening = openings::of_use(owner, plugin_use, plugin.manifest(), home.limits, observer);
    state_store::bind(&mut opening, home.store, home.id);
    opening
}

/// What the engine is told of the project.
pub fn engine_settings(project: &Project, registered: &Registered) -> engine::EngineSettings {
    let pairs = project.interfaces.iter().zip(&registered.interfaces);
    let interfaces =
        pairs.map(|(interface, (id, destinations))| interface_settings(interface, *id, destinations));
    engine::EngineSettings {
        interfaces: interfaces.collect(),
        limits: limits(&project.limits),
        pauses: registered.pauses.clone(),
        retentions: registered.retentions.clone(),
        aged_to: registered.aged_to,
    }
}

/// How long a run may take: each transform and the sender have their time.
fn send_max(settings: &DestinationSettings) -> Duration {
    let calls = u32::try_from(settings.transform.len()).unwrap_or(u32::MAX).saturating_add(1);
    settings.timeout.saturating_mul(calls)
}

fn interface_settings(
    interface: &InterfaceSettings,
    id: InterfaceId,
    numbers: &[DestinationId],
) -> engine::InterfaceSettings {
    let destinations =
        interface.destinations.iter().zip(numbers).map(|(settings, id)| engine::DestinationSettings {
            id: *id,
            name: settings.name.value.as_str().to_owned(),
            order: settings.order,
            concurrency: settings.concurrency,
            retry: settings.retry.policy(),
            on_quarantine: settings.on_quarantine,
            run_max: settings.run_max,
            guarantee: settings.guarantee,
            send_max: send_max(settings),
            rate: settings.rate.as_ref().map(portway_config::RateSettings::limit),
        });
    engine::InterfaceSettings {
        id,
        group: GroupId(id.0),
        name: interface.name.as_str().to_owned(),
        durability: match interface.durability {
            Durability::Strict => portway_store::Durability::Strict,
            Durability::Relaxed => portway_store::Durability::Relaxed,
        },
        dedupe_window: interface.dedupe_window,
        search: interface.search.clone(),
        destinations: destinations.collect(),
    }
}

fn limits(settings: &LimitSettings) -> engine::Limits {
    engine::Limits {
        batch_messages_max: settings.batch_messages_max as usize,
        batch_bytes_max: settings.batch_bytes_max.as_usize(),
        intake_bytes_max: settings.intake_bytes_max.as_usize(),
        waiting_bytes_max: settings.waiting_bytes_max.as_usize(),
        waiting_max: settings.waiting_max as usize,
        runs_max: settings.runs_max as usize,
        unflushed_max: settings.unflushed_max as usize,
        prune_every: settings.prune_every,
    }
}
