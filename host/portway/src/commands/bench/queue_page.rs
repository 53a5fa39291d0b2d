//! A page of a queue: it must cost what a page costs, whatever else was or is in the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use portway_engine::ports::Clock;
use portway_model::{Answer, AttemptNo, DestinationId, Epoch, Lane, MessageId, Round};
use portway_store::{DeliveryResult, Durability, Pending, Settled, Store, WriteBatch};

use super::engine::Bench;
use super::figure::{Figure, round};
use super::place::Place;
use super::prefill::{Prefill, State, prefill};
use crate::wiring::SystemClock;

/// Pages read of each queue, in turns.
const READS: usize = 200;
/// Reads of each queue before, so that statements are prepared and pages are in memory.
const WARM_UP: usize = 10;
/// Deliveries finished in one transaction.
const RUN: u32 = 4_096;
/// Between two looks of an engine at its store.
const MAINTAIN_EVERY: Duration = Duration::from_secs(1);

/// The queue of one destination.
struct Queue {
    bench: Bench,
    store: Arc<dyn Store>,
    destination: DestinationId,
}

/// Each figure is the median of a page beside `ratio`, which is that ÷ the median of the same page in a queue
/// that holds and held nothing else, read in turns with it.
pub async fn measure(place: &Place, page: u32, messages: u64) -> Result<Vec<Figure>> {
    let few = Queue::new(place, u64::from(page)).await?;
    let mut many = Queue::new(place, u64::from(page) + messages).await?;
    let mut figures = compare(&few, &many, page, &format!("{messages} waiting behind")).await?;
    let snapshot = match &many.bench.database {
        Some(database) => Some(database.hold_snapshot().await?),
        None => None,
    };
    many.deliver(messages).await?;
    if let Some(snapshot) = snapshot {
        let held = format!("{messages} delivered ahead, an old snapshot held open");
        figures.extend(compare(&few, &many, page, &held).await?);
        many = many.reopened().await?;
        figures.extend(compare(&few, &many, page, &format!("{held}, store opened anew")).await?);
        snapshot.let_go().await;
    }
    figures.extend(compare(&few, &many, page, &format!("{messages} delivered ahead")).await?);
    few.store.close().await?;
    many.store.close().await?;
    Ok(figures)
}

impl Queue {
    async fn new(place: &Place, messages: u64) -> Result<Queue> {
        let bench = Bench::new(place).await?;
        bench.write_interface(1, "strict")?;
        let (project, _) = bench.project()?;
        prefill(&project, &Prefill { messages, state: State::Waiting, body_bytes: 300 }).await?;
        bench.settle().await?;
        Queue::of(bench).await
    }

    async fn of(bench: Bench) -> Result<Queue> {
        let (store, registered) = bench.open_store().await?;
        let destination = registered.interfaces.first().and_then(|(_, destinations)| destinations.first());
        let destination = *destination.context("there is no destination")?;
        Ok(Queue { bench, store, destination })
    }

    async fn reopened(self) -> Result<Queue> {
        self.store.close().await?;
        Queue::of(self.bench).await
    }

    async fn read(&self, limit: u32) -> Result<Vec<Pending>> {
        Ok(self.store.read_lane(self.destination, Lane::FIRST, MessageId::ZERO, limit).await?)
    }

    /// Delivers so many from the front, with the housekeeping of an engine beside it.
    async fn deliver(&self, messages: u64) -> Result<()> {
        let (mut left, mut maintained) = (messages, Instant::now());
        while left > 0 {
            let run = self.read(u32::try_from(left).unwrap_or(RUN).min(RUN)).await?;
            ensure!(!run.is_empty(), "{left} messages are not in the queue");
            let batch = WriteBatch {
                mark: left,
                now: SystemClock::new().now(),
                durability: Durability::Relaxed,
                results: run.iter().map(|pending| self.sent(pending)).collect(),
                ..WriteBatch::default()
            };
            self.store.write(batch).await?;
            left = left.saturating_sub(run.len() as u64);
            if maintained.elapsed() >= MAINTAIN_EVERY {
                self.store.maintain(MAINTAIN_EVERY).await?;
                maintained = Instant::now();
            }
        }
        // What one pass cannot decide yet the next one can.
        for _ in 0..2 {
            self.store.maintain(MAINTAIN_EVERY).await?;
        }
        Ok(())
    }

    fn sent(&self, pending: &Pending) -> DeliveryResult {
        DeliveryResult {
            epoch: Epoch(1),
            output: None,
            state: Vec::new(),
            destination: self.destination,
            message: pending.message,
            round: Round(0),
            attempts: AttemptNo(1),
            settled: Settled::Sent(Answer::default()),
            attempted: None,
        }
    }
}

async fn compare(few: &Queue, many: &Queue, page: u32, what: &str) -> Result<Vec<Figure>> {
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + READS {
        for (queue, times) in [(few, &mut of_few), (many, &mut of_many)] {
            let began = Instant::now();
            let found = queue.read(page).await?;
            let took = began.elapsed();
            ensure!(found.len() == page as usize, "{} instead of {page} are in the queue", found.len());
            if number >= WARM_UP {
                times.push(took.as_secs_f64() * 1_000.0);
            }
        }
    }
    of_few.sort_by(f64::total_cmp);
    of_many.sort_by(f64::total_cmp);
    let at = |times: &[f64], percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or(0.0);
    let mut figure = Figure::new(format!("queue-page of {page}, {what}"), at(&of_many, 50), "ms");
    figure.ratio = Some(round(at(&of_many, 50) / at(&of_few, 50)));
    figure.p50_ms = Some(round(at(&of_many, 50)));
    figure.p99_ms = Some(round(at(&of_many, 99)));
    Ok(vec![figure])
}
