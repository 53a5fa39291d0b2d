//! A loaded plugin: what it is, and the ways to open it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use portway_model::code;
use sha2::{Digest, Sha256};
use wasmtime::component::InstancePre;

use crate::batch::Opened;
use crate::exports::Indices;
use crate::guest::{Guest, PluginFacts};
use crate::guest_time::Purity;
use crate::http_sender::HttpSender;
use crate::http_source::HttpSource;
use crate::instance::{Use, UseToken};
use crate::manifest::{Manifest, PluginKind};
use crate::opening::Opening;
use crate::output::Throttle;
use crate::poll_source::PollSource;
use crate::pool::Pool;
use crate::reach::{GrantError, Reach};
use crate::respond::{Responder, environment_of};
use crate::runtime::RuntimeInner;
use crate::sender::Sender;
use crate::stream_source::StreamSource;
use crate::transform::Transformer;

/// A plugin that can be opened. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) inner: Arc<PluginInner>,
}

pub(crate) struct PluginInner {
    pub runtime: Arc<RuntimeInner>,
    pub manifest: Manifest,
    pub facts: Arc<PluginFacts>,
    pub counters: InstanceCounters,
    pub pre: InstancePre<Guest>,
    pub indices: Indices,
    pools: Mutex<Vec<Weak<Pool>>>,
    uses: AtomicU64,
}

#[derive(Default)]
pub(crate) struct InstanceCounters {
    pub instances: AtomicU64,
}

/// What is counted of a plugin since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginCounts {
    /// Instances made.
    pub instances: u64,
    pub faults: u64,
    /// Attributes whose names are the host's.
    pub dropped_attributes: u64,
}

/// Why a plugin cannot be opened as asked; nothing of it has run yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    #[error("plugin `{plugin}` is a `{kind}`, not a `{wanted}`")]
    Kind { plugin: String, kind: PluginKind, wanted: PluginKind },
    #[error("plugin `{plugin}`: {source}")]
    Grant { plugin: String, source: GrantError },
}

impl OpeningError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            OpeningError::Kind { .. } => code::PLUGIN_WRONG_KIND,
            OpeningError::Grant { source, .. } => source.code(),
        }
    }
}

impl Plugin {
    /// What the project calls it.
    pub fn name(&self) -> &str {
        &self.inner.facts.name
    }

    pub fn version(&self) -> &str {
        &self.inner.manifest.version
    }

    pub fn kind(&self) -> PluginKind {
        self.inner.manifest.kind
    }

    /// SHA-256 of the component, in hex.
    pub fn digest(&self) -> &str {
        &self.inner.facts.digest
    }

    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    pub fn counts(&self) -> PluginCounts {
        let facts = &self.inner.facts;
        PluginCounts {
            instances: self.inner.counters.instances.load(Ordering::Relaxed),
            faults: facts.faults.load(Ordering::Relaxed),
            dropped_attributes: facts.dropped_attributes.load(Ordering::Relaxed),
        }
    }

    /// Opens a transform for a destination; nothing runs before the first call.
    pub fn transformer(&self, opening: Opening) -> Result<Transformer, OpeningError> {
        self.check_kind(PluginKind::Transform)?;
        let pool = self.pool(&opening)?;
        Ok(Transformer::new(pool, self.inner.new_use(opening)))
    }

    /// Opens a sender for a destination; nothing runs before the first call.
    pub fn sender(&self, opening: Opening) -> Result<Sender, OpeningError> {
        self.check_kind(PluginKind::Sender)?;
        let pool = self.pool(&opening)?;
        Ok(Sender::new(pool, self.inner.new_use(opening)))
    }

    /// Opens an HTTP sender for a destination; nothing runs before the first call.
    pub fn http_sender(&self, opening: Opening) -> Result<HttpSender, OpeningError> {
        self.check_kind(PluginKind::HttpSender)?;
        let pool = self.pool(&opening)?;
        Ok(HttpSender::new(pool, self.inner.new_use(opening)))
    }

    /// Opens a stream source for an interface; nothing runs before the first connection.
    pub fn stream_source(&self, opening: Opening) -> Result<StreamSource, OpeningError> {
        self.check_kind(PluginKind::StreamSource)?;
        let pool = self.pool(&opening)?;
        Ok(StreamSource::new(pool, self.inner.new_use(opening)))
    }

