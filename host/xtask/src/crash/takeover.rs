//! Two engines on one database: the one that delivers goes, the other takes over.
//!
//! Both listen and store from the first second, and a generator sends to each; they share the
//! receivers. Of both the line to the database can be cut, so that an owner lives on that is none.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};

use super::line::Line;
use super::reckoning::Reckoning;
use super::side::Side;
use super::{Chance, PATIENCE, Wanted};
use crate::process::Kept;
use crate::project::{self, Ports};

/// Messages a second to each engine: together what one can deliver, and catch up with after a wait.
const RATE: u32 = 600;

/// How an owner goes.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    /// Asked to stop: it gives its groups back.
    Stopped,
    /// It cannot reach the database, and lives.
    Cut,
}

/// Chooses ends so that few rounds have all of them.
#[derive(Default)]
struct Ends(Vec<End>);

impl Ends {
    fn draw(&mut self, chance: &mut Chance) -> End {
        if self.0.is_empty() {
            self.0.extend([End::Killed, End::Stopped, End::Cut]);
        }
        let at = chance.below(self.0.len() as u64);
        self.0.swap_remove(usize::try_from(at).unwrap_or_default())
    }
}

/// One engine with its line to the database.
struct Rival {
    name: &'static str,
    side: Side,
    ports: Ports,
    line: Line,
    engine: Kept,
}

impl Rival {
    fn new(root: &Path, name: &'static str, portway: &Path, server: &Cluster, sink: &str) -> Result<Rival> {
        let mut ports = Ports::free()?;
        sink.clone_into(&mut ports.sink);
        let folder = project::lab_results(root, &format!("crash/{name}"), &ports)?;
        let side = Side::new(name, portway.to_owned(), folder);
        let line = Line::to(server.port())?;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", line.port);
        side.set_in_store(&format!("url = \"{url}\"\nengine = \"{name}\""))?;
        // One file for both, as the service is: the order that counts is that of the receiver.
        side.change("interfaces/lab.toml", "path = \"out\"", "path = \"../out\"")?;
        // The next owner waits as long as a send of the one before may take.
        side.change("interfaces/lab.toml", "[[destination]]\n", "[[destination]]\ntimeout = \"2s\"\n")?;
        let engine = side.start(&["run", "--standby"])?;
        Ok(Rival { name, side, ports, line, engine })
    }

    fn wait_for(&mut self, state: &str) -> Result<()> {
        self.side.wait_for(&mut self.engine, state)
    }

    fn end(&mut self, end: End) -> Result<()> {
        match end {
            End::Killed => self.engine.kill(),
            End::Stopped => self.engine.stop(PATIENCE),
            End::Cut => {
                self.line.cut();
                Ok(())
            }
        }
    }

    /// It stands by, as the same process if it lives.
    fn come_back(&mut self, end: End) -> Result<()> {
        match end {
            End::Killed | End::Stopped => self.engine = self.side.start(&["run", "--standby"])?,
            End::Cut => self.line.mend(),
        }
        self.wait_for("standby")
    }
}

pub(super) fn crash(root: &Path, wanted: &Wanted, mut chance: Chance) -> Result<()> {
    let portway = wanted.binary.path(root)?;
    let cluster = Cluster::start(&Programs::of_system()?, &ClusterSettings::default())?;
    let folder = project::empty(root, "crash")?;
    std::fs::create_dir(folder.join("out"))?;
    let sink = Ports::free()?.sink;
    let mut owner = Rival::new(root, "first", &portway, &cluster, &sink)?;
    owner.wait_for("running")?;
    let mut other = Rival::new(root, "second", &portway, &cluster, &sink)?;
    other.wait_for("standby")?;
    let mut reckoning = Reckoning::new(folder, &owner.side, &sink)?;
    let mut generators = Vec::new();
    for rival in [&owner, &other] {
        generators.push(reckoning.generator(&rival.side, &rival.ports.mllp, RATE)?);
    }
    let (mut ends, mut gone) = (Ends::default(), Vec::new());
    for round in 1..=wanted.rounds {
        let in_round = || format!("round {round}");
        // An owner that must wait for the sends of the one before is to go in the middle of that, and after it.
        if chance.below(2) == 0 {
            owner.side.wait_delivering(&mut owner.engine).with_context(in_round)?;
        }
        std::thread::sleep(chance.life());
        reckoning.still_receives()?;
        let end = ends.draw(&mut chance);
        owner.end(end).with_context(in_round)?;
        other.wait_for("running").with_context(in_round)?;
        ensure!(owners(&cluster)? == other.name, "round {round}: {} is not the owner", other.name);
        owner.come_back(end).with_context(in_round)?;
        std::mem::swap(&mut owner, &mut other);
        gone.push(end);
    }
    for mut generator in generators {
        // It may wait for an answer when it is told to stop, which makes its end a bad one.
        generator.end(PATIENCE)?;
    }
    let resent = owner.side.wait_drained(&mut owner.engine)?;
    for rival in [&mut other, &mut owner] {
        rival.engine.stop(PATIENCE)?;
    }
    reckoning.count(&owner.side, resent)?;
    let times = |wanted: fn(&End) -> bool| gone.iter().filter(|end| wanted(end)).count();
    println!(
        "crash: {} takeovers in {} rounds (owner killed {}, stopped {}, cut off {}), nothing acknowledged was lost or out of order",
        gone.len(),
        wanted.rounds,
        times(|end| matches!(end, End::Killed)),
        times(|end| matches!(end, End::Stopped)),
        times(|end| matches!(end, End::Cut)),
    );
    Ok(())
}

/// Who owns the groups, as the database has it.
fn owners(cluster: &Cluster) -> Result<String> {
    cluster.sql("SELECT string_agg(DISTINCT engine, ', ') FROM owners")
}
