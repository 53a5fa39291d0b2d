//! What waits when the engine starts is delivered: one file destination in append mode.

use std::time::{Duration, Instant};

use anyhow::Result;
use portway_model::Order;

use super::engine::{Bench, drained, with_commits};
use super::figure::Figure;
use super::place::Place;
use super::prefill::{Prefill, State, prefill};

const PATIENCE: Duration = Duration::from_secs(300);

/// Deliveries a second, from ready until nothing waits.
pub async fn measure(place: &Place, messages: u64, order: Order) -> Result<Vec<Figure>> {
    let word = match order {
        Order::Strict => "strict",
        Order::Key => "key",
        Order::None => "none",
    };
    let bench = Bench::new(place).await?;
    bench.write_interface(1, word)?;
    let (project, _) = bench.project()?;
    prefill(&project, &Prefill { messages, state: State::Waiting, body_bytes: 1_700 }).await?;
    bench.settle().await?;
    let flush_ms = bench.flush_ms()?;
    let began = Instant::now();
    let running = bench.start().await?;
    let before = running.engine.status().await?.commits;
    drained(&running, PATIENCE).await?;
    let seconds = began.elapsed().as_secs_f64();
    let after = running.engine.status().await?.commits;
    running.stop().await?;
    let figure = Figure::new(format!("backlog --order {word}"), messages as f64 / seconds, "deliveries/s");
    let mut figure = with_commits(figure, &before, &after);
    figure.flush_ms = Some(flush_ms);
    Ok(vec![figure])
}
