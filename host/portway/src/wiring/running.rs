//! A running engine: started from a project, stopped in order.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portway_admin::{AdminServer, AdminSettings};
use portway_config::Project;
use portway_engine::ports::Clock;
use portway_engine::{Engine, EngineError, EngineHandle, EngineParts, LastEnd};
use portway_model::code;
use portway_net::http::Connector;
use portway_net::listen::ListenError;
use portway_runtime::{CompileMode, Runtime, RuntimeError, RuntimeSettings};
use portway_store::{Store, StoreError};
use portway_store_sqlite::{OpenError, SqliteSettings, SqliteStore};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::assemble::{self, AssembleError, Plugins};
use super::catalog::PluginCatalog;
use super::clock::SystemClock;
use super::control::EngineControl;
use super::names::{self, Names};
use super::passed::PassedSockets;
use super::secret_ledger::SecretLedger;
use super::sources::{self, SourceParts, Surroundings};
use super::threads::Threads;

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
    #[error("the engine cannot start")]
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

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            StartError::Open(error) => Some(error.hint().to_owned()),
            StartError::Assemble(error) => error.hint(),
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
    pub store: Arc<SqliteStore>,
    pub control: Arc<EngineControl>,
    admin: SocketAddr,
    task: JoinHandle<Result<(), EngineError>>,
    drivers: JoinSet<()>,
    background: JoinSet<()>,
    stop_sources: watch::Sender<bool>,
    stop_background: watch::Sender<bool>,
    /// Last, so that what runs on them is gone before.
    _threads: Threads,
}

impl Running {
    /// Opens the store, loads the plugins, listens, and recovers what waits. Sources accept when
    /// this returns.
    pub async fn start(project: Project, catalog: &PluginCatalog) -> Result<Running, StartError> {
        Running::start_with(project, catalog, PassedSockets::none()).await
    }

    /// The same, where a listener whose address one of the sockets has takes that socket.
    pub async fn start_with(
        project: Project,
        catalog: &PluginCatalog,
        sockets: PassedSockets,
    ) -> Result<Running, StartError> {
        let data = project.data_dir().to_owned();
        make_folder(&data)?;
        let store = Arc::new(SqliteStore::open(store_settings(&project)).await?);
        let topology = names::topology(&project);
        let registered = store.register(&topology).await?;
        let names = Names::new(&topology, &registered);
        let runtime = runtime(&project, &data)?;
        let mut plugins = Plugins::new(&runtime, catalog).recording(SecretLedger::in_folder(&data));
        let clock = Arc::new(SystemClock::new());
        let kept: Arc<dyn Store> = store.clone();
        let of_store = (registered.store.clone(), clock.clone() as Arc<dyn Clock>, kept);
        let delivery = assemble::delivery(&project, &mut plugins, &names, of_store).await?;
        let latencies = delivery.latencies();
        let threads = Threads::start(sockets).map_err(StartError::Threads)?;
        let bound = sources::bind(&project, &mut plugins, &names, &threads).await?;
        let (plugin_views, observers) = (plugins.views(&project), plugins.observers());
        let settings = assemble::engine_settings(&project, &registered);
        let parts =
            EngineParts { store: store.clone(), deliver: threads.deliver(delivery), clock: clock.clone() };
        let last_end = if registered.unclean { LastEnd::Unclean } else { LastEnd::Clean };
        let (engine, task) = Engine::start(parts, settings, last_end);
        let task = threads.engine().spawn(task.run());
        engine.on_ready().await?;
        let (stop_sources, sources_stopped) = watch::channel(false);
        let (stop_background, background_stopped) = watch::channel(false);
        let mut drivers = JoinSet::new();
        let mut parts: Vec<Option<SourceParts>> = project.interfaces.iter().map(|_| None).collect();
        let around = Surroundings {
            project: &project,
            engine: &engine,
            threads: &threads,
            clock: clock.clone(),
            stop: sources_stopped,
        };
        for (interface, part) in bound.run(&around, &mut drivers) {
            if let Some(slot) = parts.get_mut(interface) {
                *slot = Some(part);
            }
        }
        let admin_settings = AdminSettings {
            listen: project.admin.address(),
            connections_max: project.admin.connections_max as usize,
            data_dir: data,
            message_bytes_max: project.limits.message_bytes_max.as_usize(),
        };
        let control = Arc::new(EngineControl::new(
            project,
            names,
            engine.clone(),
            store.clone(),
            parts,
            (plugin_views, observers, latencies),
        ));
        let admin = match threads.sockets().take(admin_settings.listen) {
            Some(socket) => AdminServer::bind_to(socket, admin_settings, control.clone())?,
            None => AdminServer::bind(admin_settings, control.clone()).await?,
        };
        threads.sockets().close_the_rest();
        let address = admin.local_addr();
        let mut background = JoinSet::new();
        background.spawn(admin.run(asked(background_stopped.clone())));
        background.spawn(release_idle(runtime, background_stopped));
        Ok(Running {
            engine,
            store,
            control,
            admin: address,
            task,
            drivers,
            background,
            stop_sources,
            stop_background,
            _threads: threads,
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

    /// Sources first, so that everything they were promised is answered; then the engine, which
    /// closes the store, and the API.
    pub async fn stop(mut self) -> Result<(), StartError> {
        self.control.stopping();
        let _ = self.stop_sources.send(true);
        while self.drivers.join_next().await.is_some() {}
        self.engine.shutdown().await;
        let ended = self.task.await.map_err(StartError::Panic)?;
        let _ = self.stop_background.send(true);
        while self.background.join_next().await.is_some() {}
        Ok(ended?)
    }
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

fn store_settings(project: &Project) -> SqliteSettings {
    SqliteSettings {
        free_floor_bytes: project.store.free_bytes_min.0,
        wal_bytes_max: project.store.log_bytes_max.0,
        ..SqliteSettings::new(project.store.path.as_path())
    }
}

fn runtime(project: &Project, data: &Path) -> Result<Runtime, StartError> {
    let program = std::env::current_exe().map_err(StartError::Program)?;
    let settings = RuntimeSettings {
        cache_dir: Some(data.join("native-code")),
        compile: CompileMode::Child { program, args: vec![COMPILE_COMMAND.to_owned()] },
        instances_max: project.limits.instances_max as usize,
        connector: Connector::default(),
        ..RuntimeSettings::default()
    };
    Ok(Runtime::new(settings)?)
}
