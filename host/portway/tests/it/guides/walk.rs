//! Goes through a guide as a reader would: writes its files, gives its commands, compares what
//! they print.
//!
//! A command that does not end by itself (`run`, `dev`, `sink`) goes on behind the others. Any
//! other that fails, or prints something else, is given again for a while, since what it looks
//! at may take a moment.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::page::{Step, What};
use super::ports::Ports;
use super::{NotRun, merge};
use crate::e2e::project::share_native_code;

/// How long what takes a moment may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one that ends by itself may take, in seconds.
const COMMAND_SECONDS: &str = "120";
/// Where `gen` sends and `sink` listens if nothing is said.
const GEN_PORT: u16 = 2575;
const SINK_PORT: u16 = 8080;

/// One guide on its way.
pub struct Walk<'g> {
    guide: &'g str,
    dir: TempDir,
    /// A user's own folder, which is not in the project.
    home: TempDir,
    ports: Ports,
    /// `cd` and `export` lines: they hold for all commands that follow.
    so_far: String,
    last: Option<String>,
    engine: Option<Behind>,
    sink: Option<Behind>,
    /// How long a command may go on failing.
    pub patience: Duration,
    /// What was left out, as places in the list of what is not run.
    pub left_out: BTreeSet<usize>,
}

/// A command that goes on behind the others; killed when dropped.
struct Behind {
    child: Child,
    log: PathBuf,
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'g> Walk<'g> {
    /// In a folder with the `portway.toml` that guides begin with.
    pub fn new(guide: &'g str, portway_toml: &str) -> Walk<'g> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("portway.toml"), portway_toml).unwrap();
        Walk {
            guide,
            dir,
            home: tempfile::tempdir().unwrap(),
            ports: Ports::default(),
            so_far: String::new(),
            last: None,
            engine: None,
            sink: None,
            patience: PATIENCE,
            left_out: BTreeSet::new(),
        }
    }

    /// Takes all steps.
    pub fn all(&mut self, steps: &[Step], not_run: &[NotRun]) -> Result<(), String> {
        for step in steps {
            self.step(&step.what, not_run)
                .map_err(|error| format!("{}:{}: {error}", self.guide, step.line))?;
        }
        self.end_sink().map_err(|error| format!("{}: at its end: {error}", self.guide))
    }

    fn step(&mut self, what: &What, not_run: &[NotRun]) -> Result<(), String> {
        match what {
            What::File { path, text } => self.write(path, text.clone()),
            What::More { path, text } => {
                let there = fs::read_to_string(self.here()?.join(path))
                    .map_err(|error| format!("nothing can be added to `{path}`: {error}"))?;
                self.write(path, merge::merged(&there, text)?)
            }
            What::Fragment(text) => {
                text.parse::<toml::Table>().map(|_| ()).map_err(|error| format!("it is no TOML: {error}"))
            }
            What::Command(command) => {
                let guide = self.guide;
                let is_meant = |one: &NotRun| one.guide == guide && command.starts_with(one.command);
                if let Some(at) = not_run.iter().position(is_meant) {
                    self.left_out.insert(at);
                    return Ok(());
                }
                self.command(command)
            }
            What::Output(wanted) => self.output(wanted),
        }
    }

