//! The driver of one interface's poll source: asks, hands over, settles, asks again.
//!
//! The cursor that is stored decides what is asked for, so whatever ends this, a restart goes on
//! where the last transaction left it: nothing is stored twice and nothing is passed over. What
//! could not be settled is settled before anything else is asked.

mod pace;
pub mod ports;
mod status;

use std::sync::Arc;

use bytes::Bytes;
use portway_engine::ports::Clock;
use portway_model::{Cost, Failure, Later, code};
use rand::RngExt;
use tokio::time::sleep;

use crate::counters::Counters;
use crate::items::{count_fate, receipts, take_apart};
use crate::ports::{Arrival, Item, Receipt};

use pace::{Pace, Pause};
use ports::{PollIntake, Poller, Query};
pub use status::{PollHandle, PollState, PollStatus};

/// What is asked for at once, and how long things may last.
#[derive(Clone, Copy, Debug)]
pub struct PollLimits {
    pub items_max: u32,
    /// Of all messages of one answer; a single one may be more.
    pub bytes_max: u32,
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// How long a source may wait for something to arrive.
    pub wait_max: std::time::Duration,
}

/// Unfinished messages are counted up to this.
const UNFINISHED_MAX: u32 = 1_000;

/// See the file.
pub struct PollDriver<I, P> {
    poller: P,
    intake: I,
    clock: Arc<dyn Clock>,
    limits: PollLimits,
    counters: Counters,
    handle: PollHandle,
    pace: Pace,
    cursor: Bytes,
    /// What was stored and is not settled.
    unsettled: Option<Vec<Receipt>>,
}

impl<I: PollIntake, P: Poller> PollDriver<I, P> {
    /// `counters` are the interface's own.
    pub fn new(
        poller: P,
        intake: I,
        limits: PollLimits,
        (counters, clock): (Counters, Arc<dyn Clock>),
    ) -> (Self, PollHandle) {
        let handle = PollHandle::new(counters.clone());
        let driver = PollDriver {
            poller,
            intake,
            clock,
            limits,
            counters,
            handle: handle.clone(),
            pace: Pace::default(),
            cursor: Bytes::new(),
            unsettled: None,
        };
        (driver, handle)
    }

    /// Returns soon after `shutdown`, also in the middle of a question.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            () = self.run_on() => {}
        }
        self.handle.set(PollState::Stopped);
    }

    async fn run_on(&mut self) {
        while let Err(pause) = self.load().await {
            self.wait(pause).await;
        }
        loop {
            let rest = match self.round().await {
                Ok(rest) => rest,
                Err(pause) => {
                    self.wait(pause).await;
                    continue;
                }
            };
            self.pace.succeeded();
            if rest.is_zero() {
                // Others run on this thread too.
                tokio::task::yield_now().await;
            } else {
                self.handle.set(PollState::Resting);
                sleep(rest).await;
            }
        }
    }

    /// Where the last engine left it, which may not have settled all.
    async fn load(&mut self) -> Result<(), Pause> {
        let cursor = self.intake.cursor().await;
        self.cursor = cursor.map_err(|text| self.unreadable(text))?;
        if !self.cursor.is_empty() {
            self.unsettled = Some(Vec::new());
        }
        Ok(())
    }

    /// Settles what an earlier round could not, asks once, stores what was found and settles it.
    async fn round(&mut self) -> Result<std::time::Duration, Pause> {
        self.settle().await?;
        self.handle.set(PollState::Polling);
        let unfinished = self.intake.unfinished(UNFINISHED_MAX).await;
        let query = Query {
            cursor: self.cursor.clone(),
            items_max: self.limits.items_max,
            bytes_max: self.limits.bytes_max,
            wait_max: self.limits.wait_max,
            unfinished: unfinished.map_err(|text| self.unreadable(text))?,
        };
        let found = self.poller.poll(query).await.map_err(|error| self.failed(error))?;
        self.handle.polled(self.clock.now());
        let is_news = !found.items.is_empty() || found.cursor != self.cursor;
        if is_news {
            self.store(found.items, found.cursor, found.cost).await?;
            self.settle().await?;
        }
        Ok(Pace::again(found.again, is_news))
    }

    async fn settle(&mut self) -> Result<(), Pause> {
        let Some(receipts) = self.unsettled.clone() else { return Ok(()) };
        self.handle.set(PollState::Settling);
        let count = receipts.len();
        let settled = self.poller.settle(self.cursor.clone(), receipts).await;
        settled.map_err(|error| self.failed(error))?;
        self.counters.answered(count);
        self.unsettled = None;
        Ok(())
    }

    async fn store(&mut self, items: Vec<Item>, cursor: Bytes, cost: Cost) -> Result<(), Pause> {
        let (slots, drafts) = take_apart(items, &self.counters);
        if let Some(large) = drafts.iter().find(|draft| draft.body.len() > self.limits.message_bytes_max) {
            let text = format!(
                "a message of {} bytes; `limits.message_bytes_max` is {}",
                large.body.len(),
                self.limits.message_bytes_max
            );
            let failure = Failure::new(code::TOO_LARGE, text);
            return Err(self.not_stored(Later { failure, after_ms: None }, drafts.len()));
        }
        self.handle.set(PollState::Storing);
        let (count, bytes) = (drafts.len(), drafts.iter().map(|draft| draft.body.len()).sum());
        let arrival = Arrival { at: self.clock.now(), cost, parent: None };
        let stored = self.intake.submit(arrival, drafts, cursor.clone()).await;
        let fates = stored.map_err(|later| self.not_stored(later, count))?;
        self.counters.bytes_in(bytes);
        fates.iter().for_each(|fate| count_fate(&self.counters, fate));
        self.cursor = cursor;
        self.unsettled = Some(receipts(slots, fates));
        Ok(())
    }

    fn failed(&mut self, error: ports::PollError) -> Pause {
        if matches!(error, ports::PollError::Fault(_)) {
            self.counters.fault();
        }
        self.pace.failed(error)
    }

    fn not_stored(&mut self, later: Later, count: usize) -> Pause {
        (0..count.max(1)).for_each(|_| self.counters.not_stored(&later.failure.code));
        self.pace.refused(later)
    }

    fn unreadable(&mut self, text: String) -> Pause {
        let failure = Failure::new(code::UNAVAILABLE, format!("the store cannot be read: {text}"));
        self.pace.refused(Later { failure, after_ms: None })
    }

    /// A little apart from other sources that fail for the same reason.
    async fn wait(&mut self, pause: Pause) {
        let Pause { wait, failure, needs_person } = pause;
        self.handle.set(match needs_person {
            true => PollState::Misconfigured(failure),
            false => PollState::Waiting(failure),
        });
        let spread = rand::rng().random_range(0.9..1.1);
        sleep(wait.mul_f64(spread)).await;
    }
}