    /// Opens a poll source for an interface; nothing runs before the first call.
    pub fn poll_source(&self, opening: Opening) -> Result<PollSource, OpeningError> {
        self.check_kind(PluginKind::PollSource)?;
        let pool = self.pool(&opening)?;
        Ok(PollSource::new(pool, self.inner.new_use(opening)))
    }

    /// Opens an HTTP source for an interface; nothing runs before the first request.
    pub fn http_source(&self, opening: Opening) -> Result<HttpSource, OpeningError> {
        self.check_kind(PluginKind::HttpSource)?;
        let pool = self.pool(&opening)?;
        Ok(HttpSource::new(pool, self.inner.new_use(opening)))
    }

    fn check_kind(&self, wanted: PluginKind) -> Result<(), OpeningError> {
        let kind = self.kind();
        if kind == wanted {
            return Ok(());
        }
        Err(OpeningError::Kind { plugin: self.name().into(), kind, wanted })
    }

    /// Opens a component that responds, for an interface; nothing runs before the first request.
    pub fn responder(&self, opening: Opening, answer_bytes_max: usize) -> Result<Responder, OpeningError> {
        self.check_kind(PluginKind::Respond)?;
        let mut reach = self.reach(&opening)?;
        let environment = environment_of(&opening.settings);
        reach.environment = environment.clone().unwrap_or_default();
        // Its settings are in the environment of its instances, which nobody else can share.
        let pool = Pool::new(self.inner.clone(), opening.grants.clone(), opening.limits, reach);
        let pool = Arc::new(pool);
        self.inner.runtime.remember(&pool);
        let opened = Opened { pool, user: self.inner.new_use(opening) };
        Ok(Responder::new(opened, environment.err(), answer_bytes_max))
    }

    fn reach(&self, opening: &Opening) -> Result<Reach, OpeningError> {
        let connector = self.inner.runtime.settings.connector.clone();
        Reach::new(&self.inner.manifest, &opening.grants, connector)
            .map_err(|source| OpeningError::Grant { plugin: self.name().into(), source })
    }

    /// The pool of all openings with the same grants and limits.
    fn pool(&self, opening: &Opening) -> Result<Arc<Pool>, OpeningError> {
        let plugin = &self.inner;
        let mut pools = plugin.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        let same =
            |pool: &Arc<Pool>| pool.limits == opening.limits && pool.grants.reach_the_same(&opening.grants);
        if let Some(pool) = pools.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(pool);
        }
        let reach = self.reach(opening)?;
        let pool = Arc::new(Pool::new(plugin.clone(), opening.grants.clone(), opening.limits, reach));
        pools.push(Arc::downgrade(&pool));
        plugin.runtime.remember(&pool);
        Ok(pool)
    }
}

impl PluginInner {
    pub fn new(
        runtime: Arc<RuntimeInner>,
        name: &str,
        digest: String,
        manifest: Manifest,
        pre: InstancePre<Guest>,
    ) -> wasmtime::Result<PluginInner> {
        let indices = Indices::find(manifest.kind, &pre)?;
        let facts = PluginFacts {
            name: name.into(),
            digest_bytes: Sha256::digest(&digest).into(),
            digest,
            throttle: Arc::new(Throttle::new(runtime.settings.clock.clone())),
            begins: AtomicBool::new(false),
            notices: Mutex::new(BTreeSet::new()),
            dropped_attributes: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        };
        Ok(PluginInner {
            runtime,
            manifest,
            facts: Arc::new(facts),
            counters: InstanceCounters::default(),
            pre,
            indices,
            pools: Mutex::default(),
            uses: AtomicU64::new(0),
        })
    }

    /// A call that reaches nothing can be done again. HTTP senders never reach anything themselves.
    pub fn purity(&self, reach: &Reach) -> Purity {
        match self.manifest.kind {
            PluginKind::HttpSender => Purity::Pure,
            PluginKind::Transform if reach.is_empty() => Purity::Pure,
            PluginKind::Transform
            | PluginKind::StreamSource
            | PluginKind::PollSource
            | PluginKind::HttpSource
            | PluginKind::Respond
            | PluginKind::Sender => Purity::Worldly,
        }
    }

    fn new_use(&self, opening: Opening) -> Use {
        let id = self.uses.fetch_add(1, Ordering::Relaxed);
        Use { id, opening, token: Arc::new(UseToken) }
    }
}
