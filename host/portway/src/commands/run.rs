//! `portway run`: a project's engine, until it is told to stop.

use std::io::IsTerminal;

use anyhow::Context;
use portway_config::Environment;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::open;
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::wiring::Running;

/// Exit code of a process that a signal ended, as shells write it.
const INTERRUPTED: i32 = 130;

/// Runs the engine of a project until it is stopped.
///
/// The first SIGINT or SIGTERM stops it in order: nothing new is taken, what is in hand is
/// finished. The second one ends it at once; nothing that was acknowledged is lost.
/// The environment variable `PORTWAY_LOG` says how much is logged: `info` if nothing is said,
/// `debug`, or more for one part, as in `info,portway_engine=debug`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// Write the log as JSON, one object a line.
    #[arg(long)]
    log_json: bool,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let (project, catalog) = match open::open(&args.project, output)? {
        Ok(opened) => opened,
        Err(exit) => return Ok(exit),
    };
    start_log(args.log_json);
    let signals = Signals::new().context("cannot hear signals")?;
    let running = Running::start(project, &catalog).await?;
    tracing::info!(admin = %running.admin_address(), "running");
    until_stopped(running, signals).await
}

/// The two signals that stop a process in order.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn until_stopped(mut running: Running, mut signals: Signals) -> anyhow::Result<Exit> {
    tokio::select! {
        () = signals.next() => {}
        error = running.ended() => return Err(error.into()),
    }
    tracing::info!("stopping; a second signal ends at once");
    tokio::select! {
        stopped = running.stop() => stopped?,
        () = signals.next() => {
            tracing::warn!("ended at once");
            // Without waiting for anything: threads that hang in a file system must not keep it.
            std::process::exit(INTERRUPTED);
        }
    }
    tracing::info!("stopped");
    Ok(Exit::Done)
}

fn start_log(json: bool) {
    let environment = Environment::of_process();
    let wanted = environment.get("PORTWAY_LOG").unwrap_or("info");
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(wanted);
    let colours = std::io::stderr().is_terminal();
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    // A log that was started before stays.
    let _ = match json {
        true => builder.json().try_init(),
        false => builder.try_init(),
    };
}
