//! `cargo xtask demo`: the example project with real traffic, on ports and in folders of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{Kept, run, wait_until};
use crate::project::{self, Binary, Ports};

/// Messages of `--once`, and the connections they come over.
const MESSAGES: u64 = 1_000;
const CONNECTIONS: u64 = 4;
/// Time for all of them to arrive everywhere.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Until Ctrl-C, with a line a second.
    Live,
    /// A fixed number of messages, then a table.
    Once,
}

/// Builds what is needed, then runs engine, receiver and generator.
pub fn demo(root: &Path, mode: Mode, binary: Binary) -> Result<()> {
    let portway = binary.path(root)?;
    let ports = Ports::free()?;
    let folder = project::lab_results(root, "demo", &ports)?;

    let _sink =
        Kept::spawn("the receiver", quiet(&portway, &folder).args(["sink", "--listen", &ports.sink]))?;
    let mut engine = Kept::spawn("the engine", quiet(&portway, &folder).arg("run"))?;
    let ready = wait_until(PATIENCE, || {
        engine.still_runs()?;
        Ok(status(&portway, &folder).is_some())
    })?;
    if !ready {
        bail!("the engine was not ready within {PATIENCE:?}; its words are in {}", log_of(&folder).display());
    }
    println!("engine: {} -> {} and {}", ports.mllp, ports.sink, folder.join("out").display());
    match mode {
        Mode::Live => live(&portway, &folder, &ports),
        Mode::Once => once(&portway, &folder, &ports, &mut engine),
    }
}

/// Sends until Ctrl-C, which ends every process of the demo.
fn live(portway: &Path, folder: &Path, ports: &Ports) -> Result<()> {
    println!("20 messages a second over {CONNECTIONS} connections; Ctrl-C stops");
    let connections = CONNECTIONS.to_string();
    let args = ["gen", "--to", &ports.mllp, "--rate", "20", "--connections", &connections, "--keys", "20"];
    let mut generator = Kept::spawn("the generator", quiet(portway, folder).args(args))?;
    let mut last = String::new();
    loop {
        generator.still_runs()?;
        let Some(status) = status(portway, folder) else {
            bail!("the engine does not answer; its words are in {}", log_of(folder).display());
        };
        let line = live_line(&status);
        if line != last {
            println!("{line}");
            last = line;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn live_line(status: &Value) -> String {
    let mut line = format!("received {:>6}", status["intake"]["stored"]);
    for destination in destinations(status) {
        let name = destination["name"].as_str().unwrap_or_default();
        let (sent, waiting) = (&destination["counts"]["sent"], &destination["waiting"]);
        line.push_str(&format!("   {name}: sent {sent:>6}, waiting {waiting}"));
        if let Some(why) = destination["why"]["text"].as_str() {
            line.push_str(&format!(" ({why})"));
        }
    }
    line
}

fn once(portway: &Path, folder: &Path, ports: &Ports, engine: &mut Kept) -> Result<()> {
    let (count, connections) = (MESSAGES.to_string(), CONNECTIONS.to_string());
    let args = ["gen", "--to", &ports.mllp, "--count", &count, "--connections", &connections, "--keys", "50"];
    run(quiet(portway, folder).args(args))?;
    let mut newest = Value::Null;
    let complete = wait_until(PATIENCE, || {
        engine.still_runs()?;
        if let Some(status) = status(portway, folder) {
            newest = status;
        }
        Ok(destinations(&newest).all(|destination| destination["counts"]["sent"] == MESSAGES))
    })?;
    print_table(&newest);
    engine.stop(Duration::from_secs(30))?;
    let lines =
        std::fs::read_to_string(folder.join("out/results.ndjson")).unwrap_or_default().lines().count();
    if !complete || lines as u64 != MESSAGES {
        bail!("incomplete: {MESSAGES} were acknowledged, {lines} lines are in the file; see the table");
    }
    Ok(())
}

fn print_table(status: &Value) {
    println!(
        "{:<12} {:>9} {:>10} {:>8} {:>12} {:>12}",
        "", "received", "delivered", "waiting", "median ms", "p99 ms"
    );
    println!("{:<12} {:>9}", "lab", status["intake"]["stored"].to_string());
    for destination in destinations(status) {
        let latency = &destination["latency"];
        println!(
            "{:<12} {:>9} {:>10} {:>8} {:>12} {:>12}",
            destination["name"].as_str().unwrap_or_default(),
            "",
            destination["counts"]["sent"].to_string(),
            destination["waiting"].to_string(),
            latency["p50_ms"].to_string(),
            latency["p99_ms"].to_string(),
        );
    }
}

fn destinations(status: &Value) -> impl Iterator<Item = &Value> {
    let interfaces = status["interfaces"].as_array().map_or(&[][..], Vec::as_slice);
    interfaces.iter().flat_map(|interface| interface["destinations"].as_array().into_iter().flatten())
}

/// What the engine says of itself; none while it does not answer.
pub fn status(portway: &Path, folder: &Path) -> Option<Value> {
    let mut command = Command::new(portway);
    command.args(["status", "--json", "--project"]).arg(folder);
    let output = command.stderr(Stdio::null()).output().ok()?;
    let is_answer = output.status.success();
    is_answer.then(|| serde_json::from_slice(&output.stdout).ok()).flatten()
}

/// A command of the binary in the project, its words in a file beside it.
fn quiet(portway: &Path, folder: &Path) -> Command {
    let mut command = Command::new(portway);
    command.current_dir(folder);
    if let Ok((out, error)) = log_files(folder) {
        command.stdout(out).stderr(error);
    }
    command
}

fn log_files(folder: &Path) -> Result<(std::fs::File, std::fs::File)> {
    let file =
        std::fs::File::options().create(true).append(true).open(log_of(folder)).context("the demo's log")?;
    Ok((file.try_clone()?, file))
}

fn log_of(folder: &Path) -> PathBuf {
    folder.join("demo.log")
}
