//! One engine: it is killed, or its database, or both, and goes on where it was.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};

use super::reckoning::Reckoning;
use super::side::Side;
use super::{Chance, PATIENCE, Victim, Wanted};
use crate::process::Kept;
use crate::project::{self, Ports};

/// Messages a second.
const RATE: u32 = 2_000;
/// Time the server is away, at most.
const AWAY_MS: u64 = 700;

impl Victim {
    fn is_engine(self) -> bool {
        self != Victim::Database
    }

    fn is_database(self) -> bool {
        matches!(self, Victim::Database | Victim::Both)
    }
}

pub(super) fn crash(root: &Path, wanted: &Wanted, mut chance: Chance) -> Result<()> {
    let ports = Ports::free()?;
    let folder = project::lab_results(root, "crash", &ports)?;
    let side = Side::new("the engine", wanted.binary.path(root)?, folder.clone());
    let database = match wanted.victim {
        Victim::Engine => None,
        Victim::EngineOnDatabase | Victim::Database | Victim::Both | Victim::Owner => {
            let cluster = Cluster::start(&Programs::of_system()?, &ClusterSettings::default())?;
            side.set_in_store(&format!("url = \"{}\"", cluster.url()))?;
            Some(cluster)
        }
    };
    let mut reckoning = Reckoning::new(folder, &side, &ports.sink)?;
    let mut generator: Option<Kept> = None;
    let mut running: Option<Kept> = None;
    for round in 1..=wanted.rounds {
        let mut engine = match running.take() {
            Some(engine) => engine,
            None => side.start(&["run"])?,
        };
        side.wait_for(&mut engine, "running")?;
        if generator.is_none() {
            generator = Some(reckoning.generator(&side, &ports.mllp, RATE)?);
        }
        std::thread::sleep(chance.life());
        engine.still_runs().with_context(|| format!("round {round}"))?;
        reckoning.still_receives()?;
        if wanted.victim.is_engine() {
            engine.kill()?;
        }
        if wanted.victim.is_database()
            && let Some(database) = &database
        {
            database.stop_hard()?;
            // How long it is away is what is drawn here, as the moment of its end was: nothing is waited for.
            std::thread::sleep(Duration::from_millis(chance.below(AWAY_MS)));
            database.start_again()?;
        }
        running = (!wanted.victim.is_engine()).then_some(engine);
    }
    let mut engine = match running {
        Some(engine) => engine,
        None => side.start(&["run"])?,
    };
    side.wait_for(&mut engine, "running")?;
    if let Some(mut generator) = generator {
        // It may wait for an answer when it is told to stop, which makes its end a bad one.
        generator.end(PATIENCE)?;
    }
    let resent = side.wait_drained(&mut engine)?;
    engine.stop(PATIENCE)?;
    reckoning.count(&side, resent)?;
    println!("crash: {} rounds, nothing acknowledged was lost or out of order", wanted.rounds);
    Ok(())
}
