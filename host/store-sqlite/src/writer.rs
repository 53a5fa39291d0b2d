//! The one connection that writes, and what it knows of the store.
//!
//! What a batch becomes in the database is in `transaction`; here is what goes before it and what
//! follows, also when it fails or nobody waits for its end.

use std::path::{Path, PathBuf};

use portway_model::{InterfaceId, Timestamp};
use portway_store::{
    Durability, ErrorKind, MessageOutcome, NewMessage, Numbers, Registered, ResultOutcome, StoreError,
    Topology, WriteBatch, WriteOutcome,
};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::body::{self, BodyId, CHUNK_BYTES};
use crate::error::{damaged, failed};
use crate::maintenance::Log;
use crate::message::{BATCH_MAX, Candidate};
use crate::open::writer_options;
use crate::retention::{self, Passes, Pruned};
use crate::script::run_once;
use crate::transaction::{Counts, GivenUp, Transaction, outcome};
use crate::{dedupe, mark, register, result, suspect};

/// The writing side of a store.
pub(crate) struct Writer {
    path: PathBuf,
    /// None: its thread died, or the store is closed.
    connection: Option<SqliteConnection>,
    /// What the connection flushes at; none: not known.
    flushes: Option<Durability>,
    /// A transaction was begun whose end was not seen.
    unsettled: bool,
    closed: bool,
    /// The highest number given to a message.
    last_id: i64,
    next_body: BodyId,
    /// Interfaces and destinations that were ever registered.
    pub(crate) numbers: Numbers,
    /// There are suspects, which a result has to forget.
    suspects: bool,
    /// The log, about.
    pub(crate) log: Log,
    /// An engine registered since the store was opened.
    registered: bool,
    passes: Passes,
}

impl Writer {
    /// `log_bytes`: what is in the log from before.
    pub(crate) async fn new(
        path: &Path,
        mut connection: SqliteConnection,
        log_bytes: u64,
    ) -> Result<Self, sqlx::Error> {
        let numbers = register::numbers(&mut connection).await?;
        let next_body = body::remove_orphans(&mut connection).await?;
        let suspects = suspect::any(&mut connection).await?;
        let last_id = last_id(&mut connection).await?;
        Ok(Writer {
            path: path.to_path_buf(),
            connection: Some(connection),
            flushes: None,
            unsettled: false,
            closed: false,
            last_id,
            next_body,
            numbers,
            suspects,
            log: Log { written: log_bytes, moved: 0 },
            registered: false,
            passes: Passes::default(),
        })
    }

