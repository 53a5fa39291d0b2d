//! A running engine: started from a project, stopped in order.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portway_admin::{AdminServer, AdminSettings, views};
use portway_config::{InterfaceSettings, Project, Role};
use portway_engine::{Clock, Engine, EngineError, EngineHandle, EngineParts, EngineSettings};
use portway_model::{GroupId, InterfaceId, Timestamp, code};
use portway_net::http::Connector;
use portway_net::listen::ListenError;
use portway_runtime::{CompileMode, Runtime, RuntimeError, RuntimeSettings};
use portway_store::{Claimed, Owner, Registered, Store, StoreError, Tenure};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::assemble::{self, AssembleError, Plugins};
use super::catalog::PluginCatalog;
use super::clock::SystemClock;
use super::control::{CurrentControl, EngineControl, Life};
use super::deliver::Delivery;
use super::destinations::Destinations;
use super::names::{self, Names};
use super::observer::Observers;
use super::passed::PassedSockets;
use super::reload;
use super::secret_ledger::SecretLedger;
use super::source_set::{SourceSet, Surroundings};
use super::sources::{self, Opened};
use super::store::{self, OpenError};
use super::threads::Threads;
use super::traces::Traces;

/// Hidden command by which this binary compiles a component in a child of its own.
pub const COMPILE_COMMAND: &str = "compile-component";
/// How often idle instances of plugins are looked for.
const RELEASE_EVERY: Duration = Duration::from_secs(30);

