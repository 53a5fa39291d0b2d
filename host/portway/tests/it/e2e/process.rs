//! The `portway` binary as a child process.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use portway::client::Client;
use portway_admin::views::{self, DestinationState, EngineState, Status};
use rustix::process::{Pid, Signal, kill_process};

use super::project::Project;
use super::until;

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    fn of(output: Output) -> Finished {
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Project {
    /// The program on this project.
    fn program(&self, line: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
        command.args(line).arg("--project").arg(self.path()).stdin(Stdio::null());
        command.env("PORTWAY_LOG", "info").env("USER", "tester").env("TMPDIR", self.temporary());
        command
    }

    /// Runs a command to its end.
    pub async fn portway(&self, line: &[&str]) -> Finished {
        let mut command = self.program(line);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        Finished::of(output)
    }

    /// The same, with something on its stdin.
    pub async fn portway_with_input(&self, line: &[&str], input: &str) -> Finished {
        let mut command = self.program(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        let ended = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            // It may refuse its arguments before it reads.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            child.wait_with_output().unwrap()
        });
        Finished::of(ended.await.unwrap())
    }

    /// Starts the engine and waits until it takes messages.
    pub async fn run(&self) -> Engine {
        self.run_line(&["run"]).await
    }

    /// The same, with a command line of its own.
    pub async fn run_line(&self, line: &[&str]) -> Engine {
        let mut engine = self.start_by(line, |engine| engine);
        engine.wait_ready(self.path()).await;
        engine
    }

    /// Starts a command line of the engine by way of what is made of it.
    pub fn start_by(&self, line: &[&str], make: impl FnOnce(Command) -> Command) -> Engine {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let log = self.path().join(format!("log-{}.txt", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let file = File::create(&log).unwrap();
        let mut command = make(self.program(line));
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Engine { child, log, project: self.path().to_owned() }
    }
}

/// A running engine; killed when dropped.
pub struct Engine {
    child: Child,
    log: PathBuf,
    project: PathBuf,
}

impl Engine {
    pub async fn wait_ready(&mut self, project: &Path) {
        let id = self.child.id();
        until("the engine is ready", async || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the engine ended with {status}:\n{}", self.log());
            }
            let status = Client::of_project(project).ok()?.status().await.ok()?;
            // The file that says where to ask may be the one of an engine before.
            let is_ours = status.engine.process_id == id && status.engine.state == EngineState::Running;
            is_ours.then_some(())
        })
        .await;
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it says something.
    pub async fn until_log(&mut self, text: &str) {
        self.until_logged(text, 1).await;
    }

    /// Waits until it says something so many times.
    pub async fn until_logged(&mut self, text: &str, count: usize) {
        let said = until(text, async || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the engine ended with {status}:\n{}", self.log());
            }
            (self.log().matches(text).count() >= count).then_some(())
        });
        // A failure shows what it says instead.
        if futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(said)).await.is_err() {
            panic!("it does not say `{text}`:\n{}", tail(&self.log()));
        }
    }

    /// A line of its standard input, where that is a pipe.
    pub fn type_line(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        Write::write_all(stdin, format!("{line}\n").as_bytes()).unwrap();
    }

    pub async fn status(&mut self) -> Status {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("the engine ended with {status}:\n{}", self.log());
        }
        Client::of_project(&self.project).unwrap().status().await.unwrap()
    }

    /// Asks until the status is as wanted; shows it when it never is.
    pub async fn until_status<T>(&mut self, what: &str, is_so: impl Fn(&Status) -> Option<T>) -> T {
        let mut last = None;
        let asked = until(what, async || {
            let status = self.status().await;
            let answer = is_so(&status);
            last = Some(status);
            answer
        });
        // A failure shows what the engine said last.
        match futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(asked)).await {
            Ok(answer) => answer,
            Err(_) => panic!("not so: {what}: {last:#?}\n{}", tail(&self.log())),
        }
    }

    pub async fn destination(&mut self, interface: &str, name: &str) -> views::Destination {
        find(&self.status().await, interface, name).clone()
    }

    /// Waits until a destination has nothing to do. Its counts may follow a moment later.
    pub async fn drained(&mut self, interface: &str, name: &str) {
        self.until_destination(interface, name, "it is drained", |found| found.waiting == 0).await;
    }

    /// Waits until a destination has sent so many since the start and has nothing more to do.
    pub async fn sent(&mut self, interface: &str, name: &str, count: u64) -> views::Destination {
        let is_done = |found: &views::Destination| found.waiting == 0 && found.counts.sent >= count;
        let found = self.until_destination(interface, name, &format!("{count} are sent"), is_done).await;
        assert_eq!(found.counts.sent, count, "{found:?}");
        found
    }

    pub async fn until_destination(
        &mut self,
        interface: &str,
        name: &str,
        what: &str,
        is_so: impl Fn(&views::Destination) -> bool,
    ) -> views::Destination {
        self.until_status(&format!("{interface} → {name}: {what}"), |status| {
            // While the store is away what waits is told as it was.
            let is_known = status.store.away.is_none();
            let found = find(status, interface, name);
            (is_known && is_so(found)).then(|| found.clone())
        })
        .await
    }

    pub async fn until_stopped(&mut self, interface: &str, name: &str) -> views::Destination {
        let is_stopped = |found: &views::Destination| found.state == DestinationState::Stopped;
        self.until_destination(interface, name, "it is stopped", is_stopped).await
    }

    pub async fn address(&mut self, interface: &str) -> SocketAddr {
        let status = self.status().await;
        let found = status.interfaces.iter().find(|found| found.name == interface).unwrap();
        found.listener.as_ref().unwrap().address.parse().unwrap()
    }

    /// Of memory, at its highest.
    pub fn resident_bytes_max(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(id, signal).unwrap();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM and an orderly end.
    pub async fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert!(status.success(), "{status}:\n{}", self.log());
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let log = self.log.clone();
        let ended = until("the engine has ended", async || self.child.try_wait().unwrap());
        match futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(ended)).await {
            Ok(status) => status,
            Err(_) => panic!("it did not end:\n{}", tail(&fs::read_to_string(log).unwrap_or_default())),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn find<'s>(status: &'s Status, interface: &str, name: &str) -> &'s views::Destination {
    let found = status.interfaces.iter().find(|found| found.name == interface).unwrap();
    found.destinations.iter().find(|found| found.name == name).unwrap()
}

/// How often something was refused, by the reason `status` shows.
pub fn refused(status: &Status, interface: &str, reason: &str) -> u64 {
    let found = status.interfaces.iter().find(|found| found.name == interface).unwrap();
    found.refusals.iter().find(|count| count.reason == reason).map_or(0, |count| count.count)
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
