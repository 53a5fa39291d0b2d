//! One message to many destinations: no transform, files in append mode.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::engine::{Bench, drained, with_commits};
use super::figure::{Figure, round};
use super::place::Place;
use super::prefill::{Prefill, State, prefill};
use crate::traffic::GenerateSettings;

const PATIENCE: Duration = Duration::from_secs(300);

/// Messages that were delivered before.
const HISTORY: u64 = 2_400;
/// Partitions that each table has at the least.
const PARTITIONS: usize = 24;

/// Deliveries a second, from the first message sent until everything is delivered. `ratio` is
/// messages a second.
pub async fn measure(
    place: &Place,
    destinations: usize,
    messages: u64,
    connections: usize,
) -> Result<Vec<Figure>> {
    let bench = Bench::new(place).await?;
    bench.write_interface(destinations, "strict")?;
    let partitions = with_history(&bench).await?;
    let flush_ms = bench.flush_ms()?;
    let running = bench.start().await?;
    let settings = |count| GenerateSettings {
        connections,
        keys: connections * 16,
        count: Some(count),
        ..GenerateSettings::to(bench.source.to_string())
    };
    bench.generate(settings(connections as u64)).await?;
    drained(&running, PATIENCE).await?;
    let before = running.engine.status().await?;
    let began = Instant::now();
    bench.generate(settings(messages)).await?;
    drained(&running, PATIENCE).await?;
    let seconds = began.elapsed().as_secs_f64();
    let after = running.engine.status().await?;
    running.stop().await?;
    let sent = |status: &portway_engine::Status| -> u64 {
        status.destinations.iter().map(|destination| destination.counts.sent).sum()
    };
    let deliveries = sent(&after) - sent(&before);
    if deliveries != messages * destinations as u64 {
        bail!("{deliveries} deliveries instead of {}", messages * destinations as u64);
    }
    let figure = Figure::new(
        format!("fanout --destinations {destinations}{partitions}"),
        deliveries as f64 / seconds,
        "deliveries/s",
    );
    let mut figure = with_commits(figure, &before.commits, &after.commits);
    figure.flush_ms = Some(flush_ms);
    figure.ratio = Some(round(messages as f64 / seconds));
    Ok(vec![figure])
}

/// In a database: as much lies in every partition as in the others, of a store that kept messages for as long as
/// it can. Answers how many partitions that are, in words of the case.
async fn with_history(bench: &Bench) -> Result<String> {
    let Some(database) = &bench.database else { return Ok(String::new()) };
    let (project, _) = bench.project()?;
    prefill(&project, &Prefill { messages: HISTORY, state: State::Delivered, body_bytes: 1_700 }).await?;
    let partitions = database.spread().await?;
    if partitions < PARTITIONS {
        bail!("{partitions} partitions a table are fewer than {PARTITIONS}");
    }
    bench.settle().await?;
    Ok(format!(", {partitions} partitions a table"))
}
