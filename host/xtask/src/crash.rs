//! `cargo xtask crash`: a real engine under load, killed at random moments and restarted.
//!
//! The generator writes a ledger of what was acknowledged; the receiver writes one of what
//! arrived, and the file destination is its own. At the end every acknowledged message must
//! be in both, each key in order; repeats are counted. With a database it may be the database's server
//! that is killed, or both.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};

use crate::demo::status;
use crate::process::{Kept, wait_until};
use crate::project::{self, Binary, Ports};

const PATIENCE: Duration = Duration::from_secs(120);
/// An engine lives for so long in a round, at least and at most.
const LIFE_MS: (u64, u64) = (150, 1_500);

/// Time the server is away.
const AWAY_MS: u64 = 700;

/// What is killed in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The engine, on a store in a file.
    Engine,
    /// The engine, on a database.
    EngineOnDatabase,
    /// The server of the database.
    Database,
    /// Both at once.
    Both,
}

impl Victim {
    fn is_engine(self) -> bool {
        self != Victim::Database
    }

    fn is_database(self) -> bool {
        matches!(self, Victim::Database | Victim::Both)
    }
}

/// Kills so many times, then counts.
pub fn crash(root: &Path, rounds: u32, victim: Victim, binary: Binary) -> Result<()> {
    let ports = Ports::free()?;
    let folder = project::lab_results(root, "crash", &ports)?;
    let bench = Bench { portway: binary.path(root)?, folder };
    let database = match victim {
        Victim::Engine => None,
        Victim::EngineOnDatabase | Victim::Database | Victim::Both => {
            let cluster = Cluster::start(&Programs::of_system()?, &ClusterSettings::default())?;
            bench.use_database(&cluster.url())?;
            Some(cluster)
        }
    };
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.subsec_nanos();
    println!("crash: {rounds} rounds of {victim:?}, moments drawn from seed {seed}");

    let sink_ledger = bench.folder.join("arrived.txt");
    let sink_args = ["sink", "--listen", &ports.sink, "--ledger"];
    let mut sink = Kept::spawn("the receiver", bench.reporting("http")?.args(sink_args).arg(&sink_ledger))?;
    let mut generator: Option<Kept> = None;
    let mut chance = u64::from(seed) | 1;
    let mut running: Option<Kept> = None;
    for round in 1..=rounds {
        let mut engine = match running.take() {
            Some(engine) => engine,
            None => bench.engine()?,
        };
        bench.wait_ready(&mut engine)?;
        if generator.is_none() {
            generator = Some(bench.generator(&ports)?);
        }
        let life = LIFE_MS.0 + next(&mut chance) % (LIFE_MS.1 - LIFE_MS.0);
        std::thread::sleep(Duration::from_millis(life));
        engine.still_runs().with_context(|| format!("round {round}"))?;
        sink.still_runs()?;
        if victim.is_engine() {
            engine.kill()?;
        }
        if victim.is_database()
            && let Some(database) = &database
        {
            database.stop_hard()?;
            // How long it is away is what is drawn here, as the moment of its end was: nothing is waited for.
            std::thread::sleep(Duration::from_millis(next(&mut chance) % AWAY_MS));
            database.start_again()?;
        }
        running = (!victim.is_engine()).then_some(engine);
    }
    let mut engine = match running {
        Some(engine) => engine,
        None => bench.engine()?,
    };
    bench.wait_ready(&mut engine)?;
    if let Some(mut generator) = generator {
        // It may wait for an answer when it is told to stop, which makes its end a bad one.
        generator.end(PATIENCE)?;
    }
    bench.wait_drained(&mut engine)?;
    engine.stop(PATIENCE)?;
    // What it misses is told after the table that says how much of it was promised.
    let received = sink.end(PATIENCE)?;
    bench.count(rounds, &sink_ledger, received)
}

/// A step of xorshift: enough to choose moments.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

struct Bench {
    portway: PathBuf,
    folder: PathBuf,
}

