//! The runtime: one engine, one linker, and the places for instances that all plugins share.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use portway_model::code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant as Moment, timeout_at};
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::cache::NativeCode;
use crate::compile::Compiler;
use crate::engine::{new_engine, new_pooled_engine};
use crate::guest::Guest;
use crate::load::{self, LoadError};
use crate::manifest::PluginKind;
use crate::plugin::Plugin;
use crate::pool::Pool;
use crate::services::new_linker;
use crate::settings::RuntimeSettings;

/// Loads plugins and holds what they share. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<RuntimeInner>,
}

pub(crate) struct RuntimeInner {
    house: House,
    /// Made with the first component that needs it; none: this system does not give it room.
    pooled: OnceLock<Option<House>>,
    pub native: NativeCode,
    pub settings: RuntimeSettings,
    /// Instances that wait in pools.
    pub idle: AtomicUsize,
    places: Arc<Semaphore>,
    pools: Mutex<Vec<Weak<Pool>>>,
}

/// An engine, and what is linked in it.
struct House {
    engine: Engine,
    linker: Linker<Guest>,
}

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("the engine for plugins cannot be started: {0}")]
    Engine(String),
    #[error("the folder for native code cannot be made")]
    Cache(#[source] io::Error),
}

impl RuntimeError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            RuntimeError::Engine(_) => code::RUNTIME_FAILED,
            RuntimeError::Cache(_) => code::NO_CODE_FOLDER,
        }
    }
}

impl Runtime {
    /// Starts the engine; compiles nothing yet.
    pub fn new(settings: RuntimeSettings) -> Result<Runtime, RuntimeError> {
        let engine_error = |error: wasmtime::Error| RuntimeError::Engine(format!("{error:#}"));
        let house = House::new(new_engine()).map_err(engine_error)?;
        let compiler = Compiler::new(settings.compile.clone());
        let native = NativeCode::new(&house.engine, settings.cache_dir.clone(), compiler)
            .map_err(RuntimeError::Cache)?;
        let places = Arc::new(Semaphore::new(settings.instances_max.max(1)));
        let pools = Mutex::default();
        Ok(Runtime {
            inner: Arc::new(RuntimeInner {
                house,
                pooled: OnceLock::new(),
                native,
                settings,
                idle: AtomicUsize::new(0),
                places,
                pools,
            }),
        })
    }

    /// Makes a plugin of a component's bytes; `name` is what the project calls it.
    pub async fn load(&self, name: &str, bytes: &[u8]) -> Result<Plugin, LoadError> {
        load::load(&self.inner, name, bytes).await
    }

    /// Drops instances that have been idle for long; to be called now and then. Returns how many.
    pub fn release_idle(&self) -> usize {
        self.inner.release_idle(self.inner.settings.instance_idle)
    }

    /// Instances that live now.
    pub fn instances(&self) -> usize {
        self.inner.settings.instances_max.max(1) - self.inner.places.available_permits()
    }

    /// Components that were compiled because they were not in the cache.
    pub fn compiled(&self) -> u64 {
        self.inner.native.compiled()
    }
}

impl House {
    fn new(engine: wasmtime::Result<Engine>) -> wasmtime::Result<House> {
        let engine = engine?;
        let linker = new_linker(&engine)?;
        Ok(House { engine, linker })
    }
}

impl RuntimeInner {
    /// The engines a plugin may run in, the better one first. Instances that live for one call are
    /// pooled where that is possible.
    pub fn engines_for(&self, kind: PluginKind) -> Vec<&Engine> {
        let pooled = if kind == PluginKind::Respond { self.pooled() } else { None };
        pooled.into_iter().chain([&self.house]).map(|house| &house.engine).collect()
    }

    /// The linker of the engine that a component was made for.
    pub fn linker_of(&self, component: &Component) -> &Linker<Guest> {
        let pooled = self.pooled.get().and_then(Option::as_ref);
        let pooled = pooled.filter(|house| Engine::same(&house.engine, component.engine()));
        &pooled.unwrap_or(&self.house).linker
    }

    fn pooled(&self) -> Option<&House> {
        let make = || match House::new(new_pooled_engine(self.settings.instances_max.max(1))) {
            Ok(house) => Some(house),
            Err(error) => {
                let why = format!("{error:#}");
                tracing::warn!(why, "there is no pool of instances: each is made from nothing");
                None
            }
        };
        self.pooled.get_or_init(make).as_ref()
    }

    /// A place for one more instance; where there is none, idle ones make room.
    pub async fn place(&self, deadline: Moment) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(place);
        }
        self.release_idle(Duration::ZERO);
        timeout_at(deadline, self.places.clone().acquire_owned()).await.ok()?.ok()
    }

    pub fn remember(&self, pool: &Arc<Pool>) {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    fn release_idle(&self, idle_for: Duration) -> usize {
        let pools: Vec<_> = {
            let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.iter().filter_map(Weak::upgrade).collect()
        };
        let now = self.settings.clock.monotonic();
        pools.iter().map(|pool| pool.release_idle(idle_for, now)).sum()
    }
}
