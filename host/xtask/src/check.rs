//! `cargo xtask check`: what a compiler does not see.
//!
//! Formatting, lints, licences, the arrows between crates, the shape of files, the hashes of the
//! contract and of migrations, the codes of errors with their pages, and the tests that the table of complaints
//! names. Every finding says which rule it breaks and where to read it.

mod arrows;
mod codes;
mod complaints;
mod contract;
mod errors;
mod licences;
mod migrations;
mod shape;

use std::path::Path;

use anyhow::{Result, bail};

use crate::process::{cargo, run};

/// Runs every check; all findings are shown before it fails.
pub fn check(root: &Path) -> Result<()> {
    run(cargo(root).args(["fmt", "--all", "--check"]))?;
    run(cargo(root).args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    let metadata = metadata(root)?;
    let mut findings = arrows::findings(&metadata);
    findings.extend(licences::findings(&metadata)?);
    findings.extend(shape::findings(root)?);
    findings.extend(contract::findings(root)?);
    findings.extend(migrations::findings(root)?);
    findings.extend(codes::findings(root)?);
    findings.extend(errors::findings(root)?);
    findings.extend(complaints::findings(root)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings; the rules are in docs/contributing.md", findings.len());
    }
    println!("check: nothing found");
    Ok(())
}

/// `cargo xtask fix`: formats, and writes the hashes of the contract and of migrations anew.
pub fn fix(root: &Path) -> Result<()> {
    run(cargo(root).args(["fmt", "--all"]))?;
    contract::write(root)?;
    migrations::write(root)
}

fn metadata(root: &Path) -> Result<serde_json::Value> {
    let output = cargo(root).args(["metadata", "--format-version", "1", "--locked"]).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
