//! `cargo xtask`: what is done with this repository beside building it. Each command is a
//! module.

mod browser;
mod check;
mod crash;
mod demo;
mod error_pages;
mod fuzz;
mod plugins;
mod process;
mod project;
mod sabotage;
mod sim;
mod smtp;
mod test;

use std::path::Path;

use anyhow::{Context, Result, bail};

use plugins::Which;
use project::Binary;

const USAGE: &str = "\
cargo xtask demo [--once]      the example project with real traffic; once: 1,000 messages, then a table
cargo xtask test               sets up what the tests need and runs all of them
cargo xtask check              formatting, lints, licences, arrows, shape, the contract's hashes, error pages
cargo xtask fix                formats, and writes the contract's hashes anew
cargo xtask gen                writes the generated reference pages
cargo xtask plugins [--test]   builds the first-party plugins; with --test the tests' hostile ones as well
cargo xtask sim --seeds N      the simulation; `--seed S --trace` replays one
cargo xtask sabotage           breaks the engine in many ways, each of which the simulation must notice
cargo xtask crash --rounds N   kills a real engine under load and counts at the receiver;
                               with `--store postgres --kill engine|database|both|takeover` on a database:
                               its server may be what is killed, or two engines take over from each other;
                               --seed S draws the same moments, --no-build takes the program that is there
cargo xtask browser            the web page of a real engine in a real browser; installs what it needs
cargo xtask smtp               the SMTP sender against a mail server that is not ours; installs what it needs
cargo xtask fuzz --seconds N   every fuzz target for so long; with --afresh always the same way";

fn main() -> Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the repository has no root")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["demo"] => demo::demo(root, demo::Mode::Live, Binary::ToBeBuilt),
        ["demo", "--once"] => demo::demo(root, demo::Mode::Once, Binary::ToBeBuilt),
        ["demo", "--once", "--no-build"] => demo::demo(root, demo::Mode::Once, Binary::AsTested),
        ["test"] => test::test(root),
        ["check"] => check::check(root),
        ["fix"] => check::fix(root),
        ["gen"] => generate(root),
        ["plugins"] => plugins::build(root, Which::FirstParty),
        ["plugins", "--test"] => {
            plugins::build(root, Which::FirstParty)?;
            plugins::build(root, Which::Hostile)
        }
        ["sim", ..] => sim::sim(root, arguments.get(1..).unwrap_or_default()),
        ["sabotage"] => sabotage::sabotage(root),
        ["crash", rest @ ..] => crash::crash(root, &crash::Wanted::parse(rest)?),
        ["browser"] => browser::browser(root, Binary::ToBeBuilt),
        ["browser", "--no-build"] => browser::browser(root, Binary::AsTested),
        ["smtp"] => smtp::smtp(root, Binary::ToBeBuilt),
        ["smtp", "--no-build"] => smtp::smtp(root, Binary::AsTested),
        ["fuzz", "--seconds", seconds] => fuzz::fuzz(root, number(seconds)?, fuzz::Start::Onward),
        ["fuzz", "--seconds", seconds, "--afresh"] => fuzz::fuzz(root, number(seconds)?, fuzz::Start::Afresh),
        _ => bail!("no such command; there are:\n{USAGE}"),
    }
}

fn number(word: &str) -> Result<u32> {
    word.parse().with_context(|| format!("`{word}` is no number"))
}

/// The binary knows its own options and commands; the index of errors is made of their pages.
fn generate(root: &Path) -> Result<()> {
    error_pages::write_index(root)?;
    process::run(process::cargo(root).args(["run", "--quiet", "--package", "portway", "--", "gen-docs"]))
}
