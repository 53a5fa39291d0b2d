//! A session with the database: running statements within their time, and reading their rows.

use std::future::Future;
use std::time::Duration;

use portway_store::StoreError;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Decode, Postgres, Row as _, SqlSafeStr, Type};
use tokio::time::timeout;

use crate::error::{Failed, damaged};

/// A statement with its values.
pub(crate) type Statement<'a> = Query<'a, Postgres, PgArguments>;

/// One connection and what it may take. Who uses it has taken it out of its place: if the caller is gone
/// in the middle, so is the session, and nobody meets what it left behind.
pub(crate) struct Session {
    pub(crate) connection: PgConnection,
    /// Longest wait for an answer; the server itself gives up somewhat earlier.
    pub(crate) answer_max: Duration,
    /// It failed in a way that leaves it unusable.
    pub(crate) is_broken: bool,
}

impl Session {
    pub(crate) fn new(connection: PgConnection, answer_max: Duration) -> Self {
        Session { connection, answer_max, is_broken: false }
    }

    /// All rows of a statement.
    pub(crate) async fn rows(
        &mut self,
        what: &'static str,
        statement: Statement<'_>,
    ) -> Result<Vec<PgRow>, Failed> {
        let answer = limited(self.answer_max, what, statement.fetch_all(&mut self.connection)).await;
        self.look_at(answer)
    }

    /// All rows, each read.
    pub(crate) async fn read<T>(
        &mut self,
        what: &'static str,
        statement: Statement<'_>,
        read: impl FnMut(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, Failed> {
        let rows = self.rows(what, statement).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// The first row, if there is one, read.
    pub(crate) async fn read_one<T>(
        &mut self,
        what: &'static str,
        statement: Statement<'_>,
        read: impl FnOnce(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Option<T>, Failed> {
        let answer = limited(self.answer_max, what, statement.fetch_optional(&mut self.connection)).await;
        let row = self.look_at(answer)?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    /// How many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        what: &'static str,
        statement: Statement<'_>,
    ) -> Result<u64, Failed> {
        let answer = limited(self.answer_max, what, statement.execute(&mut self.connection)).await;
        self.look_at(answer).map(|done| done.rows_affected())
    }

    /// Statements without values, as one text.
    pub(crate) async fn script(&mut self, what: &'static str, script: impl SqlSafeStr) -> Result<(), Failed> {
        let script = sqlx::raw_sql(script);
        let answer = limited(self.answer_max, what, script.execute(&mut self.connection)).await;
        self.look_at(answer).map(drop)
    }

    /// The one row of a statement without values, which is not prepared for it.
    pub(crate) async fn plain_row<T>(
        &mut self,
        what: &'static str,
        statement: &'static str,
        read: impl FnOnce(&PgRow) -> Result<T, StoreError>,
    ) -> Result<T, Failed> {
        let row = sqlx::raw_sql(statement).fetch_one(&mut self.connection);
        let answer = limited(self.answer_max, what, row).await;
        Ok(read(&self.look_at(answer)?)?)
    }

    /// Ends the transaction that is open. If it cannot be known whether it did, the failure says so.
    pub(crate) async fn commit(&mut self, what: &'static str) -> Result<(), Failed> {
        let committed = self.script(what, "COMMIT").await.map_err(Failed::in_commit);
        self.look_at(committed)
    }

    /// Ends a transaction that failed; the session is broken if that fails as well.
    pub(crate) async fn roll_back(&mut self) {
        if !self.is_broken && self.script("roll back", "ROLLBACK").await.is_err() {
            self.is_broken = true;
        }
    }

    /// Says goodbye, so that the server lets go of what the session held before this returns, or soon after.
    pub(crate) async fn close(self) {
        let goodbye = timeout(self.answer_max, sqlx::Connection::close(self.connection)).await;
        // It is gone either way.
        drop(goodbye);
    }

    fn look_at<T>(&mut self, answer: Result<T, Failed>) -> Result<T, Failed> {
        self.is_broken |= answer.as_ref().is_err_and(Failed::breaks_connection);
        answer
    }
}

async fn limited<T>(
    limit: Duration,
    what: &'static str,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Failed> {
    match timeout(limit, answer).await {
        Ok(answer) => answer.map_err(|error| Failed::sql(what, error)),
        Err(_) => Err(Failed::slow(what)),
    }
}

/// A value of a row.
pub(crate) fn value<'r, T>(row: &'r PgRow, column: usize) -> Result<T, StoreError>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(column).map_err(|error| damaged("a value cannot be read").caused_by(error))
}
