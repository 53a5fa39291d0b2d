//! `cargo xtask test`: sets up what the tests need and runs all of them.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::crash::{Victim, Wanted};
use crate::process::{cargo, run};
use crate::project::Binary;
use crate::{browser, check, crash, demo, fuzz, plugins, sim, smtp};

/// Seeds of the simulation in one test run.
const SEEDS: &str = "20000";
/// Rounds of killing a real engine.
const CRASH_ROUNDS: u32 = 20;
/// The same on a database, for each of the engine, the server, both, and the one of two engines that delivers.
const DATABASE_ROUNDS: u32 = 5;
/// Seconds each fuzz target runs.
const FUZZ_SECONDS: u32 = 20;

/// Everything; the first failure ends it.
pub fn test(root: &Path) -> Result<()> {
    let mut passed = 0;
    let mut step = |name: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        let began = Instant::now();
        println!("== {name}");
        work()?;
        println!("== {name}: passed in {:.0?}", began.elapsed());
        passed += 1;
        Ok(())
    };
    step("plugins", &mut || {
        plugins::build(root, plugins::Which::FirstParty)?;
        plugins::build(root, plugins::Which::Hostile)
    })?;
    step("tests", &mut || tests(root))?;
    step("check", &mut || check::check(root))?;
    step("simulation", &mut || sim::sim(root, &["--seeds".into(), SEEDS.into()]))?;
    step("crash", &mut || crash::crash(root, &Wanted::new(CRASH_ROUNDS, Victim::Engine, Binary::AsTested)))?;
    for victim in [Victim::EngineOnDatabase, Victim::Database, Victim::Both, Victim::Owner] {
        let wanted = Wanted::new(DATABASE_ROUNDS, victim, Binary::AsTested);
        step("crash on PostgreSQL", &mut || crash::crash(root, &wanted))?;
    }
    step("demo", &mut || demo::demo(root, demo::Mode::Once, Binary::AsTested))?;
    step("browser", &mut || browser::browser(root, Binary::AsTested))?;
    step("smtp", &mut || smtp::smtp(root, Binary::AsTested))?;
    step("fuzz", &mut || fuzz::fuzz(root, FUZZ_SECONDS, fuzz::Start::Afresh))?;
    println!("{passed} passed, 0 failed");
    Ok(())
}

/// With nextest where it is installed, else with cargo's own runner; doc tests by the latter.
fn tests(root: &Path) -> Result<()> {
    let has_nextest =
        Command::new("cargo-nextest").arg("--version").output().is_ok_and(|out| out.status.success());
    if !has_nextest {
        return run(cargo(root).args(["test", "--workspace"]));
    }
    run(cargo(root).args(["nextest", "run", "--workspace"]))?;
    run(cargo(root).args(["test", "--workspace", "--doc", "--quiet"]))
}
