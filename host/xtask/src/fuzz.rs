//! `cargo xtask fuzz`: a short run of every fuzz target.
//!
//! libFuzzer on the stable compiler: coverage comes from LLVM's own pass, so no nightly
//! feature is used. The runtime is C++ and needs a compiler (`g++` or `clang++`).

use std::path::Path;

use anyhow::Result;

use crate::process::{cargo, run};

const TARGETS: &[&str] = &["mllp_codec", "hl7_parser", "config_text"];
/// This machine. Said aloud, it keeps the flags away from build scripts, which have no fuzzer to link to.
const HOST: &str = "host-tuple";
/// Coverage counters for the fuzzer to follow.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cdebug-assertions -Ccodegen-units=1";

/// Each target for so many seconds; a crash ends it with the input's path.
pub fn fuzz(root: &Path, seconds: u32) -> Result<()> {
    let folder = root.join("fuzz");
    let target = root.join("target/fuzz");
    for name in TARGETS {
        let corpus = target.join("corpus").join(name);
        std::fs::create_dir_all(&corpus)?;
        let mut command = cargo(&folder);
        command.args(["run", "--quiet", "--release", "--target", HOST, "--bin", name, "--"]);
        command.arg(corpus).arg(folder.join("seeds").join(name));
        command.arg(format!("-max_total_time={seconds}")).args(["-rss_limit_mb=2048", "-timeout=10"]);
        command.arg(format!("-artifact_prefix={}/", target.display()));
        run(command.env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", &target))?;
    }
    Ok(())
}
