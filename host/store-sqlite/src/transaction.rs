//! How a batch becomes a transaction.
//!
//! A batch is two journeys to the database: everything it stores, then (when the results turned out
//! to count) its trace and COMMIT. A batch of messages alone is one.

use portway_store::{DeliveryResult, ResultOutcome, StoreError, WriteBatch, WriteOutcome};
use sqlx::sqlite::SqliteConnection;

use crate::dedupe::{self, Remembered};
use crate::error::{commit_failed, failed};
use crate::message::{self, Numbered};
use crate::script::{ROWS_MAX, Script};
use crate::{action, mark, result, suspect};

/// Which results of a batch count.
pub(crate) struct Counts {
    pub(crate) counts: Vec<bool>,
    /// What is stored was looked at; otherwise it is an assumption.
    pub(crate) judged: bool,
}

/// Why a transaction was given up.
pub(crate) enum GivenUp {
    /// Some results did not count, but nobody looked which.
    ResultsDiffer,
    Failed(StoreError),
}

impl From<StoreError> for GivenUp {
    fn from(error: StoreError) -> Self {
        GivenUp::Failed(error)
    }
}

/// A transaction while it is made.
pub(crate) struct Transaction<'a> {
    connection: &'a mut SqliteConnection,
    batch: &'a WriteBatch,
    /// Results that count.
    results: Vec<&'a DeliveryResult>,
    /// Those of them that change a delivery: all, or the last of each.
    last_results: Vec<&'a DeliveryResult>,
    pub(crate) forget_suspects: bool,
    script: Script,
    /// Deliveries that results have changed.
    changed: u64,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(connection: &'a mut SqliteConnection, batch: &'a WriteBatch, counts: &Counts) -> Self {
        let counting = batch.results.iter().zip(&counts.counts).filter(|(_, counts)| **counts);
        let results: Vec<_> = counting.map(|(result, _)| result).collect();
        Transaction {
            connection,
            batch,
            last_results: if counts.judged { result::last_of_each(&results) } else { results.clone() },
            results,
            forget_suspects: false,
            script: Script::default(),
            changed: 0,
        }
    }

    /// Everything but its end.
    pub(crate) async fn store(
        &mut self,
        numbered: &[Numbered<'_>],
        remembered: &[Remembered<'_>],
    ) -> Result<(), GivenUp> {
        self.script.step("BEGIN IMMEDIATE");
        if numbered.len() >= ROWS_MAX || self.results.len() >= ROWS_MAX {
            // By itself, so that the large scripts that follow are always the same.
            self.run("begin to store").await?;
        }
        self.store_messages(numbered, remembered).await?;
        if !numbered.is_empty() && !self.results.is_empty() {
            // Apart from each other, so that there are as many scripts to keep prepared as there are
            // shapes of both, and not as many as there are pairs of shapes.
            self.run("store messages").await?;
        }
        self.settle_deliveries().await?;
        let looks =
            !self.results.is_empty() || !self.batch.actions.is_empty() || !self.batch.suspects.is_empty();
        if looks {
            self.run("store results").await?;
        }
        if self.changed == self.last_results.len() as u64 { Ok(()) } else { Err(GivenUp::ResultsDiffer) }
    }

    async fn store_messages(
        &mut self,
        numbered: &[Numbered<'_>],
        remembered: &[Remembered<'_>],
    ) -> Result<(), StoreError> {
        let now = self.batch.now;
        for chunk in numbered.chunks(ROWS_MAX) {
            message::insert_messages(&mut self.script, chunk, now);
            message::insert_bodies(&mut self.script, chunk);
            if chunk.len() == ROWS_MAX {
                self.run("store messages").await?;
            }
        }
        for chunk in remembered.chunks(ROWS_MAX) {
            dedupe::remember(&mut self.script, chunk);
            if chunk.len() == ROWS_MAX {
                self.run("remember duplicates").await?;
            }
        }
        if let Some(first) = numbered.first() {
            message::insert_deliveries(&mut self.script, numbered, first.id, now);
        }
        Ok(())
    }

    async fn settle_deliveries(&mut self) -> Result<(), StoreError> {
        let now = self.batch.now;
        let (groups, mixed) = result::sort(&self.last_results);
        for group in &groups {
            result::apply_group(&mut self.script, group, now);
        }
        for chunk in mixed.chunks(ROWS_MAX) {
            result::apply_mixed(&mut self.script, chunk, now);
            if chunk.len() == ROWS_MAX {
                self.run("store results").await?;
            }
        }
        result::record_attempts(&mut self.script, &self.results);
        result::follow_deliveries(&mut self.script, &self.last_results);
        if self.forget_suspects {
            suspect::forget(&mut self.script, &self.results);
        }
        Ok(())
    }

    /// Actions and suspects, which read what was stored before them.
    pub(crate) async fn act(&mut self, outcome: &mut WriteOutcome) -> Result<(), StoreError> {
        if !self.batch.actions.is_empty() {
            outcome.actions = action::act(self.connection, &self.batch.actions, self.batch.now).await?;
        }
        if !self.batch.suspects.is_empty() {
            outcome.suspects = suspect::count(self.connection, &self.batch.suspects).await?;
        }
        Ok(())
    }

    pub(crate) async fn commit(mut self, outcome: &WriteOutcome, last_id: i64) -> Result<(), StoreError> {
        self.script
            .step("UPDATE last_write SET message_id = ?, mark = ?, outcome = ?")
            .bind(last_id)
            .bind(self.batch.mark.cast_signed())
            .bind(mark::encode(outcome))
            .step("COMMIT");
        let committed = self.script.run(self.connection).await;
        committed.map(drop).map_err(|error| commit_failed("store the batch", error))
    }

    async fn run(&mut self, what: &str) -> Result<(), StoreError> {
        let script = std::mem::take(&mut self.script);
        self.changed += script.run(self.connection).await.map_err(|error| failed(what, error))?;
        Ok(())
    }
}

/// What became of a batch's messages and results, from what its candidates became.
pub(crate) fn outcome(batch: &WriteBatch, counts: &[bool], numbered: &[Numbered<'_>]) -> WriteOutcome {
    let stale =
        |counts: &bool| if *counts { ResultOutcome::Applied(Vec::new()) } else { ResultOutcome::Stale };
    let mut results: Vec<ResultOutcome> = counts.iter().map(stale).collect();
    let mut messages = Vec::with_capacity(batch.messages.len());
    for message in numbered {
        match message.candidate.result {
            None => messages.push(message.outcome()),
            Some(index) => {
                if let Some(ResultOutcome::Applied(routed)) = results.get_mut(index) {
                    routed.push(message.outcome());
                }
            }
        }
    }
    WriteOutcome { messages, results, actions: Vec::new(), suspects: Vec::new() }
}
