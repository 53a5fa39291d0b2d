//! `cargo xtask fuzz`: a short run of every fuzz target.
//!
//! libFuzzer on the stable compiler: coverage comes from LLVM's own pass, so no nightly
//! feature is used. The runtime is C++ and needs a compiler (`g++` or `clang++`).

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::process::{cargo, run};

const TARGETS: &[&str] = &[
    "config_text",
    "file_source",
    "hl7_parser",
    "http_source",
    "mllp_codec",
    "records",
    "tcp_framing",
    "transforms",
];
/// This machine. Said aloud, it keeps the flags away from build scripts, which have no fuzzer to link to.
const HOST: &str = "host-tuple";
/// Coverage counters for the fuzzer to follow.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cdebug-assertions -Ccodegen-units=1";

/// How a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what earlier runs found, and a seed of its own, which libFuzzer prints.
    Onward,
    /// With the repository's seeds alone and always the same way, so that what it finds on one
    /// machine is found on every other.
    Afresh,
}

/// Each target for so many seconds; a crash ends it with the input's path.
pub fn fuzz(root: &Path, seconds: u32, start: Start) -> Result<()> {
    let folder = root.join("fuzz");
    let target = root.join("target/fuzz");
    for name in TARGETS {
        let corpus = match start {
            Start::Onward => target.join("corpus").join(name),
            Start::Afresh => target.join("corpus-afresh").join(name),
        };
        if start == Start::Afresh && corpus.exists() {
            fs::remove_dir_all(&corpus)?;
        }
        fs::create_dir_all(&corpus)?;
        let mut command = cargo(&folder);
        command.args(["run", "--quiet", "--release", "--target", HOST, "--bin", name, "--"]);
        command.arg(corpus).arg(folder.join("seeds").join(name));
        command.arg(format!("-max_total_time={seconds}")).args(["-rss_limit_mb=2048", "-timeout=10"]);
        command.arg(format!("-artifact_prefix={}/", target.display()));
        if start == Start::Afresh {
            command.arg("-seed=1");
        }
        run(command.env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", &target))?;
    }
    Ok(())
}