/// Why a project does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot make the data folder `{path}`")]
    DataFolder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("other engines deliver what this one would: {0}")]
    Owned(String),
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    #[error("interface `{interface}` cannot listen")]
    Listen {
        interface: String,
        #[source]
        source: ListenError,
    },
    #[error("interface `{interface}` has no address to listen on")]
    NoListener { interface: String },
    #[error("the engine failed")]
    Engine(#[from] EngineError),
    #[error("the admin API cannot start")]
    Admin(#[from] portway_admin::AdminError),
    #[error("the engine's task failed")]
    Panic(#[source] tokio::task::JoinError),
    #[error("cannot tell which program this is")]
    Program(#[source] io::Error),
    #[error("cannot start threads")]
    Threads(#[source] io::Error),
}

impl StartError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            StartError::DataFolder { .. } => code::NO_DATA_FOLDER,
            StartError::Open(error) => error.code(),
            StartError::Owned(_) => code::OWNED,
            StartError::Store(_) => code::STORE_FAILED,
            StartError::Runtime(error) => error.code(),
            StartError::Assemble(error) => error.code(),
            StartError::Listen { source, .. } => source.code(),
            StartError::NoListener { .. } => code::NO_LISTENER,
            StartError::Engine(error) => error.code(),
            StartError::Admin(error) => error.code(),
            StartError::Panic(_) => code::ENGINE_PANIC,
            StartError::Program(_) => code::NO_PROGRAM,
            StartError::Threads(_) => code::NO_THREADS,
        }
    }

    /// The interface whose fault it is, where it is one's.
    pub fn interface(&self) -> Option<&str> {
        match self {
            StartError::Listen { interface, .. } | StartError::NoListener { interface } => Some(interface),
            StartError::DataFolder { .. }
            | StartError::Open(_)
            | StartError::Owned(_)
            | StartError::Store(_)
            | StartError::Runtime(_)
            | StartError::Assemble(_)
            | StartError::Engine(_)
            | StartError::Admin(_)
            | StartError::Panic(_)
            | StartError::Program(_)
            | StartError::Threads(_) => None,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            StartError::Open(error) => Some(error.hint().to_owned()),
            StartError::Assemble(error) => error.hint(),
            StartError::Owned(_) => Some("stop that engine, or start this one with `--standby`".to_owned()),
            StartError::DataFolder { .. }
            | StartError::Store(_)
            | StartError::Runtime(_)
            | StartError::Listen { .. }
            | StartError::NoListener { .. }
            | StartError::Engine(_)
            | StartError::Admin(_)
            | StartError::Panic(_)
            | StartError::Program(_)
            | StartError::Threads(_) => None,
        }
    }
}

/// Everything that runs for a project.
pub struct Running {
    pub engine: EngineHandle,
    pub store: Arc<dyn Store>,
    pub control: Arc<CurrentControl>,
    pub(super) live: Live,
    life: Arc<Life>,
    admin: SocketAddr,
    task: EngineJoin,
    background: JoinSet<()>,
    stop_background: watch::Sender<bool>,
    /// Last, so that what runs on them is gone before.
    pub(super) threads: Threads,
}

/// What belongs to the project of now.
pub(super) struct Live {
    pub project: Project,
    pub names: Names,
    pub destinations: Arc<Destinations>,
    pub sources: SourceSet,
    /// Of the plugins that interfaces use.
    pub digests: Digests,
    pub observers: Observers,
    pub plugins: Vec<views::Plugin>,
    pub runtime: Runtime,
    pub ledger: Arc<SecretLedger>,
    pub clock: Arc<SystemClock>,
    /// As the engine started with; none: there are none.
    pub traces: Option<Arc<Traces>>,
}

/// Digests of components, by interface, role and name.
pub(super) type Digests = BTreeMap<String, BTreeMap<(Role, String), String>>;

/// How an engine starts.
#[derive(Default)]
pub struct StartOptions {
    /// A listener whose address one of them has takes that socket.
    pub sockets: PassedSockets,
    /// Where the control token and compiled plugins are; none: in the folder of the store.
    pub home: Option<PathBuf>,
    /// Listens and stores, and delivers as soon as no other engine does.
    pub standby: bool,
}

impl Running {
    /// Opens the store, loads the plugins, listens, and recovers what waits. Sources accept when
    /// this returns.
    pub async fn start(project: Project, catalog: &PluginCatalog) -> Result<Running, StartError> {
        Running::start_with(project, catalog, StartOptions::default()).await
    }

    /// The same with options.
    pub async fn start_with(
        project: Project,
        catalog: &PluginCatalog,
        options: StartOptions,
    ) -> Result<Running, StartError> {
        make_folder(project.data_dir())?;
        let home = options.home.unwrap_or_else(|| project.data_dir().to_owned());
        make_folder(&home)?;
        let store = store::open(&project).await?;
        let topology = names::topology(&project);
        let registered = store.register(&topology).await?;
        let names = Names::new(&topology, &registered);
        let clock = Arc::new(SystemClock::new());
        let tenure = match options.standby {
            true => None,
            false => Some(claim(&*store, &registered, &names, clock.now()).await?),
        };
        let connector = Connector::default();
        let (traces, exporter) = Traces::of(&project, &registered.store, connector.clone()).unzip();
        let runtime = runtime(&project, &home, connector)?;
        let ledger = SecretLedger::in_folder(project.data_dir());
        let mut plugins = Plugins::new(&runtime, catalog).recording(ledger.clone()).timing(traces.as_ref());
        let all = assemble::destinations(&project, |_, _| true, &mut plugins, &names, &store).await?;
        let destinations = Arc::new(Destinations::new(all));
        let delivery = Delivery {
            store: registered.store.clone(),
            destinations: destinations.clone(),
            clock: clock.clone(),
            traces: traces.clone(),
        };
        let threads = Threads::start(options.sockets).map_err(StartError::Threads)?;
        let sources = SourceSet::new(&project.limits);
        let opened = open_sources(&project, |_| true, &mut plugins, &names).await?;
        let listeners = sources.listen(&opened, &threads)?;
        let digests = reload::digests_of_all(&project, &mut plugins).await?;
        let (plugin_views, observers) = (plugins.views(&project), plugins.observers());
        let settings = assemble::engine_settings(&project, &registered);
        let parts =
            EngineParts { store: store.clone(), deliver: threads.deliver(delivery), clock: clock.clone() };
        let (engine, task) = start_engine(parts, settings, tenure, &threads);
        engine.on_ready().await?;
        let mut live = Live {
            project,
            names,
            destinations,
            sources,
            digests,
            observers,
            plugins: plugin_views,
            runtime,
            ledger,
            clock,
            traces: traces.clone(),
        };
        let around = live.surroundings(&engine, &threads);
        if let Some(error) = live.sources.start(opened, listeners, &around).into_iter().next() {
            return Err(error);
        }
        let life = Life::begin(traces);
        let control = Arc::new(CurrentControl::new(live.control(&engine, &store, &life)));
        let admin = admin(&live.project, home, &control, threads.sockets()).await?;
        threads.sockets().close_the_rest();
        let address = admin.local_addr();
        let (stop_background, background_stopped) = watch::channel(false);
        let mut background = JoinSet::new();
        background.spawn(admin.run(asked(background_stopped.clone())));
        background.spawn(release_idle(live.runtime.clone(), background_stopped.clone()));
        if let Some(exporter) = exporter {
            background.spawn(exporter.run(asked(background_stopped)));
        }
        Ok(Running {
            engine,
            store,
            control,
            live,
            life,
            admin: address,
            task,
            background,
            stop_background,
            threads,
        })
    }

    /// Where the local API answers.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Waits until the engine ends by itself, which is an error.
    pub async fn ended(&mut self) -> StartError {
        match (&mut self.task).await {
            Ok(Ok(())) => StartError::Engine(EngineError::Gone),
            Ok(Err(error)) => StartError::Engine(error),
            Err(error) => StartError::Panic(error),
        }
    }

    /// What is asked over the API is answered for the project of now.
    pub(super) fn renew_control(&self) {
        self.control.set(self.live.control(&self.engine, &self.store, &self.life));
    }

    /// Sources first, so that everything they were promised is answered; then the engine, which
    /// closes the store, and the API.
    pub async fn stop(mut self) -> Result<(), StartError> {
        self.life.stopping();
        self.live.sources.stop().await;
        self.engine.shutdown().await;
        let ended = self.task.await.map_err(StartError::Panic)?;
        let _ = self.stop_background.send(true);
        while self.background.join_next().await.is_some() {}
        Ok(ended?)
    }
}

impl Live {
    /// What drivers share.
    pub fn surroundings<'a>(&self, engine: &'a EngineHandle, threads: &'a Threads) -> Surroundings<'a> {
        let (limits, clock) = (self.project.limits.clone(), self.clock.clone());
        Surroundings { limits, engine, threads, clock, traces: self.traces.clone() }
    }

    fn control(&self, engine: &EngineHandle, store: &Arc<dyn Store>, life: &Arc<Life>) -> EngineControl {
        let parts = |interface: &InterfaceSettings| self.sources.parts(interface.name.as_str());
        EngineControl::new(
            self.project.clone(),
            self.names.clone(),
            engine.clone(),
            store.clone(),
            self.project.interfaces.iter().map(parts).collect(),
            (self.plugins.clone(), self.observers.clone(), self.destinations.latencies()),
            life.clone(),
        )
    }
}

/// Owns every interface of a project, or none and says who does.
pub(super) async fn claim(
    store: &dyn Store,
    registered: &Registered,
    names: &Names,
    now: Timestamp,
) -> Result<Tenure, StartError> {
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    match store.claim(&groups, now).await? {
        Claimed::Owned(tenure) => Ok(tenure),
        Claimed::Refused(owners) => {
            let owned = |owner: &Owner| {
                let interface = names.interface_name(InterfaceId(owner.group.0));
                format!("`{interface}` by engine `{}`", owner.engine)
            };
            Err(StartError::Owned(owners.iter().map(owned).collect::<Vec<_>>().join(", ")))
        }
    }
}

type EngineJoin = JoinHandle<Result<(), EngineError>>;

fn start_engine(
    parts: EngineParts,
    settings: EngineSettings,
    tenure: Option<Tenure>,
    threads: &Threads,
) -> (EngineHandle, EngineJoin) {
    let (engine, task) = Engine::start(parts, settings, tenure);
    (engine, threads.engine().spawn(task.run()))
}

/// The sources of interfaces, opened.
pub(super) async fn open_sources(
    project: &Project,
    is_meant: impl Fn(&str) -> bool,
    plugins: &mut Plugins<'_>,
    names: &Names,
) -> Result<Vec<Opened>, StartError> {
    let mut opened = Vec::new();
    for interface in project.interfaces.iter().filter(|interface| is_meant(interface.name.as_str())) {
        opened.extend(sources::open(interface, &project.limits, plugins, names).await?);
    }
    Ok(opened)
}

async fn admin(
    project: &Project,
    home: PathBuf,
    control: &Arc<CurrentControl>,
    sockets: &PassedSockets,
) -> Result<AdminServer, StartError> {
    let settings = AdminSettings {
        listen: project.admin.address(),
        connections_max: project.admin.connections_max as usize,
        data_dir: home,
        message_bytes_max: project.limits.message_bytes_max.as_usize(),
    };
    Ok(match sockets.take(settings.listen) {
        Some(socket) => AdminServer::bind_to(socket, settings, control.clone())?,
        None => AdminServer::bind(settings, control.clone()).await?,
    })
}

/// Ready when the word to stop was given, or nobody can give it any more.
async fn asked(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn release_idle(runtime: Runtime, stop: watch::Receiver<bool>) {
    let stopped = asked(stop);
    tokio::pin!(stopped);
    loop {
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(RELEASE_EVERY) => { runtime.release_idle(); }
        }
    }
}

fn make_folder(path: &Path) -> Result<(), StartError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| StartError::DataFolder { path: path.to_owned(), source })
}

fn runtime(project: &Project, data: &Path, connector: Connector) -> Result<Runtime, StartError> {
    let program = std::env::current_exe().map_err(StartError::Program)?;
    let settings = RuntimeSettings {
        cache_dir: Some(data.join("native-code")),
        compile: CompileMode::Child { program, args: vec![COMPILE_COMMAND.to_owned()] },
        instances_max: project.limits.instances_max as usize,
        connector,
        ..RuntimeSettings::default()
    };
    Ok(Runtime::new(settings)?)
}
