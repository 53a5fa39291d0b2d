//! `portway run`: a project's engine, until it is told to stop.

use std::io::IsTerminal;

use anyhow::Context;
use portway_admin::Control;
use portway_admin::views::EngineState;
use portway_config::Environment;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::open;
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::service::ServiceNotifier;
use crate::wiring::{PassedSockets, Running, StartOptions};

/// Exit code of a process that a signal ended, as shells write it.
pub(super) const INTERRUPTED: i32 = 130;

/// Runs the engine of a project until it is stopped.
///
/// The first SIGINT or SIGTERM stops it in order: nothing new is taken, what is in hand is
/// finished. The second one ends it at once; nothing that was acknowledged is lost.
/// The environment variable `PORTWAY_LOG` says how much is logged: `info` if nothing is said,
/// `debug`, or more for one part, as in `info,portway_engine=debug`. The log goes to stderr; a line of
/// JSON has `timestamp`, `level`, `target` and `message`, and the facts of its event beside them.
/// Under systemd it says when it is ready, stops and lives, and listens on sockets that were passed.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// How the log is written: for people, or as JSON with one object a line.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Stands by while another engine on the same database delivers: listens and stores from the first
    /// second, and delivers as soon as the other stops or dies. Without it such a start is refused.
    #[arg(long)]
    standby: bool,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let environment = Environment::of_process();
    let (project, catalog) = match open::open(&args.project, output)? {
        Ok(opened) => opened,
        Err(exit) => return Ok(exit),
    };
    start_log(&environment, args.log_format);
    let signals = Signals::new().context("cannot hear signals")?;
    let manager = ServiceNotifier::of_process(&environment);
    let sockets = PassedSockets::of_process(&environment);
    let options = StartOptions { sockets, standby: args.standby, ..StartOptions::default() };
    let running = Running::start_with(project, &catalog, options).await?;
    tracing::info!(admin = %running.admin_address(), "running");
    manager.ready(&format!("running, admin API on {}", running.admin_address()));
    until_stopped(running, signals, &manager).await
}

/// The two signals that stop a process in order.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn until_stopped(
    mut running: Running,
    mut signals: Signals,
    manager: &ServiceNotifier,
) -> anyhow::Result<Exit> {
    let control = running.control.clone();
    let engine = running.engine.clone();
    tokio::select! {
        () = signals.next() => {}
        () = engine.on_drained() => tracing::info!("drained"),
        error = running.ended() => return Err(error.into()),
        () = tell_alive(&*control, manager) => {}
    }
    tracing::info!("stopping; a second signal ends at once");
    manager.stopping();
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

/// Tells the service manager that the engine lives, as often as it wants to know and as long as the
/// engine itself answers. Never ends.
async fn tell_alive(control: &impl Control, manager: &ServiceNotifier) {
    let Some(every) = manager.alive_every() else { return std::future::pending().await };
    loop {
        match control.health().await.state {
            EngineState::Running | EngineState::Standby => manager.alive(),
            EngineState::Starting | EngineState::Stopping => {}
        }
        tokio::time::sleep(every).await;
    }
}

fn start_log(environment: &Environment, format: LogFormat) {
    let wanted = environment.get("PORTWAY_LOG").unwrap_or("info");
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(wanted);
    let colours = std::io::stderr().is_terminal();
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    // A log that was started before stays.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
