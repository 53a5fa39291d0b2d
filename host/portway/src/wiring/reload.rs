//! A running engine takes in a changed project: what is different is begun, changed or ended, and
//! nothing else is touched.
//!
//! Everything that can fail comes first. Then sources that go stop, the engine changes its layout
//! between two batches, and sources that come start. A destination that goes or begins anew
//! finishes what it has in hand with what it began with.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use portway_admin::views;
use portway_config::{InterfaceSettings, Problem, Project, Role};
use portway_engine::{ActError, Clock, LayoutChange};
use portway_model::DestinationId;
use portway_store::{Store, StoreError};

use super::assemble::{self, AssembleError, Plugins};
use super::catalog::PluginCatalog;
use super::difference::{Change, Difference, What};
use super::judge;
use super::leaving::Leaving;
use super::names::{self, Names};
use super::observer::Observers;
use super::running::{self, Digests, Running, StartError, open_sources};

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the engine does not take the change: {0}")]
    Act(#[from] ActError),
}

impl From<AssembleError> for ReloadError {
    fn from(error: AssembleError) -> Self {
        ReloadError::Start(error.into())
    }
}

/// A project that is about to be run, and what of it is different.
pub struct Reload {
    project: Project,
    /// Interfaces that go on as they are, whatever is known of their plugins now.
    kept: BTreeSet<String>,
    pub difference: Difference,
}

/// What was changed.
pub struct Reloaded {
    /// Sources that cannot listen after all: their interfaces go on without.
    pub failed: Vec<StartError>,
    /// Destinations that finish what they have in hand.
    pub leaving: Leaving,
}

impl Running {
    /// The project that runs.
    pub fn project(&self) -> &Project {
        &self.live.project
    }

    /// Where an interface listens; none: nowhere.
    pub fn listens_on(&self, interface: &str) -> Option<SocketAddr> {
        self.live.sources.parts(interface)?.handle.address()
    }

    /// What plugins say of the settings of some interfaces.
    pub async fn settings_problems(
        &self,
        project: &Project,
        catalog: &PluginCatalog,
        is_meant: impl Fn(&str) -> bool,
    ) -> Vec<Problem> {
        let mut plugins = Plugins::new(&self.live.runtime, catalog);
        judge::problems_of(project, is_meant, &mut plugins).await
    }

    /// Looks what is different of a project; nothing is changed yet. What is `kept` goes on as it
    /// is, whatever is known of its plugins now.
    pub async fn compare(&self, project: Project, kept: BTreeSet<String>, catalog: &PluginCatalog) -> Reload {
        let mut plugins = Plugins::new(&self.live.runtime, catalog);
        let mut digests = Digests::new();
        for interface in &project.interfaces {
            let of = digests.entry(interface.name.as_str().to_owned()).or_default();
            for (role, name) in interface.plugins() {
                // One that cannot be loaded is another one: what uses it is judged.
                if let Ok(plugin) = plugins.load(role, name).await {
                    of.insert((role, name.to_owned()), plugin.digest().to_owned());
                }
            }
        }
        let digest = |all: &Digests, interface: &str, role, name: &str| {
            all.get(interface).and_then(|of| of.get(&(role, name.to_owned())).cloned())
        };
        let is_other = |interface: &str, role: Role, name: &str| {
            let before = digest(&self.live.digests, interface, role, name);
            let is_other = before != digest(&digests, interface, role, name);
            is_other && !kept.contains(interface)
        };
        let mut difference = Difference::between(&self.live.project, &project, is_other);
        for (name, change) in &mut difference.0 {
            // A source that looks for messages by itself knows its destinations: it waits for them.
            let polls = self.live.sources.parts(name).is_some_and(|parts| parts.handle.poll().is_some());
            change.source |= polls && !(change.added.is_empty() && change.removed.is_empty());
        }
        Reload { project, kept, difference }
    }

    /// Deliveries that wait for a destination of the project that runs.
    pub async fn waiting(&self, interface: &str, destination: &str) -> Result<u64, StoreError> {
        let Some(id) = self.live.names.destination(interface, destination) else { return Ok(0) };
        let queues = self.store.list_queues().await?;
        Ok(queues.iter().filter(|queue| queue.destination == id).map(|queue| queue.waiting).sum())
    }

