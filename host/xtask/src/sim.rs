//! `cargo xtask sim`: the engine on a seeded clock with a store and plugins that fail.

use std::path::Path;

use anyhow::Result;

use crate::process::{cargo, run};

/// Passes its arguments on: `--seeds N`, `--seed S`, `--trace`.
pub fn sim(root: &Path, args: &[String]) -> Result<()> {
    let fixed = ["run", "--quiet", "--release", "--package", "portway-testkit", "--bin", "sim", "--"];
    run(cargo(root).args(fixed).args(args))
}