    fn write(&mut self, path: &str, text: String) -> Result<(), String> {
        let path = self.here()?.join(path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        made.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    fn command(&mut self, command: &str) -> Result<(), String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let command = self.ports.replace(command);
        self.last = None;
        match words.as_slice() {
            ["cd" | "export", ..] => {
                self.so_far.push_str(&format!("{command}\n"));
                self.here().map(|_| ())
            }
            ["portway", "run" | "dev", ..] => self.start_engine(&command),
            ["portway", "sink", more @ ..] if !more.contains(&"--file") => {
                self.end_sink()?;
                let listen = format!(" --listen 127.0.0.1:{}", self.ports.of(SINK_PORT));
                let listen = if more.contains(&"--listen") { String::new() } else { listen };
                self.sink = Some(self.behind(&with(&command, &listen))?);
                Ok(())
            }
            ["portway", "gen", more @ ..] if !more.contains(&"--to") => {
                let to = format!(" --to 127.0.0.1:{}", self.ports.of(GEN_PORT));
                self.finish(with(&command, &to))
            }
            _ => self.finish(command),
        }
    }

    fn finish(&mut self, command: String) -> Result<(), String> {
        self.until_good(&command, |_| Ok(()))?;
        self.last = Some(command);
        Ok(())
    }

    /// What the last command prints. Numbers may be others; `…` stands for anything.
    fn output(&mut self, wanted: &str) -> Result<(), String> {
        let command = self.last.clone().ok_or("no command before it prints anything")?;
        let wanted: Vec<String> = wanted.lines().map(general).filter(|line| !line.is_empty()).collect();
        self.until_good(&command, |printed| {
            let mut lines = printed.lines().map(general);
            match wanted.iter().find(|wanted| !lines.any(|line| fits(wanted, &line))) {
                Some(missing) => Err(format!("`{missing}` is not printed by `{command}`:\n{printed}")),
                None => Ok(()),
            }
        })
    }

    /// Gives a command until it succeeds and prints what it should.
    fn until_good(&self, command: &str, is_good: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
        let end = Instant::now() + self.patience;
        loop {
            let (succeeded, printed) = self.bash(command)?;
            let result = match succeeded {
                true => is_good(&printed),
                false => Err(format!("`{command}` fails:\n{printed}")),
            };
            match result {
                Ok(()) => return Ok(()),
                Err(error) if end <= Instant::now() => return Err(format!("{error}\n{}", self.engine_log())),
                Err(_) => before_the_next_look(),
            }
        }
    }

    fn start_engine(&mut self, command: &str) -> Result<(), String> {
        if let Some(mut engine) = self.engine.take() {
            ask_to_end(&engine.child);
            ended(&mut engine, "the engine before")?;
        }
        self.free_ports(self.dir.path().to_owned())?;
        self.engine = Some(self.behind(command)?);
        let asked = command.replacen(" run", " status", 1).replacen(" dev", " status", 1);
        self.until_good(&format!("{} --json", without_comment(&asked)), |printed| {
            let is_running = printed.contains("\"state\":\"running\"");
            is_running.then_some(()).ok_or_else(|| format!("the engine does not run: {printed}"))
        })
    }

    /// A sink ends by itself, when it has all or its time is over; what it saw has to be good.
    fn end_sink(&mut self) -> Result<(), String> {
        match self.sink.take() {
            Some(mut sink) => ended(&mut sink, "`portway sink`"),
            None => Ok(()),
        }
    }

    /// Files that the program made name the usual ports, too.
    fn free_ports(&mut self, folder: PathBuf) -> Result<(), String> {
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                self.free_ports(path)?;
            } else if path.extension().is_some_and(|ending| ending == "toml") {
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                let freed = self.ports.replace(&text);
                if freed != text {
                    fs::write(&path, freed).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// The folder that commands are given in.
    fn here(&self) -> Result<PathBuf, String> {
        let script = format!("{}pwd", self.so_far);
        let output = self.shell("bash", &["-ec", &script], self.dir.path()).output();
        let output = output.map_err(|error| format!("there is no bash: {error}"))?;
        match output.status.success() {
            true => Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end())),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Whether a command succeeds, and what it prints.
    fn bash(&self, command: &str) -> Result<(bool, String), String> {
        let script = format!("{}{command}", self.so_far);
        self.prepare(&self.here()?);
        let mut timeout = self.shell("timeout", &[COMMAND_SECONDS, "bash", "-ec", &script], self.dir.path());
        let output = timeout.output().map_err(|error| format!("there is no timeout: {error}"))?;
        let printed =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok((output.status.success(), printed.concat()))
    }

    fn behind(&self, command: &str) -> Result<Behind, String> {
        self.prepare(&self.here()?);
        let log = self.home.path().join("behind.txt");
        let file =
            fs::File::options().create(true).append(true).open(&log).map_err(|error| error.to_string())?;
        let copy = file.try_clone().map_err(|error| error.to_string())?;
        let script = format!("{}exec {command}", self.so_far);
        let mut bash = self.shell("bash", &["-ec", &script], self.dir.path());
        let child = bash.stdout(copy).stderr(file).spawn().map_err(|error| error.to_string())?;
        Ok(Behind { child, log })
    }

    fn shell(&self, program: &str, arguments: &[&str], folder: &Path) -> Command {
        let portway = Path::new(env!("CARGO_BIN_EXE_portway")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).process_group(0);
        command.env("PATH", format!("{}:{path}", portway.display()));
        command.env("HOME", self.home.path()).env("TMPDIR", self.home.path()).env("USER", "tester");
        command
    }

    /// Components are compiled once for all guides and not once for each.
    fn prepare(&self, project: &Path) {
        let data = project.join("data");
        if project.join("portway.toml").is_file() && !data.exists() {
            fs::create_dir(&data).unwrap();
            share_native_code(project);
        }
    }

    fn engine_log(&self) -> String {
        let Some(engine) = &self.engine else { return String::new() };
        let log = fs::read_to_string(&engine.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        format!("the engine says:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"))
    }
}

/// What another process has come to gives no sign that could be waited for: it is looked at again, up to
/// the limit of whoever looks. Nothing depends on how long this is.
fn before_the_next_look() {
    std::thread::sleep(Duration::from_millis(100));
}

fn ask_to_end(child: &Child) {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
}

fn ended(behind: &mut Behind, what: &str) -> Result<(), String> {
    let end = Instant::now() + 2 * PATIENCE;
    while Instant::now() < end {
        match behind.child.try_wait() {
            Ok(None) => before_the_next_look(),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let log = fs::read_to_string(&behind.log).unwrap_or_default();
                return Err(format!("{what} ends with {status}:\n{log}"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("{what} does not end"))
}

/// The command with one more argument, before its comment.
fn with(command: &str, argument: &str) -> String {
    format!("{}{argument}", without_comment(command))
}

fn without_comment(command: &str) -> &str {
    command.split_once(" #").map_or(command, |(command, _)| command).trim_end()
}

/// A line without what differs between two runs: numbers with their units, and how far columns
/// stand apart.
fn general(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let mut made = String::new();
        for found in word.chars() {
            match found {
                '0'..='9' if made.ends_with('N') => {}
                '0'..='9' => made.push('N'),
                found => made.push(found),
            }
        }
        let made = made.replace("N.N", "N").replace("N,N", "N");
        let is_unit =
            ["ms", "s", "µs", "m", "h", "B", "KB", "MB"].contains(&made.trim_end_matches([',', ')', ';']));
        let is_counted = words.last().is_some_and(|last: &String| last.ends_with('N'));
        match is_unit && is_counted {
            true => words.push(made.trim_start_matches(char::is_alphabetic).to_owned()),
            false => words.push(made),
        }
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Whether a printed line is what a guide shows, where `…` stands for anything.
fn fits(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        (rest, last) = (behind, Some(part));
    }
    match last {
        None => rest.is_empty(),
        Some(part) => part.is_empty() || line.ends_with(part),
    }
}

#[test]
fn outputs_fit_whatever_their_numbers() {
    let same = |wanted: &str, line: &str| fits(&general(wanted), &general(line));
    assert!(same("  100 messages (p50 5.7 ms, p99 38.1 ms)", "98,123 messages  (p50 998 µs, p99 1.2 s)"));
    assert!(same("at 2026-01-31T12:00:00Z … lab", "at 2025-11-30T08:15:10Z by tester at lab"));
    assert!(same("web: …", "web: 3 waiting"));
    assert!(!same("no problems", "1 problem"));
    assert!(!same("web: … sent", "web: 3 waiting"));
}
