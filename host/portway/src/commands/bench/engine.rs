//! An engine in this process, on a project of its own in a temporary folder.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use portway_config::{Environment, Project};
use portway_engine::status::CommitStatus;
use portway_store::{Registered, Store};
use portway_store_postgres::bench::BenchDatabase;
use tempfile::TempDir;

use super::figure::{Figure, flush_ms, round};
use super::place::Place;
use crate::traffic::{GenerateProgress, GenerateReport, GenerateSettings, Stopper, generate};
use crate::wiring::{self, Background, PluginCatalog, Running};

/// A project in a folder that goes away with it.
pub struct Bench {
    pub folder: TempDir,
    pub source: SocketAddr,
    pub admin: SocketAddr,
    /// Where its messages are, where that is no file.
    pub database: Option<Arc<BenchDatabase>>,
    /// Those who send are no part of the engine.
    clients: Background,
}

impl Bench {
    /// Addresses on loopback that nobody used a moment ago.
    pub async fn new(place: &Place) -> Result<Bench> {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let (source, admin) = (bind()?, bind()?);
        let folder = tempfile::Builder::new().prefix("portway-bench-").tempdir_in(".")?;
        std::fs::create_dir_all(folder.path().join("interfaces"))?;
        std::fs::create_dir_all(folder.path().join("out"))?;
        let clients = Background::start("client", 1)?;
        let (source, admin) = (source.local_addr()?, admin.local_addr()?);
        let database = place.database().await?;
        let bench = Bench { folder, source, admin, database, clients };
        bench.write_more("")?;
        Ok(bench)
    }

    /// The settings of the project as a whole, with more tables behind them.
    pub fn write_more(&self, more: &str) -> Result<()> {
        let mut text = format!("[admin]\nlisten = \"{}\"\n", self.admin);
        if let Some(database) = &self.database {
            text.push_str(&format!("[store]\nurl = {:?}\n", database.url()));
        }
        text.push_str(more);
        self.write("portway.toml", &text)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, file: &str, text: &str) -> Result<()> {
        std::fs::write(self.path().join(file), text).with_context(|| file.to_owned())
    }

    /// The interface `bench`: MLLP in, so many file destinations in append mode.
    pub fn write_interface(&self, destinations: usize, order: &str) -> Result<()> {
        let mut text = format!("[source]\nplugin = \"mllp\"\nlisten = \"{}\"\n", self.source);
        text.push_str("connections_max = 1000\nsettings = { key = \"PID-3.1\" }\n");
        for number in 0..destinations {
            text.push_str(&format!(
                "[[destination]]\nname = \"file-{number}\"\norder = \"{order}\"\n[destination.sender]\n\
                 plugin = \"file\"\nsettings = {{ mode = \"append\", file = \"{number}.hl7\" }}\n\
                 grants.folder = {{ type = \"folder\", path = \"out\" }}\n"
            ));
        }
        self.write("interfaces/bench.toml", &text)
    }

    pub fn project(&self) -> Result<(Project, PluginCatalog)> {
        let mut draft = portway_config::read(self.path(), &Environment::of_process());
        let catalog = PluginCatalog::of(draft.project().context("the project cannot be read")?);
        draft.check_plugins(&catalog);
        let project = draft.finish().map_err(|problems| anyhow!("{problems}"))?;
        Ok((project, catalog))
    }

    /// The store of the project, before or after an engine uses it.
    pub async fn open_store(&self) -> Result<(Arc<dyn Store>, Registered)> {
        open_store(&self.project()?.0).await
    }

    /// What was filled in is cleaned up behind now, and not while something is measured.
    pub async fn settle(&self) -> Result<()> {
        match &self.database {
            Some(database) => Ok(database.settle().await?),
            None => Ok(()),
        }
    }

    /// Where clients run.
    pub fn clients(&self) -> &tokio::runtime::Handle {
        &self.clients.handle
    }

    pub async fn start(&self) -> Result<Running> {
        let (project, catalog) = self.project()?;
        Ok(Running::start(project, &catalog).await?)
    }

    pub fn flush_ms(&self) -> Result<f64> {
        Ok(flush_ms(self.path())?)
    }

    /// Sends and waits for every answer.
    pub async fn generate(&self, settings: GenerateSettings) -> Result<GenerateReport> {
        let (_stopper, stop) = Stopper::new();
        let sending = generate(settings, Arc::new(GenerateProgress::default()), stop);
        let report = self.clients.handle.spawn(sending).await??;
        if !report.is_good() {
            bail!(
                "{} messages were refused, {} not acknowledged",
                report.refused,
                report.unacknowledged.len()
            );
        }
        Ok(report)
    }
}

/// The store of a project with the numbers of what the project has.
pub async fn open_store(project: &Project) -> Result<(Arc<dyn Store>, Registered)> {
    std::fs::create_dir_all(project.data_dir())?;
    let store = wiring::open_store(project).await?;
    let registered = store.register(&wiring::topology(project)).await?;
    Ok((store, registered))
}

/// Waits until nothing waits in the store; for at most `patience`.
pub async fn drained(running: &Running, patience: Duration) -> Result<()> {
    let end = Instant::now() + patience;
    while !running.store.destinations_with_work().await?.is_empty() {
        if Instant::now() > end {
            bail!("not drained within {patience:?}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// What commits cost since an earlier picture.
pub fn with_commits(mut figure: Figure, before: &CommitStatus, after: &CommitStatus) -> Figure {
    let commits = after.commits.saturating_sub(before.commits);
    let busy = after.busy.saturating_sub(before.busy).as_secs_f64();
    let elapsed = after.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    figure.commits = Some(commits);
    figure.commit_ms = Some(round(busy * 1_000.0 / (commits.max(1) as f64)));
    figure.commit_busy = Some(round(busy / elapsed.max(1e-9)));
    figure
}
