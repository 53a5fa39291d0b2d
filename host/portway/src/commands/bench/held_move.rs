//! Old messages that still wait are moved to where such things are held, while others arrive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use portway_store_postgres::bench::{BenchDatabase, Removal};

use super::engine::Bench;
use super::figure::{Figure, round};
use super::place::Place;
use super::prefill::{Prefill, State, prefill};
use crate::traffic::{GenerateProgress, GenerateReport, GenerateSettings, Stopper, generate};

/// Connections on which messages arrive.
const CONNECTIONS: usize = 8;
/// Days on which the old messages were stored.
const DAYS: u8 = 3;
/// Before messages are counted, so that plugins are compiled and files are open.
const WARM_UP: Duration = Duration::from_secs(2);
/// Between the end of what is measured without a move and the move, at the least.
const SPARE: Duration = Duration::from_secs(5);
/// How long the move may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(1_800);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What moves, and what arrives meanwhile.
pub struct HeldMove {
    pub deliveries: u64,
    /// Messages a second.
    pub rate: f64,
    /// How long they arrive without a move.
    pub without: Duration,
}

/// Three figures: the 99th percentile of acknowledgements without the move and with it, where `ratio` is the
/// second ÷ the first; and deliveries moved a second.
pub async fn measure(place: &Place, what: &HeldMove) -> Result<Vec<Figure>> {
    place.needs_server("a file has no partitions, so nothing has to be held outside of them")?;
    let bench = Bench::new(place).await?;
    let database = bench.database.clone().context("there is no database")?;
    write_project(&bench, what)?;
    let (project, _) = bench.project()?;
    // The interface with what waits is the only one that is there yet.
    prefill(&project, &Prefill { messages: what.deliveries, state: State::HeadInRetry, body_bytes: 300 })
        .await?;
    database.age(DAYS).await?;
    bench.settle().await?;
    bench.write_interface(1, "strict")?;
    let flush_ms = bench.flush_ms()?;
    let running = bench.start().await?;
    let settings = |duration| GenerateSettings {
        connections: CONNECTIONS,
        keys: CONNECTIONS * 16,
        rate: Some(what.rate),
        duration,
        ..GenerateSettings::to(bench.source.to_string())
    };
    bench.generate(settings(Some(WARM_UP))).await?;
    let without = bench.generate(settings(Some(what.without))).await?;
    ensure!(database.removal().await? == Removal::Waits, "the move began before it was to be measured");
    until(&database, Removal::Runs).await?;
    let began = Instant::now();
    let with = generate_until_over(&bench, &database, settings(None)).await?;
    let seconds = began.elapsed().as_secs_f64();
    running.stop().await?;
    let held = database.count_held().await?;
    ensure!(held == what.deliveries, "{held} instead of {} deliveries are held", what.deliveries);
    let case = format!("held-move of {held} at {} messages/s", what.rate);
    let times = |word: &str, report: &GenerateReport| {
        let mut figure = Figure::new(format!("{case}: acks p99 {word}"), report.latency.p99_ms, "ms");
        figure.flush_ms = Some(flush_ms);
        figure.p50_ms = Some(round(report.latency.p50_ms));
        figure.p99_ms = Some(round(report.latency.p99_ms));
        figure
    };
    let mut figures = vec![times("without", &without), times("with", &with)];
    if let Some(figure) = figures.last_mut() {
        figure.ratio = Some(round(with.latency.p99_ms / without.latency.p99_ms));
    }
    figures.push(Figure::new(format!("{case}: moved"), held as f64 / seconds, "deliveries/s"));
    Ok(figures)
}

/// An interface whose destination is not there, and which keeps messages for a week; a pass over old messages
/// begins once everything else is measured.
fn write_project(bench: &Bench, what: &HeldMove) -> Result<()> {
    let prune_every = (WARM_UP + what.without + SPARE).as_secs();
    bench.write_more(&format!("[limits]\nprune_every = \"{prune_every}s\"\n"))?;
    bench.write(
        "interfaces/held.toml",
        "retention = \"1w\"\n[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:0\"\n\
         [[destination]]\nname = \"away\"\norder = \"strict\"\n[destination.sender]\nplugin = \"http\"\n\
         grants.api = { type = \"http\", url = \"http://127.0.0.1:1\" }\n",
    )
}

async fn until(database: &BenchDatabase, wanted: Removal) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let removal = database.removal().await?;
        if removal == wanted || removal == Removal::Over {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("the move {removal:?} after {PATIENCE:?}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn generate_until_over(
    bench: &Bench,
    database: &BenchDatabase,
    settings: GenerateSettings,
) -> Result<GenerateReport> {
    let (stopper, stop) = Stopper::new();
    let sending = bench.clients().spawn(generate(settings, Arc::new(GenerateProgress::default()), stop));
    let over = until(database, Removal::Over).await;
    stopper.stop();
    let report = sending.await??;
    over?;
    ensure!(report.is_good(), "{} messages were not acknowledged", report.unacknowledged.len());
    Ok(report)
}
