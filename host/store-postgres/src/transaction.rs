//! How a batch becomes a transaction.
//!
//! Results come before messages, though a batch is told the other way round: results are for messages of
//! earlier batches, so neither sees the other, and what their routes bring is stored in the same statements
//! as what was received. Everybody locks in this order: engines, deliveries, messages, dedupe keys, owners.

use std::collections::BTreeSet;

use portway_model::{Epoch, GroupId, Timestamp};
use portway_store::{
    DeliveryResult, Durability, MessageOutcome, NewMessage, ResultOutcome, WriteBatch, WriteOutcome, mark,
};

use crate::day::Days;
use crate::error::Failed;
use crate::message::Inserted;
use crate::number::{self, small, stored};
use crate::query::{Session, value};
use crate::result::{Counted, Pending};
use crate::{action, cursor, destination, message, output, result, state, suspect};

/// Who may write at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Everybody else, but nobody changes in the meantime how long messages are kept.
    Beside(Durability),
    /// Nobody: whoever writes is waited for, and waits.
    Alone,
}

const STRICT: &str = "BEGIN;
    SELECT pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ': retention', 0))";
const RELAXED: &str = "BEGIN; SET LOCAL synchronous_commit = off;
    SELECT pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ': retention', 0))";
const ALONE: &str =
    "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ': retention', 0))";

/// Begins a transaction that writes. The lock comes first of all, and is one of memory only. Where it was waited for
/// in vain, the transaction that was begun for it is ended: nobody else knows of it.
pub(crate) async fn begin(session: &mut Session, what: &'static str, turn: Turn) -> Result<(), Failed> {
    let begin = match turn {
        Turn::Beside(Durability::Strict) => STRICT,
        Turn::Beside(Durability::Relaxed) => RELAXED,
        Turn::Alone => ALONE,
    };
    let begun = session.script(what, begin).await;
    if begun.is_err() {
        session.roll_back().await;
    }
    begun
}

/// A batch while it is written.
pub(crate) struct Writing<'a> {
    /// Inside a transaction.
    pub(crate) session: &'a mut Session,
    pub(crate) engine: &'a str,
    pub(crate) days: &'a Days,
    pub(crate) now: Timestamp,
    /// In which the engine owns what it owns, as far as it knows; zero: nothing.
    pub(crate) epoch: Epoch,
}

/// What a batch became, before its commit.
pub(crate) struct Stored {
    pub(crate) outcome: WriteOutcome,
    /// Number and tier of its messages, and the day they were stored on; none: it has none.
    pub(crate) places: Option<(Vec<(i64, i16)>, i32)>,
    /// How often others stored messages for groups of this engine, as far as this transaction sees.
    pub(crate) strangers: Vec<(GroupId, i64)>,
}

/// The last statement: the mark, and who has to know of what was stored. The owners of its groups are held
/// until the end of the transaction: who claims one waits, and then sees what was stored; or is seen here,
/// and told. Counting comes last, so that nobody waits for a transaction that may itself still wait.
const TRACE: &str = "WITH traced AS (UPDATE last_write SET mark = $2, outcome = $3 WHERE engine = $1),
    held AS (SELECT group_id, engine, clean FROM owners WHERE group_id = ANY ($4::int4[]) ORDER BY group_id
        FOR KEY SHARE),
    counted AS (
        UPDATE owners o SET strangers = o.strangers + 1 FROM held h
        WHERE o.group_id = h.group_id AND h.engine <> $1 AND NOT h.clean
        RETURNING o.group_id, o.engine)
    SELECT group_id, strangers FROM owners WHERE engine = $1 AND epoch = $5 AND strangers > 0
    UNION ALL
    SELECT group_id, CASE WHEN pg_notify('portway_' || to_hex(hashtextextended(current_schema() || ': news of '
        || engine, 0)), group_id::text) IS NULL THEN -2 ELSE -1 END FROM counted";

impl Writing<'_> {
    /// Everything but the commit.
    pub(crate) async fn store(&mut self, batch: &WriteBatch) -> Result<Stored, Failed> {
        if !batch.actions.is_empty() {
            if !batch.results.is_empty() {
                result::hold_epoch(self.session, self.engine).await?;
            }
            action::hold(self.session, batch).await?;
        }
        let settled = self.settle(&batch.results).await?;
        let counted = settled.as_ref().map_or(&[][..], |settled| &settled.counted);
        let stored = self.store_messages(batch, counted).await?;
        let (stored, places) =
            stored.map(|Inserted { outcomes, places, day }| (outcomes, (places, day))).unzip();
        let mut outcomes = stored.unwrap_or_default().into_iter();
        let messages: Vec<MessageOutcome> = outcomes.by_ref().take(batch.messages.len()).collect();
        let mut results = Vec::with_capacity(batch.results.len());
        for (result, counted) in batch.results.iter().zip(counted) {
            results.push(match (&settled, counted) {
                (Some(settled), false) => settled.refused(result),
                _ => ResultOutcome::Applied(outcomes.by_ref().take(result::routes(result).len()).collect()),
            });
        }
        cursor::keep(self.session, &batch.cursors, self.now).await?;
        let actions = action::act(self.session, &batch.actions, self.now).await?;
        let suspects = suspect::count(self.session, &batch.suspects).await?;
        destination::act(self.session, &batch.destination_actions, self.now).await?;
        // What is known of others is told once the transaction is committed.
        let outcome = WriteOutcome { messages, results, actions, suspects, elsewhere: Vec::new() };
        let strangers = self.leave_trace(batch, &outcome).await?;
        Ok(Stored { outcome, places, strangers })
    }

    async fn leave_trace(
        &mut self,
        batch: &WriteBatch,
        outcome: &WriteOutcome,
    ) -> Result<Vec<(GroupId, i64)>, Failed> {
        let mut groups: BTreeSet<i32> = batch.new_messages().map(|message| small(message.group.0)).collect();
        groups.extend(action::groups(self.session, &batch.actions).await?);
        let acted_on = destination::groups(self.session, &batch.destination_actions).await?;
        groups.extend(&acted_on);
        let trace = sqlx::query(TRACE)
            .bind(self.engine)
            .bind(batch.mark.cast_signed())
            .bind(mark::encode(outcome))
            .bind(groups.into_iter().collect::<Vec<_>>())
            .bind(stored(self.epoch.0));
        let told = self.session.read("leave the mark of the batch", trace, |row| {
            Ok((GroupId(number::read_u32(value(row, 0)?)?), value::<i64>(row, 1)?))
        });
        // Those of others, which were told, come below zero.
        let (own, of_others): (Vec<_>, Vec<_>) = told.await?.into_iter().partition(|(_, count)| *count > 0);
        destination::check_owned(&acted_on, of_others.iter().map(|(group, _)| *group))?;
        Ok(own)
    }

    /// Tells which results counted.
    async fn settle(&mut self, results: &[DeliveryResult]) -> Result<Option<Counted>, Failed> {
        if results.is_empty() {
            return Ok(None);
        }
        let settled = result::settle(self.session, results, self.days, (self.engine, self.now)).await?;
        result::follow_deliveries(self.session, &settled.finished(results), Pending::Before).await?;
        state::keep(self.session, settled.of(results)).await?;
        output::keep(self.session, &settled, results, self.now).await?;
        Ok(Some(settled))
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
