//! How fast a project with many interfaces is ready, and what it costs while nothing happens.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portway_engine::ports::Clock;
use portway_model::GroupId;
use portway_store::Claimed;

use super::engine::Bench;
use super::figure::{Figure, round};
use super::place::Place;
use super::prefill::{Prefill, State, prefill};
use super::process::EngineProcess;
use crate::wiring::SystemClock;

const PATIENCE: Duration = Duration::from_secs(60);
/// Quiet time that is looked at.
const IDLE: Duration = Duration::from_secs(5);
/// Claims, each of an engine that begins anew.
const CLAIMS: usize = 9;

/// Four figures: time to ready with a warm cache, memory, processor time per second of idleness, and the time
/// of the claim in it, the median of some.
pub async fn measure(place: &Place, interfaces: usize, waiting: u64) -> Result<Vec<Figure>> {
    let bench = Bench::new(place).await?;
    let port = bench.source.port();
    for number in 0..interfaces {
        // Addresses of their own, since there may not be so many free ports in a row.
        let (high, low) = (number / 250, number % 250 + 1);
        bench.write(
            &format!("interfaces/if-{number:04}.toml"),
            &interface(&format!("127.1.{high}.{low}:{port}")),
        )?;
    }
    if waiting > 0 {
        let (project, _) = bench.project()?;
        prefill(&project, &Prefill { messages: waiting, state: State::HeadInRetry, body_bytes: 300 }).await?;
        bench.settle().await?;
    }
    // Once for the cache of compiled plugins and the disk's.
    EngineProcess::start(bench.path(), bench.admin, PATIENCE).await?.stop(PATIENCE).await?;
    let engine = EngineProcess::start(bench.path(), bench.admin, PATIENCE).await?;
    let bytes = engine.settled_bytes(PATIENCE).await?;
    let before = engine.processor_time()?;
    tokio::time::sleep(IDLE).await;
    let idle = engine.processor_time()?.saturating_sub(before);
    let ready = engine.ready_after;
    engine.stop(PATIENCE).await?;
    let claims = claims(&bench).await?;
    let case = format!("start --interfaces {interfaces} --waiting {waiting}");
    Ok(vec![
        Figure::new(format!("{case}: ready"), round(ready.as_secs_f64() * 1_000.0), "ms"),
        Figure::new(format!("{case}: memory"), bytes as f64 / 1e6, "MB"),
        Figure::new(format!("{case}: idle"), idle.as_secs_f64() * 1_000.0 / IDLE.as_secs_f64(), "ms/s"),
        claimed(&format!("{case}: claim"), claims),
    ])
}

/// How long it takes to own every group, in milliseconds, as an engine does at its start; the shortest first.
async fn claims(bench: &Bench) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(CLAIMS);
    for _ in 0..CLAIMS {
        let (store, registered) = bench.open_store().await?;
        let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
        let began = Instant::now();
        let claimed = store.claim(&groups, SystemClock::new().now()).await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        ensure!(matches!(claimed, Claimed::Owned(_)), "another engine has the store");
        store.close().await?;
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn claimed(case: &str, times: Vec<f64>) -> Figure {
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    let mut figure = Figure::new(case, middle, "ms");
    figure.p50_ms = Some(round(middle));
    figure.p99_ms = times.last().copied().map(round);
    figure
}

/// MLLP in, JSON to a service that is not there.
fn interface(listen: &str) -> String {
    format!(
        "[source]\nplugin = \"mllp\"\nlisten = \"{listen}\"\nsettings = {{ key = \"PID-3.1\" }}\n\
         [[destination]]\nname = \"api\"\norder = \"strict\"\n[[destination.transform]]\nplugin = \"oru-to-json\"\n\
         [destination.sender]\nplugin = \"http\"\ngrants.api = {{ type = \"http\", url = \"http://127.0.0.1:1\" }}\n"
    )
}
