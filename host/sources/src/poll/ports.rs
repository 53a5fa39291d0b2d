//! What a poll driver needs: a source that is asked, and a store that keeps its cursor.

use std::time::Duration;

use bytes::Bytes;
use portway_model::{Cost, Draft, Failure, Later};

use crate::ports::{Arrival, Fate, Item, Receipt};

/// The opened poll source of one interface.
pub trait Poller: Send + Sync + 'static {
    /// The next items after the cursor.
    fn poll(&self, query: Query) -> impl Future<Output = Result<Found, PollError>> + Send;

    /// After the commit; called until it succeeds.
    fn settle(
        &self,
        cursor: Bytes,
        receipts: Vec<Receipt>,
    ) -> impl Future<Output = Result<(), PollError>> + Send;
}

/// Stores what a source found, and tells how far it came.
pub trait PollIntake: Send + Sync + 'static {
    /// All messages and the cursor in one transaction that is flushed, or nothing.
    fn submit(
        &self,
        arrival: Arrival,
        drafts: Vec<Draft>,
        cursor: Bytes,
    ) -> impl Future<Output = Result<Vec<Fate>, Later>> + Send;

    /// The cursor that was stored last; empty: none was. The error is a sentence.
    fn cursor(&self) -> impl Future<Output = Result<Bytes, String>> + Send;

    /// Messages of the interface that are not finished, counted up to a limit.
    fn unfinished(&self, limit: u32) -> impl Future<Output = Result<u32, String>> + Send;
}

/// What a source is asked for.
#[derive(Clone, Debug)]
pub struct Query {
    pub cursor: Bytes,
    pub items_max: u32,
    pub bytes_max: u32,
    pub wait_max: Duration,
    pub unfinished: u32,
}

/// What a source found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub items: Vec<Item>,
    pub cursor: Bytes,
    /// When to ask again; zero: at once.
    pub again: Duration,
    /// What finding them cost.
    pub cost: Cost,
}

/// Why a source did nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// The other side is away.
    #[error("{}", .0.failure)]
    Unavailable(Later),
    /// A person must change something.
    #[error("{0}")]
    Misconfigured(Failure),
    /// The plugin trapped, used up a limit or lied.
    #[error("{0}")]
    Fault(String),
    /// No instance was free.
    #[error("{0}")]
    Busy(String),
}
