//! Many messages waiting must need the memory of few.

use std::time::Duration;

use anyhow::Result;

use super::engine::Bench;
use super::figure::{Figure, round};
use super::place::Place;
use super::prefill::{Prefill, State, prefill};
use super::process::EngineProcess;

const PATIENCE: Duration = Duration::from_secs(60);

/// For each way of waiting the difference between many and few; `ratio` is many ÷ few.
pub async fn measure(place: &Place, many: u64, few: u64) -> Result<Vec<Figure>> {
    let cases = [
        ("destination away", State::Waiting, "key"),
        ("behind a blocked lane", State::HeadInRetry, "strict"),
        ("in retry", State::AllInRetry, "none"),
    ];
    let mut figures = Vec::new();
    for (name, state, order) in cases {
        let with_few = resident(place, few, state, order).await?;
        let with_many = resident(place, many, state, order).await?;
        let difference = (with_many - with_few) / 1e6;
        let mut figure = Figure::new(format!("memory: {name}, {many} beside {few}"), difference, "MB more");
        figure.ratio = Some(round(with_many / with_few));
        figures.push(figure);
    }
    Ok(figures)
}

async fn resident(place: &Place, messages: u64, state: State, order: &str) -> Result<f64> {
    let bench = Bench::new(place).await?;
    let source = format!("[source]\nplugin = \"mllp\"\nlisten = \"{}\"\n", bench.source);
    let destination = format!(
        "[[destination]]\nname = \"api\"\norder = \"{order}\"\n[destination.sender]\nplugin = \"http\"\n\
         grants.api = {{ type = \"http\", url = \"http://127.0.0.1:1\" }}\n"
    );
    bench.write("interfaces/bench.toml", &format!("{source}{destination}"))?;
    let (project, _) = bench.project()?;
    prefill(&project, &Prefill { messages, state, body_bytes: 300 }).await?;
    let engine = EngineProcess::start(bench.path(), bench.admin, PATIENCE).await?;
    let bytes = engine.settled_bytes(PATIENCE).await?;
    engine.stop(PATIENCE).await?;
    // There need not be room for all of them at the same time.
    place.clean().await?;
    Ok(bytes as f64)
}