    /// Runs another project from now on. On an error everything is as before.
    pub async fn reload(&mut self, reload: Reload, catalog: &PluginCatalog) -> Result<Reloaded, ReloadError> {
        let Reload { project, kept, difference } = reload;
        let topology = names::topology(&project);
        let registered = self.engine.register(topology.clone()).await?;
        let names = Names::new(&topology, &registered);
        // What is new belongs to this engine before anything is stored for it.
        running::claim(&*self.store, &registered, &names, self.live.clock.now()).await?;
        let runtime = self.live.runtime.clone();
        let mut plugins = Plugins::new(&runtime, catalog).recording(self.live.ledger.clone());
        plugins = plugins.timing(self.live.traces.as_ref());
        let begins = |interface: &str, destination: &str| difference.begins(interface, destination);
        let store: Arc<dyn Store> = self.store.clone();
        let begin = assemble::destinations(&project, begins, &mut plugins, &names, &store).await?;
        let going = difference.sources();
        let coming = open_sources(&project, |name| going.contains(name), &mut plugins, &names).await?;
        let listeners = self.live.sources.listen(&coming, &self.threads)?;
        let digests = self.digests(&project, &kept, &mut plugins).await?;
        // From here on nothing fails but the engine itself.
        let gone = self.numbers_of_gone(&difference);
        let mut change = self.layout_change(&difference, &names);
        let is_meant = |name: &str| difference.0.get(name).is_some_and(|change| change.what != What::Removed);
        let settings = assemble::engine_settings(&project, &registered);
        change.interfaces.extend(settings.interfaces.into_iter().filter(|one| is_meant(&one.name)));
        change.pauses = registered.pauses;
        self.live.sources.make_room(&going, &coming).await;
        self.live.destinations.set(begin);
        let settling = self.engine.change_layout(change).await?;
        let live = &mut self.live;
        live.observers = observers(&live.observers, &project, &difference, &plugins);
        live.plugins = views(&live.plugins, plugins.views(&project), &kept);
        (live.project, live.names, live.digests) = (project, names, digests);
        let around = live.surroundings(&self.engine, &self.threads);
        let failed = live.sources.start(coming, listeners, &around);
        self.renew_control();
        Ok(Reloaded { failed, leaving: Leaving::new(self, settling, gone) })
    }

    /// Digests of the plugins that interfaces use; of those that are kept as they were.
    async fn digests(
        &self,
        project: &Project,
        kept: &BTreeSet<String>,
        plugins: &mut Plugins<'_>,
    ) -> Result<Digests, AssembleError> {
        let mut all = Digests::new();
        for interface in &project.interfaces {
            let name = interface.name.as_str();
            let of = match self.live.digests.get(name).filter(|_| kept.contains(name)) {
                Some(known) => known.clone(),
                None => digests_of(interface, plugins).await?,
            };
            all.insert(name.to_owned(), of);
        }
        Ok(all)
    }

    /// The number of a destination of the project that runs.
    pub fn destination_id(&self, interface: &str, name: &str) -> Option<DestinationId> {
        self.live.names.destination(interface, name)
    }

    /// Destinations that are gone, by number.
    fn numbers_of_gone(&self, difference: &Difference) -> Vec<DestinationId> {
        let gone = difference.gone().into_iter();
        gone.filter_map(|(interface, name)| self.live.names.destination(&interface, &name)).collect()
    }

    /// The numbers of what goes and what begins anew.
    fn layout_change(&self, difference: &Difference, names: &Names) -> LayoutChange {
        let changed = difference.0.iter().flat_map(|(interface, change)| {
            change.changed.iter().filter_map(|name| names.destination(interface, name))
        });
        LayoutChange {
            removed: difference
                .names(What::Removed)
                .filter_map(|name| self.live.names.interface(name))
                .collect(),
            renewed: changed.collect(),
            ..LayoutChange::default()
        }
    }
}

/// Digests of the plugins that all interfaces use.
pub(super) async fn digests_of_all(
    project: &Project,
    plugins: &mut Plugins<'_>,
) -> Result<Digests, AssembleError> {
    let mut all = Digests::new();
    for interface in &project.interfaces {
        all.insert(interface.name.as_str().to_owned(), digests_of(interface, plugins).await?);
    }
    Ok(all)
}

/// Digests of the plugins that an interface uses.
async fn digests_of(
    interface: &InterfaceSettings,
    plugins: &mut Plugins<'_>,
) -> Result<BTreeMap<(Role, String), String>, AssembleError> {
    let mut digests = BTreeMap::new();
    for (role, name) in interface.plugins() {
        let plugin = plugins.load(role, name).await?;
        digests.insert((role, name.to_owned()), plugin.digest().to_owned());
    }
    Ok(digests)
}

/// What is loaded, for people; and what was, where an interface goes on with it.
fn views(
    before: &[views::Plugin],
    mut now: Vec<views::Plugin>,
    kept: &BTreeSet<String>,
) -> Vec<views::Plugin> {
    let is_new = |old: &&views::Plugin, now: &[views::Plugin]| {
        !now.iter().any(|new| (&new.name, &new.kind) == (&old.name, &old.kind))
    };
    if !kept.is_empty() {
        let old: Vec<_> = before.iter().filter(|old| is_new(old, &now)).cloned().collect();
        now.extend(old);
    }
    now
}

/// Those who listen to what goes on, and to what begins.
fn observers(
    before: &Observers,
    project: &Project,
    difference: &Difference,
    plugins: &Plugins<'_>,
) -> Observers {
    let goes_on = |change: &Change, destination: &str| match destination {
        "" => !change.source,
        name => !change.changed.contains(name) && !change.removed.contains(name),
    };
    let mut all = plugins.observers();
    for interface in &project.interfaces {
        let name = interface.name.as_str();
        let change = difference.0.get(name);
        let stays = |destination: &str| change.is_none_or(|change| goes_on(change, destination));
        let old = before.get(name).into_iter().flatten().filter(|one| stays(one.destination()));
        let kept: Vec<_> = old.cloned().collect();
        all.entry(name.to_owned()).or_default().extend(kept);
    }
    all
}