impl Bench {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.portway);
        command.current_dir(&self.folder).stdin(Stdio::null());
        let log = fs::File::options().create(true).append(true).open(self.log());
        if let Ok((out, error)) = log.and_then(|file| Ok((file.try_clone()?, file))) {
            command.stdout(out).stderr(error);
        }
        command
    }

    /// A command whose last words are kept apart: [`Bench::report`] shows them.
    fn reporting(&self, name: &str) -> Result<Command> {
        let mut command = self.command();
        command.stdout(fs::File::create(self.report_path(name))?);
        Ok(command)
    }

    fn report(&self, name: &str) -> String {
        fs::read_to_string(self.report_path(name)).unwrap_or_default()
    }

    fn report_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-report.txt"))
    }

    fn log(&self) -> PathBuf {
        self.folder.join("crash.log")
    }

    /// The only change that a project makes.
    fn use_database(&self, url: &str) -> Result<()> {
        let path = self.folder.join("portway.toml");
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains("[store]\n"), "the example names its store no more");
        fs::write(&path, text.replace("[store]\n", &format!("[store]\nurl = \"{url}\"\n")))?;
        Ok(())
    }

    fn engine(&self) -> Result<Kept> {
        Kept::spawn("the engine", self.command().arg("run"))
    }

    fn generator(&self, ports: &Ports) -> Result<Kept> {
        let args = ["gen", "--to", &ports.mllp, "--connections", "8", "--keys", "200", "--rate", "2000"];
        let mut command = self.command();
        Kept::spawn(
            "the generator",
            command.args(args).args(["--seconds", "86400", "--ledger"]).arg(self.acknowledged()),
        )
    }

    fn acknowledged(&self) -> PathBuf {
        self.folder.join("acknowledged.txt")
    }

    fn wait_ready(&self, engine: &mut Kept) -> Result<()> {
        let ready = wait_until(PATIENCE, || {
            engine.still_runs()?;
            Ok(status(&self.portway, &self.folder)
                .is_some_and(|status| status["engine"]["state"] == "running"))
        })?;
        ensure!(ready, "the engine was not ready within {PATIENCE:?}; see {}", self.log().display());
        Ok(())
    }

    fn wait_drained(&self, engine: &mut Kept) -> Result<()> {
        let drained = wait_until(PATIENCE, || {
            engine.still_runs()?;
            let Some(status) = status(&self.portway, &self.folder) else {
                return Ok(false);
            };
            let destinations =
                status["interfaces"][0]["destinations"].as_array().cloned().unwrap_or_default();
            Ok(!destinations.is_empty() && destinations.iter().all(|destination| destination["waiting"] == 0))
        })?;
        ensure!(drained, "not drained within {PATIENCE:?}; see {}", self.log().display());
        Ok(())
    }

    /// Compares what arrived with what was acknowledged, and says everything that is wrong.
    fn count(&self, rounds: u32, sink_ledger: &Path, received: ExitStatus) -> Result<()> {
        let acknowledged = Ledger::read(&self.acknowledged())?;
        let file_ledger = self.folder.join("file.txt");
        let file = self.folder.join("out/results.ndjson");
        let checked = self
            .reporting("file")?
            .args(["sink", "--file"])
            .arg(&file)
            .arg("--ledger")
            .arg(&file_ledger)
            .status()?;
        println!(
            "{:<14} {:>12} {:>10} {:>8} {:>13} {:>9}",
            "", "acknowledged", "arrived", "lost", "out of order", "repeated"
        );
        let mut broken = Vec::new();
        if acknowledged.count() == 0 {
            broken.push("nothing was acknowledged".to_owned());
        }
        for (name, path, ended) in [("http", sink_ledger, received), ("file", file_ledger.as_path(), checked)]
        {
            let arrived = Ledger::read(path)?;
            let lost = acknowledged.missing_in(&arrived);
            let (acks, all) = (acknowledged.count(), arrived.count());
            println!(
                "{name:<14} {acks:>12} {all:>10} {lost:>8} {:>13} {:>9}",
                arrived.out_of_order, arrived.repeated
            );
            if lost > 0 || arrived.out_of_order > 0 {
                broken.push(format!("{name}: {lost} lost, {} out of order", arrived.out_of_order));
            }
            if !ended.success() {
                broken
                    .push(format!("{name}: `portway sink` ended with {ended}: {}", self.report(name).trim()));
            }
        }
        if !broken.is_empty() {
            bail!(
                "a promise was broken:\n{}\neverything is kept in {}",
                broken.join("\n"),
                self.folder.display()
            );
        }
        println!("crash: {rounds} rounds, nothing acknowledged was lost or out of order");
        Ok(())
    }
}

/// Which sequence numbers of each key there are, in a file of lines `KEY SEQUENCE`.
#[derive(Default)]
struct Ledger {
    by_key: HashMap<String, Vec<u64>>,
    repeated: u64,
    out_of_order: u64,
}

impl Ledger {
    fn read(path: &Path) -> Result<Ledger> {
        let text = fs::read_to_string(path).with_context(|| format!("no ledger {}", path.display()))?;
        let mut ledger = Ledger::default();
        for line in text.lines() {
            let (key, sequence) = line.split_once(' ').with_context(|| format!("bad line `{line}`"))?;
            ledger.add(key, sequence.parse().with_context(|| format!("bad line `{line}`"))?);
        }
        Ok(ledger)
    }

    /// A number seen before is a repeat; a new one below the highest is out of order.
    fn add(&mut self, key: &str, sequence: u64) {
        let seen = self.by_key.entry(key.to_owned()).or_default();
        match seen.binary_search(&sequence) {
            Ok(_) => self.repeated += 1,
            Err(at) => {
                self.out_of_order += u64::from(at != seen.len());
                seen.insert(at, sequence);
            }
        }
    }

    fn count(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }

    fn missing_in(&self, arrived: &Ledger) -> usize {
        let missing = |(key, sequences): (&String, &Vec<u64>)| {
            let there = arrived.by_key.get(key);
            let is_there = |sequence: &&u64| there.is_some_and(|there| there.binary_search(sequence).is_ok());
            sequences.iter().filter(|sequence| !is_there(sequence)).count()
        };
        self.by_key.iter().map(missing).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(pairs: &[(&str, u64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (key, sequence) in pairs {
            ledger.add(key, *sequence);
        }
        ledger
    }

    #[test]
    fn repeats_are_no_disorder_and_a_late_number_is() {
        let arrived = ledger(&[("a", 1), ("a", 2), ("b", 1), ("a", 2), ("a", 3), ("b", 3), ("b", 2)]);
        assert_eq!((arrived.repeated, arrived.out_of_order, arrived.count()), (1, 1, 6));
    }

    #[test]
    fn what_did_not_arrive_is_missing() {
        let acknowledged = ledger(&[("a", 1), ("a", 2), ("c", 1)]);
        assert_eq!(acknowledged.missing_in(&ledger(&[("a", 2)])), 2);
    }
}
