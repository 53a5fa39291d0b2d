//! `portway gen`: sends test messages over MLLP.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::value_parser;

use super::show;
use crate::output::{Exit, Output};
use crate::traffic::{GenerateProgress, GenerateReport, GenerateSettings, Stopper, generate, message};

/// Sends test messages over MLLP and waits for each acknowledgement.
///
/// Every key has a sequence number of its own; `portway sink` checks them. Without `--count` and
/// `--seconds` it sends until it is stopped.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:2575")]
    to: String,
    /// Connections at the same time.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Different keys, at least as many as connections.
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..=10_000_000))]
    keys: u32,
    /// Messages a second over all connections; otherwise as fast as answers come.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Messages to send over all connections.
    #[arg(long)]
    count: Option<u64>,
    /// How long to send.
    #[arg(long)]
    seconds: Option<f64>,
    /// Bytes of a message, about.
    #[arg(long, default_value_t = message::SIZE as u64, value_parser = value_parser!(u64).range(1..=1 << 28))]
    size: u64,
    /// Append each acknowledged `KEY SEQUENCE` to this file.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

impl Args {
    fn settings(self) -> GenerateSettings {
        let seconds = self.seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        GenerateSettings {
            connections: self.connections as usize,
            keys: self.keys as usize,
            count: self.count,
            duration: seconds.map(|seconds| Duration::from_secs_f64(seconds.min(1e9))),
            rate: self.rate,
            size: usize::try_from(self.size).unwrap_or(usize::MAX),
            ledger: self.ledger,
            ..GenerateSettings::to(self.to)
        }
    }
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let progress = Arc::new(GenerateProgress::default());
    let (stopper, stop) = Stopper::new();
    let mut generating = std::pin::pin!(generate(args.settings(), progress.clone(), stop));
    let mut interrupted = std::pin::pin!(super::interrupted());
    let mut every = tokio::time::interval(Duration::from_secs(1));
    let mut before = 0;
    let mut asked = false;
    let report = loop {
        tokio::select! {
            report = &mut generating => break report?,
            () = &mut interrupted, if !asked => {
                asked = true;
                stopper.stop();
            }
            _ = every.tick() => {
                let acknowledged = progress.acknowledged();
                let (total, rate) = (show::number(acknowledged), show::number(acknowledged - before));
                output.live(format!("{total} acknowledged, {rate}/s, {} troubles", progress.troubles()));
                before = acknowledged;
            }
        }
    };
    output.live_end();
    output.data(&report, show_report)?;
    Ok(if report.is_good() { Exit::Done } else { Exit::Failed })
}

fn show_report(report: &GenerateReport) -> String {
    let mut text = format!(
        "{} acknowledged in {:.1} s: {}/s, p50 {:.2} ms, p99 {:.2} ms, longest {:.1} ms",
        show::number(report.acknowledged),
        report.seconds,
        show::number(report.per_second.round() as u64),
        report.latency.p50_ms,
        report.latency.p99_ms,
        report.latency.longest_ms
    );
    let troubles = [
        (report.refused, "answered with AE or CE and sent again"),
        (report.rejected, "answered with AR or CR and given up"),
        (report.foreign, "foreign answers"),
        (report.reconnects, "reconnects"),
        (report.resent, "sent more than once"),
    ];
    for (count, what) in troubles.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("\n  {} {what}", show::number(*count)));
    }
    if !report.unacknowledged.is_empty() {
        text.push_str(&format!("\n  without an answer: {}", report.unacknowledged.join(", ")));
    }
    text
}
