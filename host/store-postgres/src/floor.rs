//! Floors: below which message nothing is in the queue of a destination.
//!
//! What was delivered leaves its entry in the index of the queue until the server cleans up, which an old
//! snapshot somewhere can put off for hours. A reader that begins at the floor never comes by them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portway_model::DestinationId;
use portway_store::{DeliveryResult, Durability};

use crate::delivery;
use crate::error::Failed;
use crate::number::small;
use crate::query::{Session, value};
use crate::transaction::{Turn, begin};

/// Deliveries of a destination that are done before its floor is looked for anew.
const DONE_MIN: u32 = 1_000;
/// Floors looked for in one pass of housekeeping.
const RAISED_MAX: usize = 16;

/// What this process did since it last raised floors.
#[derive(Default)]
pub(crate) struct Floors {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: HashMap<DestinationId, u32>,
    /// When the server began that the rest was seen on.
    server: String,
    sample: Option<Sample>,
    /// No message up to this one can still appear.
    settled_to: i64,
}

/// A moment: the highest number given, and the transactions that had drawn some.
struct Sample {
    last_id: i64,
    drawing: Vec<String>,
}

/// The numbers of messages there are.
#[derive(Clone, Copy)]
struct Given {
    /// Up to this one each is committed or will never be.
    settled_to: i64,
    last_id: i64,
}

impl State {
    /// A server that began anew, or another that took its place, may give numbers again that nobody committed.
    fn see(&mut self, server: String) {
        if self.server != server {
            self.server = server;
            self.sample = None;
            self.settled_to = 0;
        }
    }
}

impl Floors {
    /// Counts deliveries that are done.
    pub(crate) fn count<'a>(&self, counting: impl Iterator<Item = &'a DeliveryResult>) {
        let mut state = self.state();
        for result in counting.filter(|result| result.settled.state().is_final()) {
            let done = state.done.entry(result.destination).or_insert(0);
            *done = done.saturating_add(1);
        }
    }

    /// Nothing is known any more of transactions that run.
    pub(crate) fn forget(&self) {
        self.state().sample = None;
    }

    /// Raises the floors of the destinations that did most.
    pub(crate) async fn raise(&self, session: &mut Session) -> Result<(), Failed> {
        let numbers = self.settle(session).await?;
        for destination in self.busiest() {
            let raised = raise_one(session, destination, numbers).await;
            if raised.is_err() {
                session.roll_back().await;
            }
            // Unless somebody is still storing what may come before it.
            if raised? == Raised::Wholly {
                self.state().done.remove(&destination);
            }
        }
        Ok(())
    }

    fn busiest(&self) -> Vec<DestinationId> {
        let state = self.state();
        let mut busy: Vec<(u32, DestinationId)> = state
            .done
            .iter()
            .filter(|(_, done)| **done >= DONE_MIN)
            .map(|(destination, done)| (*done, *destination))
            .collect();
        busy.sort_unstable_by(|a, b| b.cmp(a));
        busy.into_iter().take(RAISED_MAX).map(|(_, destination)| destination).collect()
    }

    /// The highest number up to which every message is committed or will never be. Whoever draws a number
    /// holds a lock on their sequence until its transaction ends; so when all are gone who held one after a
    /// number was given, that number is settled.
    async fn settle(&self, session: &mut Session) -> Result<Given, Failed> {
        let what = "look for transactions that store messages";
        let server = session.read_one(what, sqlx::query(SERVER), |row| value::<String>(row, 0)).await?;
        self.state().see(server.unwrap_or_default());
        let earlier = self.state().sample.take();
        if let Some(earlier) = earlier {
            let still = sqlx::query(STILL_DRAWING).bind(&earlier.drawing);
            let still = session.read_one(what, still, |row| value::<bool>(row, 0)).await?;
            let mut state = self.state();
            match still {
                Some(false) => state.settled_to = state.settled_to.max(earlier.last_id),
                Some(true) | None => state.sample = Some(earlier),
            }
        }
        // The number first: whoever drew one up to it has its lock by now.
        let last_id = session.read_one(what, sqlx::query(LAST_ID), |row| value::<i64>(row, 0)).await?;
        let last_id = last_id.unwrap_or(0);
        let drawing = session.read(what, sqlx::query(DRAWING), |row| value::<String>(row, 0)).await?;
        let mut state = self.state();
        if drawing.is_empty() {
            state.settled_to = state.settled_to.max(last_id);
            state.sample = None;
        } else if state.sample.is_none() {
            state.sample = Some(Sample { last_id, drawing });
        }
        Ok(Given { settled_to: state.settled_to, last_id })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SERVER: &str = "SELECT pg_postmaster_start_time()::text";
const LAST_ID: &str = "SELECT last_value FROM message_ids";
const DRAWING: &str = "SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'message_ids'::regclass AND mode = 'RowExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
const STILL_DRAWING: &str = "SELECT EXISTS (SELECT 1 FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'message_ids'::regclass AND virtualtransaction = ANY ($1))";
const KNOW: &str =
    "INSERT INTO queue_floors (destination_id, message_id) VALUES ($1, 0) ON CONFLICT DO NOTHING";
const HOLD: &str = "SELECT message_id FROM queue_floors WHERE destination_id = $1 FOR UPDATE";
const RAISE: &str = "UPDATE queue_floors SET message_id = $2 WHERE destination_id = $1 AND message_id < $2";

/// How far a floor was raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raised {
    /// To the first that is in the queue.
    Wholly,
    /// Only so far, since something may still appear before that.
    AsFarAsSettled,
}

