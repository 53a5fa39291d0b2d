//! How a batch becomes a transaction.

use portway_model::{Epoch, Timestamp};
use portway_store::{
    DeliveryResult, MessageOutcome, NewMessage, ResultOutcome, StoreError, WriteBatch, WriteOutcome, mark,
};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::body::Ahead;
use crate::error::{commit_failed, failed};
use crate::retention::Tiers;
use crate::{action, cursor, destination, message, result, state, suspect, term};

/// Begins a transaction that writes. Dropped without [`commit`] it is rolled back, also by a panic.
pub(crate) fn begin<'a>(connection: &'a mut Connection, what: &str) -> Result<Transaction<'a>, StoreError> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    begun.map_err(|error| failed(what, error))
}

pub(crate) fn commit(transaction: Transaction<'_>, what: &str) -> Result<(), StoreError> {
    transaction.commit().map_err(|error| commit_failed(what, error))
}

/// A batch while it is written.
pub(crate) struct Writing<'a, 'b> {
    /// Inside a transaction.
    pub(crate) connection: &'a Connection,
    pub(crate) now: Timestamp,
    /// In which the engine owns what it owns.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) tiers: &'a Tiers,
    pub(crate) ahead: &'a mut Ahead<'b>,
    /// The highest number given to a message.
    pub(crate) last_id: i64,
    /// There are suspects, which a result has to forget.
    pub(crate) suspects: bool,
    /// Messages whose terms wait to be filed.
    pub(crate) fresh_terms: usize,
}

const TRACE: &str = "UPDATE last_write SET message_id = ?, mark = ?, outcome = ?";

impl Writing<'_, '_> {
    /// Everything but the commit.
    pub(crate) fn store(&mut self, batch: &WriteBatch) -> Result<WriteOutcome, StoreError> {
        let messages = self.store_messages(&batch.messages)?;
        cursor::keep(self.connection, &batch.cursors, self.now)?;
        let outcome = WriteOutcome {
            messages,
            results: self.store_results(&batch.results)?,
            actions: action::act(self.connection, &batch.actions, self.now)?,
            suspects: suspect::count(self.connection, &batch.suspects)?,
            // There are no others.
            elsewhere: Vec::new(),
        };
        destination::act(self.connection, &batch.destination_actions, self.now)?;
        self.suspects |= !batch.suspects.is_empty();
        self.leave_trace(batch.mark, &outcome).map_err(|error| failed("store the batch", error))?;
        Ok(outcome)
    }

    fn store_messages(&mut self, messages: &[NewMessage]) -> Result<Vec<MessageOutcome>, StoreError> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let error = |error| failed("store messages", error);
        let stored =
            message::insert(self.connection, messages, (self.tiers, self.now), self.ahead, &mut self.last_id);
        let stored = stored.map_err(error)?;
        self.fresh_terms += messages.iter().filter(|message| !message.terms.is_empty()).count();
        if self.fresh_terms >= term::FRESH_MAX {
            term::file(self.connection).map_err(error)?;
            self.fresh_terms = 0;
        }
        Ok(stored)
    }

    fn store_results(&mut self, results: &[DeliveryResult]) -> Result<Vec<ResultOutcome>, StoreError> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let error = |error| failed("store results", error);
        let counted = result::settle(self.connection, results, self.epoch, self.now).map_err(error)?;
        let counting =
            || results.iter().zip(&counted).filter(|(_, counted)| **counted).map(|(result, _)| result);
        result::follow_deliveries(self.connection, counting()).map_err(error)?;
        state::keep(self.connection, counting()).map_err(error)?;
        if self.suspects {
            // Of another epoch the record stays: the owner of now may be about to send it as well.
            let own = counting().filter(|result| self.epoch == Some(result.epoch));
            suspect::forget(self.connection, own)?;
        }
        let mut outcomes = Vec::with_capacity(results.len());
        for (result, counted) in results.iter().zip(&counted) {
            outcomes.push(match counted {
                true => ResultOutcome::Applied(self.store_messages(result::routes(result))?),
                false if result::is_disowned(result, self.epoch) => ResultOutcome::Disowned,
                false => ResultOutcome::Stale,
            });
        }
        Ok(outcomes)
    }

    fn leave_trace(&self, mark: u64, outcome: &WriteOutcome) -> rusqlite::Result<()> {
        let mut trace = self.connection.prepare_cached(TRACE)?;
        trace.execute(params![self.last_id, mark.cast_signed(), mark::encode(outcome)]).map(drop)
    }
}
