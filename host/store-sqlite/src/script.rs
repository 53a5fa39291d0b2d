//! Statements that go to SQLite together.
//!
//! The driver runs a connection on a thread of its own; going there and back costs more than most
//! statements. A [`Script`] is several statements in one journey. Its text must come from a small
//! set, because prepared scripts are cached by their text: values are always bound, and lists of
//! rows come in a few sizes ([`SIZES`]), filled up with empty rows, or as one JSON value.

use std::fmt::Write as _;

use futures::TryStreamExt as _;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Either, Encode, Executor as _, Type};

/// Rows in a multi-row statement.
pub(crate) const SIZES: [usize; 4] = [1, 4, 16, 64];
/// The most rows in a multi-row statement.
pub(crate) const ROWS_MAX: usize = 64;

/// Statements and their values, in order.
#[derive(Default)]
pub(crate) struct Script {
    sql: String,
    arguments: SqliteArguments,
    /// For each statement whether its changed rows are counted.
    counted: Vec<bool>,
    invalid: Option<sqlx::error::BoxDynError>,
}

impl Script {
    /// Adds a statement; its values follow by [`Script::bind`].
    pub(crate) fn step(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self.sql.push(';');
        self.counted.push(false);
        self
    }

    /// Adds a statement over rows: `head`, then `VALUES` for the smallest size that holds `count`
    /// rows, then `tail`. Answers the size: the rows missing to it must be bound as [`Script::bind_empty`].
    pub(crate) fn step_rows(&mut self, head: &str, columns: usize, count: usize, tail: &str) -> usize {
        let size = SIZES.into_iter().find(|size| *size >= count).unwrap_or(ROWS_MAX);
        self.sql.reserve(head.len() + tail.len() + size * (columns * 2 + 2));
        self.sql.push_str(head);
        self.sql.push_str("(VALUES ");
        for row in 0..size {
            self.sql.push_str(if row == 0 { "(?" } else { ",(?" });
            (1..columns).for_each(|_| self.sql.push_str(",?"));
            self.sql.push(')');
        }
        self.sql.push(')');
        self.sql.push_str(tail);
        self.sql.push(';');
        self.counted.push(false);
        size
    }

    pub(crate) fn bind<'t, T: Encode<'t, Sqlite> + Type<Sqlite>>(&mut self, value: T) -> &mut Self {
        if let Err(error) = self.arguments.add(value) {
            self.invalid.get_or_insert(error);
        }
        self
    }

    /// Binds `count` NULLs.
    pub(crate) fn bind_empty(&mut self, count: usize) {
        (0..count).for_each(|_| {
            self.bind(None::<i64>);
        });
    }

    /// The rows that the last statement changes are counted.
    pub(crate) fn count_changed(&mut self) {
        if let Some(counted) = self.counted.last_mut() {
            *counted = true;
        }
    }

    /// Runs the statements; answers how many rows changed by those that are counted.
    pub(crate) async fn run(self, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
        if let Some(error) = self.invalid {
            return Err(sqlx::Error::Encode(error));
        }
        let query = sqlx::query_with::<Sqlite, _>(AssertSqlSafe(self.sql), self.arguments);
        let mut changed = 0;
        let mut counted = self.counted.into_iter();
        let mut done = connection.fetch_many(query);
        while let Some(step) = done.try_next().await? {
            match step {
                Either::Left(result) if counted.next() == Some(true) => changed += result.rows_affected(),
                Either::Left(_) | Either::Right(_) => {}
            }
        }
        Ok(changed)
    }
}

/// Runs statements that are not worth keeping prepared.
pub(crate) async fn run_once(
    connection: &mut SqliteConnection,
    sql: &'static str,
) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(sql)).await.map(drop)
}

/// A JSON array of integers, for `json_each`.
#[derive(Debug)]
pub(crate) struct IntArray(String);

impl Default for IntArray {
    fn default() -> Self {
        IntArray("[".to_owned())
    }
}

impl IntArray {
    pub(crate) fn push(&mut self, number: i64) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{number}");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(crate) fn into_json(mut self) -> String {
        self.0.push(']');
        self.0
    }
}

impl FromIterator<i64> for IntArray {
    fn from_iter<I: IntoIterator<Item = i64>>(numbers: I) -> Self {
        let mut array = IntArray::default();
        numbers.into_iter().for_each(|number| array.push(number));
        array
    }
}
