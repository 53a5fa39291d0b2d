//! Plays seeds of the simulation: `sim --seeds N [--seed S] [--trace]`.

use std::process::ExitCode;
use std::time::Instant;

use portway_testkit::{Stats, Trace, simulate};

struct Options {
    seeds: u64,
    first: u64,
    trace: Trace,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\nusage: sim --seeds N [--seed S] [--trace]");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let mut total = Stats::default();
    for seed in options.first..options.first.saturating_add(options.seeds) {
        match simulate(seed, options.trace) {
            Ok(stats) => total += stats,
            Err(violation) => {
                violation.trace.iter().for_each(|line| println!("{line}"));
                eprintln!("{violation}");
                eprintln!("hint: replay it with `cargo xtask sim --seed {seed} --trace`");
                return ExitCode::FAILURE;
            }
        }
    }
    let Stats { steps, acknowledged, delivered, commits, deaths, power_losses, actions, .. } = total;
    let Stats { stored_elsewhere, locks_lost, server_ends, takeovers, .. } = total;
    println!(
        "{} seeds in {:.1} s: {steps} steps, {acknowledged} acknowledged, {delivered} deliveries arrived, \
         {commits} commits, {deaths} ends of the process, {power_losses} power losses, {actions} actions, \
         {stored_elsewhere} stored elsewhere, {locks_lost} locks lost, {server_ends} ends of the server, \
         {takeovers} takeovers; \
         no rule broken",
        options.seeds,
        began.elapsed().as_secs_f64(),
    );
    ExitCode::SUCCESS
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { seeds: 1, first: 0, trace: Trace::Off };
    let mut arguments = arguments.peekable();
    while let Some(name) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or_else(|| format!("`{name}` needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"))
        };
        match name.as_str() {
            "--seeds" => options.seeds = number()?,
            "--seed" => options.first = number()?,
            "--trace" => options.trace = Trace::On,
            _ => return Err(format!("unknown option `{name}`")),
        }
    }
    Ok(options)
}
