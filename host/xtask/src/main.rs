//! `cargo xtask`: what is done with this repository beside building it. Each command is a
//! module.

mod plugins;
mod process;

use std::path::Path;

use anyhow::{Context, Result, bail};

use plugins::Which;

const USAGE: &str = "\
cargo xtask plugins [--test]   build the first-party plugins; with --test the tests' hostile ones as well";

fn main() -> Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the repository has no root")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["plugins"] => plugins::build(root, Which::FirstParty),
        ["plugins", "--test"] => {
            plugins::build(root, Which::FirstParty)?;
            plugins::build(root, Which::Hostile)
        }
        _ => bail!("no such command; there are:\n{USAGE}"),
    }
}
