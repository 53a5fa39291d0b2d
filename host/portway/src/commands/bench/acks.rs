//! Durable acknowledgements: N connections, each sends its next message when the last one was
//! acknowledged.

use std::time::Duration;

use anyhow::Result;

use super::engine::{Bench, with_commits};
use super::figure::{Figure, round};
use super::place::Place;
use crate::traffic::GenerateSettings;

/// Before the measurement, so that plugins are compiled and files are open.
const WARM_UP: Duration = Duration::from_millis(500);

/// `ratio` is acknowledgements ÷ (commits × connections).
pub async fn measure(place: &Place, connections: usize, duration: Duration) -> Result<Vec<Figure>> {
    let bench = Bench::new(place).await?;
    bench.write_interface(1, "strict")?;
    let flush_ms = bench.flush_ms()?;
    let running = bench.start().await?;
    let settings = |duration| GenerateSettings {
        connections,
        keys: connections * 16,
        duration: Some(duration),
        ..GenerateSettings::to(bench.source.to_string())
    };
    bench.generate(settings(WARM_UP)).await?;
    let before = running.engine.status().await?.commits;
    let report = bench.generate(settings(duration)).await?;
    let after = running.engine.status().await?.commits;
    running.stop().await?;
    let figure = Figure::new(format!("acks --connections {connections}"), report.per_second, "acks/s");
    let mut figure = with_commits(figure, &before, &after);
    let commits = figure.commits.unwrap_or_default().max(1);
    figure.ratio = Some(round(report.acknowledged as f64 / (commits as f64 * connections as f64)));
    figure.flush_ms = Some(flush_ms);
    figure.p50_ms = Some(report.latency.p50_ms);
    figure.p99_ms = Some(report.latency.p99_ms);
    Ok(vec![figure])
}