    /// The connection, outside of any transaction.
    pub(crate) async fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        if self.closed {
            return Err(StoreError::new(ErrorKind::Unavailable, "the store is closed"));
        }
        if self.unsettled {
            self.settle().await?;
        }
        match &mut self.connection {
            Some(connection) => Ok(connection),
            None => Err(connection_lost()),
        }
    }

    /// After a transaction whose end was not seen (its caller went away, or the connection died):
    /// ends it, and reads what it may have changed.
    async fn settle(&mut self) -> Result<(), StoreError> {
        if let Some(connection) = &mut self.connection {
            match run_once(connection, "ROLLBACK").await {
                // An error of the database: no transaction is open, which is what is wanted.
                Ok(()) | Err(sqlx::Error::Database(_)) => {}
                Err(_) => self.connection = None,
            }
        }
        let error = |error| failed("open the store again", error);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                self.flushes = None;
                writer_options(&self.path).connect().await.map_err(error)?
            }
        };
        self.last_id = last_id(&mut connection).await.map_err(error)?;
        self.suspects = suspect::any(&mut connection).await.map_err(error)?;
        self.connection = Some(connection);
        self.unsettled = false;
        Ok(())
    }

    /// Makes the next commits flush, or not. Has no effect inside a transaction.
    pub(crate) async fn set_durability(&mut self, durability: Durability) -> Result<(), StoreError> {
        if self.flushes == Some(durability) {
            return Ok(());
        }
        let sql = match durability {
            Durability::Strict => "PRAGMA synchronous = FULL",
            Durability::Relaxed => "PRAGMA synchronous = NORMAL",
        };
        let set = run_once(self.connection().await?, sql).await;
        set.map_err(|error| failed("set the flush of the store", error))?;
        self.flushes = Some(durability);
        Ok(())
    }

    pub(crate) async fn write(&mut self, batch: &WriteBatch) -> Result<WriteOutcome, StoreError> {
        self.numbers.check(batch)?;
        if batch.messages.len() > BATCH_MAX {
            return Err(StoreError::new(
                ErrorKind::Refused,
                format!("a batch has more than {BATCH_MAX} messages"),
            ));
        }
        self.set_durability(batch.durability).await?;
        let mut candidates = candidates(batch);
        let written = self.write_ahead(&mut candidates).await;
        let outcome = match written {
            Ok(()) => self.write_either_way(batch, &candidates).await,
            Err(error) => Err(error),
        };
        self.remove_unused(&candidates, &outcome).await;
        let outcome = outcome?;
        let bodies: u64 = candidates.iter().map(|candidate| candidate.new.draft.body.len() as u64).sum();
        self.log.written += bodies + 128 * (candidates.len() + batch.results.len()) as u64 + 8192;
        Ok(outcome)
    }

    async fn write_ahead(&mut self, candidates: &mut [Candidate<'_>]) -> Result<(), StoreError> {
        for candidate in
            candidates.iter_mut().filter(|candidate| candidate.new.draft.body.len() > CHUNK_BYTES)
        {
            let id = self.next_body;
            self.next_body = BodyId(id.0 + 1);
            candidate.body_id = Some(id);
            body::write_ahead(self.connection().await?, id, &candidate.new.draft.body).await?;
        }
        Ok(())
    }

    /// Removes large bodies whose message was not stored. What is left because this fails as well
    /// is removed when the store is opened the next time.
    async fn remove_unused(
        &mut self,
        candidates: &[Candidate<'_>],
        outcome: &Result<WriteOutcome, StoreError>,
    ) {
        if body::written_ahead(candidates).next().is_none() {
            return;
        }
        let unused: Vec<BodyId> = match outcome {
            Ok(outcome) => unused(candidates, outcome),
            Err(error) => match error.kind() {
                ErrorKind::Refused | ErrorKind::Full | ErrorKind::Unavailable => {
                    body::written_ahead(candidates).collect()
                }
                // Perhaps they are used.
                ErrorKind::Unknown | ErrorKind::Fatal => Vec::new(),
            },
        };
        if let Ok(connection) = self.connection().await {
            let removed = body::remove(connection, unused).await;
            removed.unwrap_or_else(|error| tracing::warn!(%error, "large bodies were not removed"));
        }
    }

    /// As if all results counted; if they did not, once more with a look at which do.
    async fn write_either_way(
        &mut self,
        batch: &WriteBatch,
        candidates: &[Candidate<'_>],
    ) -> Result<WriteOutcome, StoreError> {
        let all = Counts { counts: vec![true; batch.results.len()], judged: false };
        match self.transact(batch, candidates, &all).await {
            Ok(outcome) => return Ok(outcome),
            Err(GivenUp::Failed(error)) => return Err(error),
            Err(GivenUp::ResultsDiffer) => {}
        }
        let counts = result::judge(self.connection().await?, &batch.results).await?;
        let counts = Counts { counts, judged: true };
        match self.transact(batch, candidates, &counts).await {
            Ok(outcome) => Ok(outcome),
            Err(GivenUp::Failed(error)) => Err(error),
            Err(GivenUp::ResultsDiffer) => Err(damaged("a delivery is not where it was read")),
        }
    }

    /// One transaction. Whatever goes wrong, the connection is outside of it afterwards, or known
    /// not to be.
    async fn transact(
        &mut self,
        batch: &WriteBatch,
        candidates: &[Candidate<'_>],
        counts: &Counts,
    ) -> Result<WriteOutcome, GivenUp> {
        match self.try_transact(batch, candidates, counts).await {
            Ok(outcome) => Ok(outcome),
            Err(GivenUp::Failed(error)) if error.kind() == ErrorKind::Unknown => Err(GivenUp::Failed(error)),
            Err(given_up) => {
                // Ended at once, so that the log is free; if that fails, the next call tries again.
                let _ = self.settle().await;
                Err(given_up)
            }
        }
    }

    async fn try_transact(
        &mut self,
        batch: &WriteBatch,
        candidates: &[Candidate<'_>],
        counts: &Counts,
    ) -> Result<WriteOutcome, GivenUp> {
        let counting: Vec<&Candidate<'_>> = candidates
            .iter()
            .filter(|candidate| candidate.result.is_none_or(|index| counts.counts.get(index) == Some(&true)))
            .collect();
        // Also ends what an earlier transaction left, which the number depends on.
        self.connection().await?;
        let first_id = self.last_id + 1;
        let (numbered, remembered) =
            dedupe::number(self.connection().await?, &counting, first_id, batch.now).await?;
        let mut outcome = outcome(batch, &counts.counts, &numbered);
        let last_id = numbered.last().map_or(self.last_id, |last| last.id);
        let suspects = self.suspects;
        let Some(connection) = self.connection.as_mut() else { return Err(connection_lost().into()) };
        self.unsettled = true;
        let mut transaction = Transaction::new(connection, batch, counts);
        transaction.forget_suspects = suspects;
        transaction.store(&numbered, &remembered).await?;
        transaction.act(&mut outcome).await?;
        transaction.commit(&outcome, last_id).await?;
        self.unsettled = false;
        self.last_id = last_id;
        self.suspects = suspects || !batch.suspects.is_empty();
        Ok(outcome)
    }

    /// Gives numbers to what a project has, and marks the store as in use.
    pub(crate) async fn register(
        &mut self,
        topology: &Topology,
        engine: &str,
    ) -> Result<Registered, StoreError> {
        self.set_durability(Durability::Strict).await?;
        self.connection().await?;
        let Some(connection) = self.connection.as_mut() else { return Err(connection_lost()) };
        self.unsettled = true;
        let registered = register::register(connection, topology, engine).await;
        if registered.is_err() {
            let _ = self.settle().await;
        }
        let mut registered = registered?;
        self.unsettled = false;
        self.numbers.insert_all(&registered);
        // What this engine itself has in hand is not suspect.
        registered.unclean &= !std::mem::replace(&mut self.registered, true);
        Ok(registered)
    }

    /// Removes at most `limit` old messages, in one transaction; and as many expired dedupe keys.
    pub(crate) async fn prune(
        &mut self,
        interface: InterfaceId,
        before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> Result<Pruned, StoreError> {
        self.set_durability(Durability::Relaxed).await?;
        self.connection().await?;
        let Some(connection) = self.connection.as_mut() else { return Err(connection_lost()) };
        self.unsettled = true;
        let pruned = async {
            retention::expire(connection, now, limit).await?;
            retention::prune(connection, &mut self.passes, interface, before, limit).await
        };
        let pruned = pruned.await;
        if pruned.is_ok() {
            self.unsettled = false;
        } else {
            let _ = self.settle().await;
        }
        pruned
    }

    pub(crate) async fn find_mark(&mut self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        let query = sqlx::query_as("SELECT mark, outcome FROM last_write");
        let row: Result<(i64, Vec<u8>), sqlx::Error> = query.fetch_one(self.connection().await?).await;
        let (found, outcome) = row.map_err(|error| failed("read the last transaction", error))?;
        if found != mark.cast_signed() || outcome.is_empty() {
            return Ok(None);
        }
        mark::decode(&outcome).map(Some).ok_or_else(|| damaged("the last transaction cannot be read"))
    }

    /// Flushes everything, marks the end as orderly and lets go.
    pub(crate) async fn close(&mut self) -> Result<(), StoreError> {
        self.set_durability(Durability::Strict).await?;
        let connection = self.connection().await?;
        let error = |error| failed("close the store", error);
        run_once(connection, "UPDATE last_write SET in_use = 0").await.map_err(error)?;
        // Not needed for safety; it saves the next start the work.
        let moved = run_once(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await;
        self.closed = true;
        if let Some(connection) = self.connection.take() {
            connection.close().await.map_err(error)?;
        }
        moved.map_err(error)
    }
}

fn connection_lost() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "the connection is lost")
}

async fn last_id(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT message_id FROM last_write").fetch_one(connection).await
}

/// Every message a batch may store: its own, then those of routes.
fn candidates(batch: &WriteBatch) -> Vec<Candidate<'_>> {
    fn candidate(new: &NewMessage, result: Option<usize>) -> Candidate<'_> {
        Candidate { new, result, body_id: None }
    }
    let mut candidates: Vec<Candidate<'_>> = batch.messages.iter().map(|new| candidate(new, None)).collect();
    for (index, result) in batch.results.iter().enumerate() {
        candidates.extend(result::routes(result).iter().map(|new| candidate(new, Some(index))));
    }
    candidates
}

/// Bodies written ahead whose message became a duplicate or did not count.
fn unused(candidates: &[Candidate<'_>], outcome: &WriteOutcome) -> Vec<BodyId> {
    let mut own = outcome.messages.iter();
    let mut routed: Vec<_> = outcome
        .results
        .iter()
        .map(|result| match result {
            ResultOutcome::Applied(messages) => messages.iter(),
            ResultOutcome::Stale => [].iter(),
        })
        .collect();
    let mut unused = Vec::new();
    for candidate in candidates {
        let outcome = match candidate.result {
            None => own.next(),
            Some(index) => routed.get_mut(index).and_then(Iterator::next),
        };
        let is_stored = matches!(outcome, Some(MessageOutcome::Stored { .. }));
        unused.extend(candidate.body_id.filter(|_| !is_stored));
    }
    unused
}
