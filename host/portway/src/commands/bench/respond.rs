//! Answers of a component over HTTP: a trivial document of JSON, nothing stored.

use std::time::Duration;

use anyhow::Result;

use super::engine::Bench;
use super::figure::Figure;
use super::place::Place;
use super::web::{WARM_UP, ask};

const REQUEST: &[u8] = b"GET /ward/3 HTTP/1.1\r\nHost: localhost\r\n\r\n";
const STATUS: u16 = 200;

/// Answers a second; `isolation` is `call` or `shared`.
pub async fn measure(connections: usize, duration: Duration, isolation: &str) -> Result<Vec<Figure>> {
    let bench = Bench::new(&Place::in_files()).await?;
    let interface = format!(
        "[source]\nplugin = \"respond-hello\"\nlisten = \"{}\"\nconnections_max = 10000\n\
         isolation = \"{isolation}\"\n",
        bench.source
    );
    bench.write("interfaces/bench.toml", &interface)?;
    let running = bench.start().await?;
    ask(&bench, connections, WARM_UP, (REQUEST, STATUS)).await?;
    let report = ask(&bench, connections, duration, (REQUEST, STATUS)).await?;
    running.stop().await?;
    let name = format!("respond --connections {connections} --isolation {isolation}");
    let answers = report.times.len() as f64;
    let mut figure = Figure::new(name, answers / report.took.as_secs_f64(), "answers/s");
    figure.p50_ms = report.at(0.5);
    figure.p99_ms = report.at(0.99);
    Ok(vec![figure])
}
