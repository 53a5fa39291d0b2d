//! `portway sink`: receives test messages and checks them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::value_parser;

use super::show;
use crate::output::{Exit, Output};
use crate::traffic::ledger::Ledger;
use crate::traffic::{
    Behaviour, Protocol, ReceiveSettings, Receiver, Stopper, Tally, TallyReport, file, message,
};

/// Receives test messages over HTTP or MLLP, or reads them from a file, and checks that each key's
/// sequence is whole and in order.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Receive over MLLP instead of HTTP.
    #[arg(long)]
    mllp: bool,
    /// Check a file that a file sender appended to, or a folder of one file a message, instead.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["listen", "mllp", "slow", "refuse", "hang", "status", "fail_every", "count", "seconds"])]
    file: Option<PathBuf>,
    /// Wait before each answer.
    #[arg(long, value_name = "MS")]
    slow: Option<u64>,
    /// Close every connection at once.
    #[arg(long)]
    refuse: bool,
    /// Never answer.
    #[arg(long)]
    hang: bool,
    /// Answer with this HTTP status; over MLLP with AE, or AR if it begins with 4.
    #[arg(long, value_name = "CODE", value_parser = value_parser!(u16).range(200..=599))]
    status: Option<u16>,
    /// Answer every Nth message as failed.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    fail_every: Option<u64>,
    /// End after so many different messages.
    #[arg(long)]
    count: Option<u64>,
    /// End after this time.
    #[arg(long)]
    seconds: Option<f64>,
    /// Append each `KEY SEQUENCE` that arrives to this file.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let report = match &args.file {
        Some(path) => check_file(path, args.ledger.as_deref())?,
        None => receive(args, output).await?,
    };
    output.data(&report, show_report)?;
    Ok(if report.is_good() { Exit::Done } else { Exit::Failed })
}

fn check_file(path: &Path, ledger: Option<&Path>) -> anyhow::Result<TallyReport> {
    let tally = Tally::default();
    let ledger = ledger.map(Ledger::append).transpose().context("cannot write the ledger")?;
    let mut written = Ok(());
    file::each(path, |seen| {
        if let (Some(ledger), Some(seen), Ok(())) = (&ledger, &seen, &written) {
            written = ledger.write(&seen.identity);
        }
        tally.record(seen.as_ref(), message::now());
    })
    .with_context(|| format!("cannot read `{}`", path.display()))?;
    written.context("cannot write the ledger")?;
    Ok(tally.report())
}

async fn receive(args: Args, output: &mut Output) -> anyhow::Result<TallyReport> {
    let Args { listen, mllp, slow, refuse, hang, status, fail_every, count, seconds, ledger, file: _ } = args;
    let behaviour = Behaviour { slow: slow.map(Duration::from_millis), refuse, hang, status, fail_every };
    let protocol = if mllp { Protocol::Mllp } else { Protocol::Http };
    let receiver = Receiver::bind(ReceiveSettings { listen, protocol, behaviour, ledger }).await?;
    let address = receiver.local_addr().context("cannot tell the address")?;
    output.note(format!("receiving {} on {address}", if mllp { "MLLP" } else { "HTTP" }));
    let desk = receiver.desk();
    let (stopper, stop) = Stopper::new();
    let mut running = std::pin::pin!(receiver.run(stop));
    let mut ends = std::pin::pin!(ends(seconds));
    let mut every = tokio::time::interval(Duration::from_millis(200));
    let (mut before, mut ticks) = (0, 0_u64);
    loop {
        tokio::select! {
            () = &mut running => break,
            () = &mut ends => break,
            _ = every.tick() => {
                ticks += 1;
                let distinct = desk.tally().distinct();
                if count.is_some_and(|count| distinct >= count) {
                    break;
                }
                if ticks.is_multiple_of(5) {
                    live(output, &desk.tally().report(), distinct - before);
                    before = distinct;
                }
            }
        }
    }
    stopper.stop();
    output.live_end();
    Ok(desk.tally().report())
}

/// Ready when the time is over or the process is asked to end.
async fn ends(seconds: Option<f64>) {
    match seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0) {
        Some(seconds) => {
            let time = Duration::from_secs_f64(seconds.min(1e9));
            let _ = tokio::time::timeout(time, super::interrupted()).await;
        }
        None => super::interrupted().await,
    }
}

fn live(output: &mut Output, report: &TallyReport, rate: u64) {
    let TallyReport { distinct, duplicates, late, missing, .. } = report;
    output.live(format!(
        "{} received, {}/s, {duplicates} repeated, {late} out of order, {missing} missing",
        show::number(*distinct),
        show::number(rate)
    ));
}

fn show_report(report: &TallyReport) -> String {
    let mut text = format!(
        "{} of {} received: {} repeated, {} out of order, {} missing",
        show::counted(report.distinct, "message"),
        show::counted(report.keys, "key"),
        show::number(report.duplicates),
        show::number(report.late),
        show::number(report.missing)
    );
    for (count, what) in
        [(report.turned_away, "answered as failed, on purpose"), (report.unknown, "not of ours")]
    {
        if count > 0 {
            text.push_str(&format!("\n  {} {what}", show::number(count)));
        }
    }
    if !report.missing_first.is_empty() {
        text.push_str(&format!("\n  missing: {}", report.missing_first.join(", ")));
    }
    if report.latency.count > 0 {
        let latency = report.latency;
        text.push_str(&format!(
            "\n  from sending to here: p50 {:.1} ms, p99 {:.1} ms",
            latency.p50_ms, latency.p99_ms
        ));
    }
    text
}
