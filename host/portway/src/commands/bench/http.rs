//! Durable answers over HTTP: N connections that are kept, each sends its next request when the last
//! one was answered.

use std::time::Duration;

use anyhow::Result;

use super::engine::{Bench, with_commits};
use super::figure::{Figure, round};
use super::place::Place;
use super::web::{WARM_UP, ask};

/// Stored.
const STATUS: u16 = 202;

/// `ratio` is answers ÷ (commits × connections).
pub async fn measure(
    place: &Place,
    connections: usize,
    duration: Duration,
    body_bytes: usize,
) -> Result<Vec<Figure>> {
    let bench = Bench::new(place).await?;
    let interface = format!(
        "[source]\nplugin = \"http\"\nlisten = \"{}\"\nconnections_max = 10000\n\
         [[destination]]\nname = \"file\"\n[destination.sender]\nplugin = \"file\"\n\
         settings = {{ mode = \"append\", file = \"out.txt\" }}\n\
         grants.folder = {{ type = \"folder\", path = \"out\" }}\n",
        bench.source
    );
    bench.write("interfaces/bench.toml", &interface)?;
    let flush_ms = bench.flush_ms()?;
    let running = bench.start().await?;
    let request = request(body_bytes);
    ask(&bench, connections, WARM_UP, (&request, STATUS)).await?;
    let before = running.engine.status().await?.commits;
    let report = ask(&bench, connections, duration, (&request, STATUS)).await?;
    let after = running.engine.status().await?.commits;
    running.stop().await?;
    let answers = report.times.len() as f64;
    let name = format!("http --connections {connections}");
    let figure = Figure::new(name, answers / report.took.as_secs_f64(), "answers/s");
    let mut figure = with_commits(figure, &before, &after);
    let commits = figure.commits.unwrap_or_default().max(1);
    figure.ratio = Some(round(answers / (commits as f64 * connections as f64)));
    figure.flush_ms = Some(flush_ms);
    figure.p50_ms = report.at(0.5);
    figure.p99_ms = report.at(0.99);
    Ok(vec![figure])
}

fn request(body_bytes: usize) -> Vec<u8> {
    let body = format!("{{\"note\":\"{}\"}}", "x".repeat(body_bytes.saturating_sub(11)));
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}