/// Holds the floor while it looks: whoever puts something back below it waits, or is seen.
async fn raise_one(
    session: &mut Session,
    destination: DestinationId,
    given: Given,
) -> Result<Raised, Failed> {
    let what = "raise the floor of a queue";
    let number = small(destination.0);
    begin(session, what, Turn::Beside(Durability::Relaxed)).await?;
    session.execute(what, sqlx::query(KNOW).bind(number)).await?;
    session.execute(what, sqlx::query(HOLD).bind(number)).await?;
    let first = delivery::first_queued(session, destination).await?;
    let first = first.unwrap_or(given.last_id);
    let floor = first.min(given.settled_to.saturating_add(1));
    session.execute(what, sqlx::query(RAISE).bind(number).bind(floor)).await?;
    session.commit(what).await?;
    Ok(if first <= given.settled_to.saturating_add(1) { Raised::Wholly } else { Raised::AsFarAsSettled })
}

const KNOW_ALL: &str = "INSERT INTO queue_floors (destination_id, message_id)
    SELECT l.destination_id, 0 FROM unnest($1::int4[]) AS l (destination_id) ORDER BY 1
    ON CONFLICT DO NOTHING";
const HOLD_ALL: &str = "SELECT count(*) FROM (SELECT 1 FROM queue_floors WHERE destination_id = ANY ($1)
    ORDER BY destination_id FOR UPDATE) AS held";
const LOWER: &str = "UPDATE queue_floors f SET message_id = l.message_id
    FROM unnest($1::int4[], $2::int8[]) AS l (destination_id, message_id)
    WHERE f.destination_id = l.destination_id AND f.message_id > l.message_id";

/// Lowers floors for what goes back into a queue, inside the transaction that is open. Whoever is about to raise
/// one waits, also if it is low enough or not there yet: they do not see what comes back before it is committed.
pub(crate) async fn lower(
    session: &mut Session,
    back: impl Iterator<Item = (DestinationId, i64)>,
) -> Result<(), Failed> {
    let mut lowest: BTreeMap<i32, i64> = BTreeMap::new();
    for (destination, id) in back {
        let floor = lowest.entry(small(destination.0)).or_insert(id);
        *floor = (*floor).min(id);
    }
    if lowest.is_empty() {
        return Ok(());
    }
    let what = "lower the floors of queues";
    let destinations: Vec<i32> = lowest.keys().copied().collect();
    session.execute(what, sqlx::query(KNOW_ALL).bind(&destinations)).await?;
    session.execute(what, sqlx::query(HOLD_ALL).bind(&destinations)).await?;
    let lower = sqlx::query(LOWER).bind(destinations).bind(lowest.into_values().collect::<Vec<_>>());
    session.execute(what, lower).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_are_raised_first_and_idle_ones_never() {
        let floors = Floors::default();
        floors.state().done = (1..=40).map(|n| (DestinationId(n), n * 100)).collect();
        let busiest = floors.busiest();
        assert_eq!(busiest.len(), RAISED_MAX);
        assert_eq!(busiest.first(), Some(&DestinationId(40)));
        floors.state().done = HashMap::from([(DestinationId(1), DONE_MIN - 1)]);
        assert_eq!(floors.busiest(), []);
    }
}
