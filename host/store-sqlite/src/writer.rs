//! The one connection that writes, and what it knows of the store.
//!
//! What a batch becomes in the database is in `transaction`; here is what goes before it and what
//! follows, also when it fails.

use portway_model::{Epoch, GroupId, InterfaceId, RetentionState};
use portway_store::{
    ConfirmRetention, Durability, ErrorKind, Expired, Expiry, KeptBeyond, MoveRetention, Moved, Numbers,
    Registered, StoreError, Tenure, Topology, WriteBatch, WriteOutcome, mark,
};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::sync::Arc;

use crate::body::{self, Ahead, BodyId};
use crate::error::{closed, damaged, failed};
use crate::expiry::{self, Passes};
use crate::maintenance::Log;
use crate::retention::Tiers;
use crate::transaction::{Writing, begin, commit};
use crate::{destination, owner, register, retention, suspect, term};

/// The writing side of a store.
pub(crate) struct Writer {
    /// None: the store is closed.
    connection: Option<Connection>,
    /// What the connection flushes at; none: not known.
    flushes: Option<Durability>,
    /// A job ended in its middle: what is known here may not be what is stored.
    doubted: bool,
    known: Known,
    next_body: BodyId,
    /// The log, about.
    pub(crate) log: Log,
    /// What the engine owns it owns in this epoch; none: nothing yet.
    epoch: Option<Epoch>,
    passes: Passes,
    /// How far changes of retention have looked through their interfaces.
    moved_to: HashMap<InterfaceId, i64>,
}

/// What is stored, so that it need not be read with every batch.
struct Known {
    /// The highest number given to a message.
    last_id: i64,
    /// Interfaces and destinations that were ever registered.
    numbers: Numbers,
    /// There are suspects, which a result has to forget.
    suspects: bool,
    /// Messages whose terms wait to be filed, about: some may be removed meanwhile.
    fresh_terms: usize,
    tiers: Arc<Tiers>,
}

const LAST_ID: &str = "SELECT message_id FROM last_write";

impl Known {
    fn read(connection: &Connection) -> rusqlite::Result<Known> {
        Ok(Known {
            last_id: connection.query_row(LAST_ID, [], |row| row.get(0))?,
            numbers: register::numbers(connection)?,
            suspects: suspect::any(connection)?,
            fresh_terms: term::count_fresh(connection)?,
            tiers: Arc::new(Tiers::read(connection)?),
        })
    }
}

const FIND_MARK: &str = "SELECT outcome FROM last_write WHERE mark = ?";
const END: &str = "UPDATE last_write SET in_use = 0";

impl Writer {
    /// `log_bytes`: what is in the log from before.
    pub(crate) fn new(connection: Connection, log_bytes: u64) -> rusqlite::Result<Self> {
        let next_body = body::remove_orphans(&connection)?;
        Ok(Writer {
            known: Known::read(&connection)?,
            connection: Some(connection),
            flushes: None,
            doubted: false,
            next_body,
            log: Log { written: log_bytes, moved: 0 },
            epoch: None,
            passes: Passes::default(),
            moved_to: HashMap::new(),
        })
    }

