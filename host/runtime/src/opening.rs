//! What a plugin is opened for: settings, grants, limits, and who is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portway_model::Attributes;
use portway_net::folder::FolderGrant;
use portway_net::http::HttpGrant;
use portway_net::tcp::TcpGrant;

use crate::fault::Fault;
use crate::outgoing::HttpAnswers;
use crate::secret::{Recording, SecretAction, SecretGrant, SecretUse};
use crate::state::StateGrant;

/// One use of a plugin: one destination, or one interface's source.
#[derive(Clone)]
pub struct Opening {
    /// The interface's name.
    pub origin: String,
    /// The destination's name; empty for a source.
    pub destination: String,
    /// JSON, valid under the manifest's schema.
    pub settings: String,
    /// `engine.version` and the like.
    pub attributes: Attributes,
    pub grants: Grants,
    pub limits: CallLimits,
    pub isolation: Isolation,
    /// Whether a source's calls are timed. Calls on batches are where the batch says so.
    pub timed: bool,
    pub observer: Arc<dyn Observer>,
}

/// What a plugin may reach, by the slot of its manifest.
#[derive(Clone, Debug, Default)]
pub struct Grants(pub BTreeMap<String, Grant>);

/// One thing a plugin may reach.
#[derive(Clone, Debug)]
pub enum Grant {
    Http(HttpGrant),
    /// The same in a rehearsal: nothing leaves, and somebody else answers.
    Rehearsed(HttpGrant, Arc<dyn HttpAnswers>),
    Folder(FolderGrant),
    Tcp(TcpGrant),
    Secret(SecretGrant),
    State(StateGrant),
}

/// What one call may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallLimits {
    /// For each message, set anew and never banked.
    pub fuel_per_message: u64,
    /// All memories of an instance together.
    pub memory_bytes: usize,
    /// Wall time of a call, waiting in services included.
    pub call_timeout: Duration,
    /// What a guest may hand over at once: the arguments of a service, the result of a call.
    pub copy_bytes: usize,
}

/// Whether calls share a guest's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// With other uses of the same plugin under the same grants and limits.
    #[default]
    Shared,
    /// A fresh instance for every call.
    Call,
}

/// How urgent a guest's line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// Hears of what happens inside a plugin. Called inline: must not block.
pub trait Observer: Send + Sync + 'static {
    /// A line of the guest's, limited and escaped.
    fn log(&self, level: Level, text: &str);
    /// Something to count under `code`.
    fn notice(&self, code: &str, text: &str);
    /// The plugin broke off or broke its word.
    fn fault(&self, fault: &Fault);
    /// A granted secret is about to be used. What has to be written down before the plugin gets its
    /// answer comes back, to be done on a thread that may block.
    fn secret(&self, _used: SecretUse<'_>) -> Option<Recording> {
        None
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn log(&self, _level: Level, _text: &str) {}
    fn notice(&self, _code: &str, _text: &str) {}
    fn fault(&self, _fault: &Fault) {}
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits {
            fuel_per_message: 50_000_000,
            memory_bytes: 64 << 20,
            call_timeout: Duration::from_secs(30),
            copy_bytes: 16 << 20,
        }
    }
}

impl Opening {
    /// An opening with nothing granted, the usual limits, and nobody listening.
    pub fn new(
        origin: impl Into<String>,
        destination: impl Into<String>,
        settings: impl Into<String>,
    ) -> Opening {
        Opening {
            origin: origin.into(),
            destination: destination.into(),
            settings: settings.into(),
            attributes: Attributes::default(),
            grants: Grants::default(),
            limits: CallLimits::default(),
            isolation: Isolation::default(),
            timed: false,
            observer: Arc::new(Unobserved),
        }
    }
}

impl Grants {
    /// The grant of a slot.
    pub fn get(&self, slot: &str) -> Option<&Grant> {
        self.0.get(slot)
    }

    /// Reach the same, so that instances may be shared.
    pub(crate) fn reach_the_same(&self, other: &Grants) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((a_slot, a), (b_slot, b))| a_slot == b_slot && a.reaches_the_same(b))
    }
}

impl Grant {
    fn reaches_the_same(&self, other: &Grant) -> bool {
        match (self, other) {
            (Grant::Http(a), Grant::Http(b)) => same_api(a, b),
            (Grant::Rehearsed(a, answers), Grant::Rehearsed(b, others)) => {
                same_api(a, b) && Arc::ptr_eq(answers, others)
            }
            (Grant::Folder(a), Grant::Folder(b)) => a == b,
            (Grant::Tcp(a), Grant::Tcp(b)) => a == b,
            (Grant::Secret(a), Grant::Secret(b)) => a == b,
            (Grant::State(a), Grant::State(b)) => a.is_same(b),
            (
                Grant::Http(_)
                | Grant::Rehearsed(..)
                | Grant::Folder(_)
                | Grant::Tcp(_)
                | Grant::Secret(_)
                | Grant::State(_),
                _,
            ) => false,
        }
    }

    /// As a manifest's slot names it.
    pub(crate) const fn kind(&self) -> crate::manifest::SlotKind {
        match self {
            Grant::Http(_) | Grant::Rehearsed(..) => crate::manifest::SlotKind::Http,
            Grant::Folder(_) => crate::manifest::SlotKind::Folder,
            Grant::Tcp(_) => crate::manifest::SlotKind::Tcp,
            Grant::State(_) => crate::manifest::SlotKind::State,
            Grant::Secret(secret) => match secret.action {
                SecretAction::Reveal => crate::manifest::SlotKind::Reveal,
                SecretAction::Sign => crate::manifest::SlotKind::Sign,
            },
        }
    }
}

fn same_api(a: &HttpGrant, b: &HttpGrant) -> bool {
    a.base == b.base
        && a.credentials == b.credentials
        && a.headers == b.headers
        && a.timeout == b.timeout
        && a.response_bytes_max == b.response_bytes_max
        && a.addresses == b.addresses
        && a.tls_roots == b.tls_roots
}

impl Level {
    /// As everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}
