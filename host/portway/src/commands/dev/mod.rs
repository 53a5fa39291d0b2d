//! `portway dev`: a project's engine that takes in what is saved, as it is saved.

mod ask;
mod build;
mod compose;
mod log;
mod session;
mod show;
mod watch;

use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use portway_config::Environment;
use tempfile::TempDir;

use self::ask::OnRemoved;
use self::session::{Ended, Session};
use super::run::{INTERRUPTED, Signals};
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};

/// Runs a project and takes in what changes while it runs.
///
/// A saved interface file is checked; if it is well, that interface is added, changed or removed, and
/// the others go on with their connections and deliveries. If it has problems, they are shown with file
/// and line, and the interface goes on as it was. The same with plugins by path: a new component takes
/// over between two runs, and where `plugins.NAME` says how it is built, a change of its sources builds it.
/// Log lines and faults of plugins are shown as they come. Messages are kept in a temporary folder
/// that is removed at the end, or in the one that `--store` names. Commands such as `portway status`
/// reach the engine as they reach that of `portway run`.
/// The environment variable `PORTWAY_LOG` says how much is logged. SIGINT or SIGTERM stops it in
/// order; the second one ends it at once.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The project folder, instead of `--project`.
    #[arg(value_name = "PROJECT")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    project: ProjectArgs,
    /// Keep messages in this folder; it is not removed.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// What becomes of deliveries that wait for a destination that is removed: `ask` if stdin is a terminal, else `keep`
    #[arg(long, value_name = "WHAT", value_enum)]
    on_removed: Option<OnRemoved>,
}

/// What does not change while it runs.
struct Setting {
    project: ProjectArgs,
    store: PathBuf,
    /// The store's folder goes with the process.
    is_temporary: bool,
    on_removed: OnRemoved,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let Args { folder, mut project, store, on_removed } = args;
    if let Some(folder) = folder {
        project.project = folder;
    }
    let environment = Environment::of_process();
    log::start(&environment);
    let mut signals = Signals::new().context("cannot hear signals")?;
    let temporary = match &store {
        Some(_) => None,
        None => Some(temporary_folder().context("cannot make a temporary folder for the store")?),
    };
    let asks = if std::io::stdin().is_terminal() { OnRemoved::Ask } else { OnRemoved::Keep };
    let setting = Setting {
        project,
        is_temporary: temporary.is_some(),
        store: store.or_else(|| temporary.as_ref().map(|dir| dir.path().to_owned())).unwrap_or_default(),
        on_removed: on_removed.unwrap_or(asks),
    };
    let mut session = Session::new(setting, output);
    let mut running = None;
    let ended = tokio::select! {
        ended = session.run(&mut running) => ended?,
        () = signals.next() => Ended::Asked,
    };
    if let Ended::Drained = ended {
        session.note("drained");
    }
    session.note("stopping; a second signal ends at once");
    // With it builds that still run.
    drop(session);
    let Some(running) = running else { return Ok(Exit::Done) };
    tokio::select! {
        stopped = running.stop() => stopped?,
        () = signals.next() => {
            // The process ends without taking anything apart.
            drop(temporary);
            std::process::exit(INTERRUPTED);
        }
    }
    Ok(Exit::Done)
}

fn temporary_folder() -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("portway-dev-").tempdir()
}

/// A folder that only its owner can look into, made if it is not there.
fn make_folder(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