    /// The connection, outside of any transaction.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        // A transaction that failed was rolled back where it failed, if that was possible.
        if self.doubted || !connection.is_autocommit() {
            let error = |error| failed("settle the store after a failure", error);
            if !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK").map_err(error)?;
            }
            self.known = Known::read(connection).map_err(error)?;
            self.flushes = None;
            self.doubted = false;
        }
        Ok(connection)
    }

    /// After a job that panicked.
    pub(crate) fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Makes the next commits flush, or not. Has no effect inside a transaction.
    fn set_durability(&mut self, durability: Durability) -> Result<(), StoreError> {
        // May forget what it flushes at.
        self.connection()?;
        if self.flushes == Some(durability) {
            return Ok(());
        }
        let sql = match durability {
            Durability::Strict => "PRAGMA synchronous = FULL",
            Durability::Relaxed => "PRAGMA synchronous = NORMAL",
        };
        let set = self.connection()?.execute_batch(sql);
        set.map_err(|error| failed("set the flush of the store", error))?;
        self.flushes = Some(durability);
        Ok(())
    }

    pub(crate) fn write(&mut self, batch: &WriteBatch) -> Result<WriteOutcome, StoreError> {
        self.set_durability(batch.durability)?;
        self.known.numbers.check(batch)?;
        let mut ahead = Ahead::default();
        let mut next_body = self.next_body;
        let written = ahead.write(self.connection()?, batch, &mut next_body);
        self.next_body = next_body;
        let outcome = written.and_then(|()| self.transact(batch, &mut ahead));
        self.remove_unused(&ahead, &outcome);
        let outcome = outcome?;
        let bodies: u64 = batch.new_messages().map(|message| message.body().len() as u64).sum();
        self.log.written += bodies + 128 * (batch.new_messages().count() + batch.results.len()) as u64 + 8192;
        Ok(outcome)
    }

    fn transact(&mut self, batch: &WriteBatch, ahead: &mut Ahead<'_>) -> Result<WriteOutcome, StoreError> {
        let what = "store the batch";
        let Known { last_id, suspects, fresh_terms, .. } = self.known;
        let epoch = self.epoch;
        let tiers = Arc::clone(&self.known.tiers);
        let transaction = begin(self.connection()?, what)?;
        let mut writing = Writing {
            connection: &transaction,
            now: batch.now,
            epoch,
            tiers: &tiers,
            ahead,
            last_id,
            suspects,
            fresh_terms,
        };
        let outcome = writing.store(batch)?;
        let Writing { last_id, suspects, fresh_terms, .. } = writing;
        commit(transaction, what)?;
        self.known.last_id = last_id;
        self.known.suspects = suspects;
        self.known.fresh_terms = fresh_terms;
        Ok(outcome)
    }

    /// Removes large bodies whose message was not stored. What is left because this fails as well
    /// is removed when the store is opened the next time.
    fn remove_unused(&mut self, ahead: &Ahead<'_>, outcome: &Result<WriteOutcome, StoreError>) {
        let unused: Vec<BodyId> = match outcome.as_ref().map_err(StoreError::kind) {
            Ok(_) => ahead.unused().collect(),
            Err(ErrorKind::Refused | ErrorKind::Full | ErrorKind::Unavailable) => ahead.all().collect(),
            // Perhaps they are used.
            Err(ErrorKind::Unknown | ErrorKind::Fatal) => Vec::new(),
        };
        if unused.is_empty() {
            return;
        }
        if let Ok(connection) = self.connection() {
            let removed = body::remove(connection, unused);
            removed.unwrap_or_else(|error| tracing::warn!(%error, "large bodies were not removed"));
        }
    }

    /// Gives numbers to what a project has.
    pub(crate) fn register(&mut self, topology: &Topology) -> Result<Registered, StoreError> {
        let what = "register interfaces";
        self.set_durability(Durability::Strict)?;
        let transaction = begin(self.connection()?, what)?;
        let registered = register::register(&transaction, topology);
        let mut registered = registered.map_err(|error| failed(what, error))?;
        registered.pauses = destination::pauses(&transaction)?;
        commit(transaction, what)?;
        self.known.numbers.insert_all(&registered);
        for (interface, state) in &registered.retentions {
            Arc::make_mut(&mut self.known.tiers).set(*interface, state);
        }
        Ok(registered)
    }

    /// Owns groups, and marks the store as in use.
    pub(crate) fn claim(&mut self, groups: &[GroupId], engine: &str) -> Result<Tenure, StoreError> {
        let what = "own groups";
        self.set_durability(Durability::Strict)?;
        let before = self.epoch;
        let transaction = begin(self.connection()?, what)?;
        let claimed = owner::claim(&transaction, groups, engine, before);
        let (epoch, in_use) = claimed.map_err(|error| failed(what, error))?;
        let pauses = destination::pauses(&transaction)?;
        commit(transaction, what)?;
        self.epoch = Some(epoch);
        // What this engine itself has in hand is not suspect; and one that is gone sends nothing more.
        Ok(Tenure { epoch, unclean: in_use && before.is_none(), overlaps: false, pauses })
    }

    /// Removes some old messages, in one transaction; and some expired dedupe keys.
    pub(crate) fn expire(&mut self, expiry: &Expiry) -> Result<Expired, StoreError> {
        let what = "remove old messages";
        let error = |error| failed(what, error);
        self.set_durability(Durability::Relaxed)?;
        let passes = std::mem::take(&mut self.passes);
        let transaction = begin(self.connection()?, what)?;
        expiry::forget_keys(&transaction, expiry.now, expiry.limit).map_err(error)?;
        retention::save_age(&transaction, expiry.aged_to).map_err(error)?;
        let (expired, passes) = passes.step(&transaction, expiry).map_err(error)?;
        commit(transaction, what)?;
        self.passes = passes;
        Ok(expired)
    }

    /// One step of a change of retention, in one transaction.
    pub(crate) fn move_retention(&mut self, step: &MoveRetention) -> Result<Moved, StoreError> {
        let what = "change the retention of messages";
        self.set_durability(Durability::Relaxed)?;
        let after = self.moved_to.remove(&step.interface).unwrap_or(0);
        let transaction = begin(self.connection()?, what)?;
        let (moved, seen_to) =
            retention::move_some(&transaction, step, after).map_err(|error| failed(what, error))?;
        commit(transaction, what)?;
        Arc::make_mut(&mut self.known.tiers).set(step.interface, &moved.state);
        self.moved_to.extend(seen_to.map(|seen_to| (step.interface, seen_to)));
        Ok(moved)
    }

    /// Records that an operator agrees to what waits.
    pub(crate) fn confirm_retention(
        &mut self,
        confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError> {
        let what = "confirm a retention";
        self.set_durability(Durability::Strict)?;
        let transaction = begin(self.connection()?, what)?;
        let state = retention::confirm(&transaction, confirm).map_err(|error| failed(what, error))?;
        commit(transaction, what)?;
        if let Some(state) = &state {
            Arc::make_mut(&mut self.known.tiers).set(confirm.interface, state);
        }
        Ok(state)
    }

    /// What stays beyond its window, as the last pass counted it.
    pub(crate) fn kept(&self) -> HashMap<InterfaceId, KeptBeyond> {
        self.passes.kept.clone()
    }

    pub(crate) fn find_mark(&mut self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        let found = self.connection()?.query_row(FIND_MARK, [mark.cast_signed()], |row| row.get(0));
        let outcome: Option<Vec<u8>> =
            found.optional().map_err(|error| failed("read the last transaction", error))?;
        match outcome {
            None => Ok(None),
            // No batch was ever written.
            Some(outcome) if outcome.is_empty() => Ok(None),
            Some(outcome) => match mark::decode(&outcome) {
                Some(outcome) => Ok(Some(outcome)),
                None => Err(damaged("the last transaction cannot be read")),
            },
        }
    }

    /// Flushes everything, marks the end as orderly and lets go.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        let error = |error| failed("close the store", error);
        self.set_durability(Durability::Strict)?;
        let connection = self.connection()?;
        connection.execute(END, []).map_err(error)?;
        // Not needed for safety; it saves the next start the work.
        let moved = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        if let Some(connection) = self.connection.take() {
            connection.close().map_err(|(_, cause)| error(cause))?;
        }
        moved.map_err(error)
    }
}
