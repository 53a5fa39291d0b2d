//! How fast a project with many interfaces is ready, and what it costs while nothing happens.

use std::time::Duration;

use anyhow::Result;

use super::engine::Bench;
use super::figure::{Figure, round};
use super::prefill::{Prefill, State, prefill};
use super::process::EngineProcess;

const PATIENCE: Duration = Duration::from_secs(60);
/// Quiet time that is looked at.
const IDLE: Duration = Duration::from_secs(5);

/// Three figures: time to ready with a warm cache, memory, processor time per second of idleness.
pub async fn measure(interfaces: usize, waiting: u64) -> Result<Vec<Figure>> {
    let bench = Bench::new()?;
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
    let case = format!("start --interfaces {interfaces} --waiting {waiting}");
    Ok(vec![
        Figure::new(format!("{case}: ready"), round(ready.as_secs_f64() * 1_000.0), "ms"),
        Figure::new(format!("{case}: memory"), bytes as f64 / 1e6, "MB"),
        Figure::new(format!("{case}: idle"), idle.as_secs_f64() * 1_000.0 / IDLE.as_secs_f64(), "ms/s"),
    ])
}

/// MLLP in, JSON to a service that is not there.
fn interface(listen: &str) -> String {
    format!(
        "[source]\nplugin = \"mllp\"\nlisten = \"{listen}\"\nsettings = {{ key = \"PID-3.1\" }}\n\
         [[destination]]\nname = \"api\"\norder = \"strict\"\n[[destination.transform]]\nplugin = \"oru-to-json\"\n\
         [destination.sender]\nplugin = \"http\"\ngrants.api = {{ type = \"http\", url = \"http://127.0.0.1:1\" }}\n"
    )
}
