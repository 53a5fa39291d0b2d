//! The generator: sends messages over MLLP and waits for each acknowledgement.
//!
//! Every key belongs to one connection, so that its order is defined: a message is sent after
//! the one before it was acknowledged. What was not acknowledged is sent again, on a new
//! connection if the old one broke.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use portway_model::code;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::latency::{Latency, LatencyReport};
use super::ledger::Ledger;
use super::message::{Identity, Template, new_run};
use super::pace::Pace;
use super::send::Sending;
use super::stop::{Stop, Stopper};

/// What to send, and where.
#[derive(Clone, Debug)]
pub struct GenerateSettings {
    /// `host:port`
    pub to: String,
    pub connections: usize,
    /// At least as many as connections.
    pub keys: usize,
    /// Before every key; must begin with [`super::message::KEY_PREFIX`].
    pub run: String,
    /// Messages over all connections; none: until the time is over or it is stopped.
    pub count: Option<u64>,
    pub duration: Option<Duration>,
    /// Messages a second over all connections; none: as fast as answers come.
    pub rate: Option<f64>,
    /// Bytes of a message, about.
    pub size: usize,
    /// How long an acknowledgement is waited for.
    pub answer_timeout: Duration,
    /// Where acknowledged messages are written down.
    pub ledger: Option<PathBuf>,
}

impl GenerateSettings {
    /// One connection, ten keys, as fast as answers come.
    pub fn to(to: impl Into<String>) -> Self {
        GenerateSettings {
            to: to.into(),
            connections: 1,
            keys: 10,
            run: new_run(),
            count: None,
            duration: None,
            rate: None,
            size: super::message::SIZE,
            answer_timeout: Duration::from_secs(10),
            ledger: None,
        }
    }
}

/// Figures that can be read while it runs.
#[derive(Debug, Default)]
pub struct GenerateProgress {
    pub(crate) acknowledged: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) foreign: AtomicU64,
    pub(crate) resent: AtomicU64,
    pub(crate) reconnects: AtomicU64,
}

impl GenerateProgress {
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Everything that was not an acknowledgement at once.
    pub fn troubles(&self) -> u64 {
        [&self.refused, &self.rejected, &self.foreign, &self.reconnects]
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GenerateReport {
    /// The prefix of the keys.
    pub run: String,
    pub acknowledged: u64,
    pub seconds: f64,
    pub per_second: f64,
    /// Answered with AE or CE, and sent again.
    pub refused: u64,
    /// Answered with AR or CR, and given up.
    pub rejected: u64,
    /// Answers to something that was not asked; the connection was closed.
    pub foreign: u64,
    /// Sent more than once.
    pub resent: u64,
    pub reconnects: u64,
    /// Sent, and without an answer at the end.
    pub unacknowledged: Vec<String>,
    /// From the first byte sent to the answer.
    pub latency: LatencyReport,
}

impl GenerateReport {
    /// Everything that was sent was acknowledged.
    pub fn is_good(&self) -> bool {
        self.rejected == 0 && self.foreign == 0 && self.unacknowledged.is_empty()
    }
}

/// Why it could not begin, or go on.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    #[error("{keys} keys are fewer than {connections} connections: each connection needs one of its own")]
    TooFewKeys { keys: usize, connections: usize },
    #[error("cannot write the ledger `{path}`")]
    Ledger {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl GenerateError {
    /// Its page says more.
    pub fn code(&self) -> &'static str {
        match self {
            GenerateError::TooFewKeys { .. } => code::TOO_FEW_KEYS,
            GenerateError::Ledger { .. } => code::LEDGER_NOT_WRITTEN,
        }
    }
}

/// What the connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: GenerateSettings,
    pub(crate) template: Template,
    pub(crate) pace: Pace,
    pub(crate) progress: Arc<GenerateProgress>,
    pub(crate) ledger: Option<Ledger>,
    /// Messages that are still to be begun.
    remaining: AtomicU64,
}

impl Shared {
    /// Whether one more message may be begun.
    pub(crate) fn claim(&self) -> bool {
        self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// Sends until the count is reached, the time is over, or it is stopped.
pub async fn generate(
    settings: GenerateSettings,
    progress: Arc<GenerateProgress>,
    mut stop: Stop,
) -> Result<GenerateReport, GenerateError> {
    let (connections, keys) = (settings.connections.max(1), settings.keys);
    if keys < connections {
        return Err(GenerateError::TooFewKeys { keys, connections });
    }
    let open = |path: &PathBuf| {
        Ledger::append(path).map_err(|source| GenerateError::Ledger { path: path.clone(), source })
    };
    let ledger = settings.ledger.as_ref().map(open).transpose()?;
    let duration = settings.duration;
    let shared = Arc::new(Shared {
        template: Template::new(settings.size),
        pace: Pace::new(settings.rate),
        progress,
        ledger,
        remaining: AtomicU64::new(settings.count.unwrap_or(u64::MAX)),
        settings,
    });
    let start = Instant::now();
    let (stopper, inner) = Stopper::new();
    let mut tasks = JoinSet::new();
    for index in 0..connections {
        tasks.spawn(Sending::new(shared.clone(), index).run(inner.clone()));
    }
    let mut outcome = Outcome::default();
    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                Some(Ok(ended)) => outcome.add(ended?),
                Some(Err(_)) => {}
                None => break,
            },
            () = stop.asked(), if !inner.is_asked() => stopper.stop(),
            () = after(start, duration), if !inner.is_asked() => stopper.stop(),
        }
    }
    Ok(outcome.report(&shared, start.elapsed()))
}

async fn after(start: Instant, duration: Option<Duration>) {
    match duration.and_then(|duration| start.checked_add(duration)) {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// What one connection, or all of them, came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) latency: Latency,
    pub(crate) unacknowledged: Vec<Identity>,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.latency.add(&other.latency);
        self.unacknowledged.extend(other.unacknowledged);
    }

    fn report(&self, shared: &Shared, took: Duration) -> GenerateReport {
        let progress = &shared.progress;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (acknowledged, seconds) = (load(&progress.acknowledged), took.as_secs_f64());
        let name = |identity: &Identity| format!("{}-{}", identity.key, identity.sequence);
        GenerateReport {
            run: shared.settings.run.clone(),
            acknowledged,
            seconds,
            per_second: if seconds > 0.0 { acknowledged as f64 / seconds } else { 0.0 },
            refused: load(&progress.refused),
            rejected: load(&progress.rejected),
            foreign: load(&progress.foreign),
            resent: load(&progress.resent),
            reconnects: load(&progress.reconnects),
            unacknowledged: self.unacknowledged.iter().map(name).collect(),
            latency: self.latency.report(),
        }
    }
}
