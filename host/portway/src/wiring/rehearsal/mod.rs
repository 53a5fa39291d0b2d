//! Rehearsals: messages through an interface's plugins, with nothing stored and nothing sent.
//!
//! `source` finds the messages of an input, `chain` takes one through a destination. What plugins
//! are granted is withheld where it would leave the process; the time is the one given.

mod answers;
mod chain;
mod source;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portway_config::{CaseFile, LimitSettings, Name, PluginUse, Project, Role};
use portway_model::Timestamp;
use portway_net::AddressPolicy;
use portway_net::folder::Access;
use portway_runtime::{
    CompileMode, Fault, Grant, Level, Observer, Opening, Plugin, Runtime, RuntimeClock, RuntimeError,
    RuntimeSettings, SecretValue,
};
use zeroize::Zeroizing;

pub use answers::Answers;
use answers::Desk;
pub use chain::{Ended, Passage, Step};
pub use source::{Found, Input};

use super::assemble::{AssembleError, Plugins};
use super::catalog::PluginCatalog;
use super::openings::{self, Owner};

/// Lines of plugins that are kept for a rehearsal.
const LINES_MAX: usize = 1_000;

/// Where the plugins of a project are rehearsed.
pub struct Stage {
    runtime: Runtime,
    clock: Arc<StageClock>,
}

/// One project on the stage; its plugins are loaded when they are first needed.
pub struct Rehearsal<'a> {
    project: &'a Project,
    plugins: Plugins<'a>,
    clock: Arc<StageClock>,
    said: Arc<Said>,
}

impl Stage {
    /// Native code is kept where an engine keeps it, so that the next rehearsal begins at once;
    /// where nothing can be written it is made anew each time.
    pub fn new(project: &Project) -> Result<Stage, RuntimeError> {
        let clock = Arc::new(StageClock::default());
        let settings = RuntimeSettings {
            cache_dir: Some(project.data_dir().join("native-code")),
            compile: CompileMode::InProcess,
            clock: clock.clone(),
            ..RuntimeSettings::default()
        };
        let without_cache = RuntimeSettings { cache_dir: None, ..settings.clone() };
        let runtime = Runtime::new(settings).or_else(|_| Runtime::new(without_cache))?;
        Ok(Stage { runtime, clock })
    }

    /// Puts a project on the stage.
    pub fn rehearse<'a>(&'a self, project: &'a Project, catalog: &'a PluginCatalog) -> Rehearsal<'a> {
        Rehearsal {
            project,
            plugins: Plugins::new(&self.runtime, catalog),
            clock: self.clock.clone(),
            said: Arc::new(Said::default()),
        }
    }
}

impl Rehearsal<'_> {
    /// The time that plugins see from now on.
    pub fn set_clock(&mut self, now: Timestamp) {
        self.clock.now.store(now.0, Ordering::Relaxed);
    }

    /// What plugins said since this was asked last: log lines, notices, faults.
    pub fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut *self.said.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn open(
        &mut self,
        role: Role,
        owner: &Owner<'_>,
        plugin_use: &PluginUse,
        desk: Arc<Desk>,
    ) -> Result<(Plugin, Opening), AssembleError> {
        let plugin = self.plugins.load(role, plugin_use.plugin.value.as_str()).await?;
        let limits: &LimitSettings = &self.project.limits;
        let observer = self.said.clone();
        let mut opening = openings::of_use(owner, plugin_use, plugin.manifest(), limits, observer);
        opening.grants.0.values_mut().for_each(|grant| withhold(grant, &desk));
        Ok((plugin, opening))
    }
}

/// A grant under which nothing leaves the process: the plugin opens, and when it asks, the desk
/// answers or it is denied.
fn withhold(grant: &mut Grant, desk: &Arc<Desk>) {
    match grant {
        Grant::Http(http) => *grant = Grant::Rehearsed(http.clone(), desk.clone()),
        Grant::Rehearsed(..) => {}
        Grant::Tcp(tcp) => {
            // Loopback is not public, so that every connection is refused before it is made.
            "127.0.0.1".clone_into(&mut tcp.host);
            tcp.tls = None;
            tcp.credentials = None;
            tcp.addresses = AddressPolicy::Public;
        }
        Grant::Folder(folder) => folder.access = Access::Read,
        // It was opened with nothing in it.
        Grant::State(_) => {}
        // The name instead of the value: the same for everybody who runs the case, and no secret.
        Grant::Secret(secret) => {
            let name = secret.name.clone().into_bytes();
            secret.value = SecretValue::new(Zeroizing::new(name));
        }
    }
}

/// A use with the settings that a case lays over it. `transform` counts from 1; none: the sender
/// or the source.
fn with_case(
    plugin_use: &PluginUse,
    case: &CaseFile,
    destination: Option<&Name>,
    transform: Option<u32>,
) -> PluginUse {
    let mut laid_over = plugin_use.clone();
    for settings in &case.settings {
        let is_meant = settings.destination.as_ref().map(|name| &name.value) == destination
            && settings.transform == transform;
        let values = settings.values.json.as_object();
        if let (true, Some(own), Some(values)) = (is_meant, laid_over.settings.json.as_object_mut(), values) {
            own.extend(values.clone());
        }
    }
    laid_over
}

/// The time of a case. What is measured is real, so that limits hold.
#[derive(Debug)]
struct StageClock {
    now: AtomicU64,
    started: Instant,
}

impl Default for StageClock {
    fn default() -> Self {
        StageClock { now: AtomicU64::new(0), started: Instant::now() }
    }
}

impl RuntimeClock for StageClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// What plugins say beside their verdicts.
#[derive(Debug, Default)]
struct Said(Mutex<Vec<String>>);

impl Said {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < LINES_MAX {
            lines.push(line);
        }
    }
}

impl Observer for Said {
    fn log(&self, level: Level, text: &str) {
        self.push(format!("{}: {text}", level.as_str()));
    }

    fn notice(&self, code: &str, text: &str) {
        self.push(format!("notice {code}: {text}"));
    }

    fn fault(&self, fault: &Fault) {
        self.push(format!("fault: {}", fault.to_failure()));
    }
}

#[cfg(test)]
mod tests {
    use portway_net::folder::FolderGrant;
    use portway_net::http::HttpGrant;
    use portway_net::tcp::{TcpCredentials, TcpGrant};

    use super::*;

    #[test]
    fn what_is_granted_leads_nowhere() {
        let desk = Arc::new(Desk::default());
        let mut grant = Grant::Http(HttpGrant::new("https://api.example/v1".parse().unwrap()));
        withhold(&mut grant, &desk);
        assert!(matches!(grant, Grant::Rehearsed(..)), "{grant:?}");

        let mut grant = Grant::Tcp(TcpGrant {
            host: "ehr.example".into(),
            port: 2_575,
            connections_max: 1,
            connect_timeout: Duration::from_secs(5),
            addresses: AddressPolicy::Operator,
            tls: None,
            credentials: Some(TcpCredentials { user: "lab".into(), password: "s3cret".into() }),
        });
        withhold(&mut grant, &desk);
        let Grant::Tcp(tcp) = grant else { panic!("another grant") };
        assert_eq!((tcp.host.as_str(), tcp.addresses), ("127.0.0.1", AddressPolicy::Public));
        assert!(tcp.credentials.is_none());

        let mut grant = Grant::Folder(FolderGrant { path: "out".into(), access: Access::Write });
        withhold(&mut grant, &desk);
        let Grant::Folder(folder) = grant else { panic!("another grant") };
        assert_eq!(folder.access, Access::Read);
    }
}
