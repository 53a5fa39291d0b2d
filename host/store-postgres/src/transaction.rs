//! How a batch becomes a transaction.
//!
//! Results come before messages, though a batch is told the other way round: results are for messages of
//! earlier batches, so neither sees the other, and what their routes bring is stored in the same statements
//! as what was received. Everybody locks in this order: deliveries, messages, dedupe keys.

use portway_model::Timestamp;
use portway_store::{
    DeliveryResult, Durability, MessageOutcome, NewMessage, ResultOutcome, WriteBatch, WriteOutcome, mark,
};

use crate::day::Days;
use crate::error::Failed;
use crate::message::Inserted;
use crate::query::Session;
use crate::result::Pending;
use crate::{action, cursor, destination, message, result, state, suspect};

/// Begins a transaction that writes.
pub(crate) async fn begin(
    session: &mut Session,
    what: &'static str,
    durability: Durability,
) -> Result<(), Failed> {
    session
        .script(
            what,
            match durability {
                Durability::Strict => "BEGIN",
                Durability::Relaxed => "BEGIN; SET LOCAL synchronous_commit = off",
            },
        )
        .await
}

/// A batch while it is written.
pub(crate) struct Writing<'a> {
    /// Inside a transaction.
    pub(crate) session: &'a mut Session,
    pub(crate) engine: &'a str,
    pub(crate) days: &'a Days,
    pub(crate) now: Timestamp,
}

const TRACE: &str = "UPDATE last_write SET mark = $2, outcome = $3 WHERE engine = $1";

impl Writing<'_> {
    /// Everything but the commit; and the day its messages were stored on, if there are any.
    pub(crate) async fn store(&mut self, batch: &WriteBatch) -> Result<(WriteOutcome, Option<i32>), Failed> {
        if !batch.actions.is_empty() {
            action::hold(self.session, batch).await?;
        }
        let counted = self.settle(&batch.results).await?;
        let stored = self.store_messages(batch, &counted).await?;
        let day = stored.as_ref().map(|stored| stored.day);
        let mut outcomes = stored.map(|stored| stored.outcomes).unwrap_or_default().into_iter();
        let messages: Vec<MessageOutcome> = outcomes.by_ref().take(batch.messages.len()).collect();
        let results = batch.results.iter().zip(counted).map(|(result, counted)| match counted {
            true => ResultOutcome::Applied(outcomes.by_ref().take(result::routes(result).len()).collect()),
            false => ResultOutcome::Stale,
        });
        let results = results.collect();
        cursor::keep(self.session, &batch.cursors, self.now).await?;
        let actions = action::act(self.session, &batch.actions, self.now).await?;
        let suspects = suspect::count(self.session, &batch.suspects).await?;
        destination::act(self.session, &batch.destination_actions, self.now).await?;
        let outcome = WriteOutcome { messages, results, actions, suspects };
        let trace =
            sqlx::query(TRACE).bind(self.engine).bind(batch.mark.cast_signed()).bind(mark::encode(&outcome));
        self.session.execute("leave the mark of the batch", trace).await?;
        Ok((outcome, day))
    }

    /// Tells which results counted.
    async fn settle(&mut self, results: &[DeliveryResult]) -> Result<Vec<bool>, Failed> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let settled = result::settle(self.session, results, self.days, self.now).await?;
        result::follow_deliveries(self.session, &settled.finished(results), Pending::Before).await?;
        state::keep(self.session, settled.of(results)).await?;
        Ok(settled.counted)
    }

    /// The batch's own messages, then what the results that counted brought, in order.
    async fn store_messages(
        &mut self,
        batch: &WriteBatch,
        counted: &[bool],
    ) -> Result<Option<Inserted>, Failed> {
        let counting = batch.results.iter().zip(counted).filter(|(_, counted)| **counted);
        let routed = counting.flat_map(|(result, _)| result::routes(result));
        let messages: Vec<&NewMessage> = batch.messages.iter().chain(routed).collect();
        if messages.is_empty() {
            return Ok(None);
        }
        message::insert(self.session, &messages, self.now).await.map(Some)
    }
}
