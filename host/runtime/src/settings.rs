//! What the runtime as a whole is told: where native code is kept, how components are
//! compiled, how many instances may live, whose clock counts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use portway_model::Timestamp;
use portway_net::http::Connector;

/// Bytes of a component at most.
pub const COMPONENT_BYTES_MAX: usize = 64 << 20;

/// How a runtime works.
#[derive(Clone)]
pub struct RuntimeSettings {
    /// Native code is kept here, readable by its owner alone; none: compiled at every start.
    pub cache_dir: Option<PathBuf>,
    pub compile: CompileMode,
    /// Instances that live at the same time, over all plugins.
    pub instances_max: usize,
    /// Instances of one plugin under one set of grants and limits.
    pub instances_per_pool_max: usize,
    /// Instances kept without work, over all plugins: some 80 KiB each. Beyond it one is dropped
    /// when its call ends, so that a thousand destinations cost no more than what is busy.
    pub instances_idle_max: usize,
    /// An instance without work for so long is dropped by [`crate::Runtime::release_idle`].
    pub instance_idle: Duration,
    pub clock: Arc<dyn RuntimeClock>,
    /// All outgoing HTTP of the process.
    pub connector: Connector,
}

/// Where a component becomes native code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileMode {
    /// In this process, without a bound: for tests and tools.
    InProcess,
    /// In a child with limits on time and memory: `program args…` must call
    /// [`crate::compile_child_main`].
    Child { program: PathBuf, args: Vec<String> },
}

/// The time as guests and log limits see it.
pub trait RuntimeClock: Send + Sync + 'static {
    /// Wall time; guests see this as the time of the attempt.
    fn now(&self) -> Timestamp;
    /// Since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for RuntimeSettings {
    fn default() -> Self {
        RuntimeSettings {
            cache_dir: None,
            compile: CompileMode::InProcess,
            instances_max: 1024,
            instances_per_pool_max: 64,
            instances_idle_max: 128,
            instance_idle: Duration::from_secs(60),
            clock: Arc::new(SystemClock::default()),
            connector: Connector::default(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl RuntimeClock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
