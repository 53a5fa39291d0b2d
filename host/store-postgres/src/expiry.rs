//! Removing old messages one by one, a few at a time, so that what is locked is free again soon.
//!
//! Which are old is in `old`; how long an interface keeps its messages in `retention`; periods that go as a
//! whole are in `removal`.

use std::collections::HashMap;
use std::time::Duration;

use portway_model::{InterfaceId, MessageStatus, RetentionChange, Tier, Timestamp};
use portway_store::{Expired, Expiry, KeptBeyond};

use crate::error::Failed;
use crate::keeping::{self, Row};
use crate::number::stored;
use crate::old::{Looked, Old, status_of};
use crate::query::Session;
use crate::removal::Periods;
use crate::retention::{self, States};

/// Messages removed or moved in one transaction.
pub(crate) const TOUCHED_MAX: u32 = 256;
/// Messages looked at in one transaction.
pub(crate) const LOOKED_AT_MAX: u32 = 4_096;
/// What an interface counts for among them, however few messages it has.
const INTERFACE_ROWS: u32 = 16;
const DAY: Duration = Duration::from_secs(86_400);

/// How long messages past their window are left to go with their period: until it is over, and a day.
fn grace(tier: Tier) -> Duration {
    match tier {
        Tier::OneWeek => DAY * 2,
        Tier::ThreeWeeks | Tier::SevenWeeks => DAY * 8,
    }
}

/// How far the pass over all interfaces has come. What is old and stays is looked at once a pass.
#[derive(Clone, Default)]
pub(crate) struct Passes {
    /// Interfaces that are still to be looked through, the next one last.
    left: States,
    /// How far the next one was looked through.
    after: i64,
    /// What stays of it.
    counting: KeptBeyond,
    /// What stayed of each when it was looked through the last time.
    pub(crate) kept: HashMap<InterfaceId, KeptBeyond>,
    /// How far the change of each was taken.
    pub(crate) moved_to: HashMap<InterfaceId, (RetentionChange, i64)>,
    pub(crate) periods: Periods,
}

/// What one transaction may do.
struct Room {
    rows: u32,
    messages: u32,
}

impl Passes {
    /// How far anything has come is looked up anew, but for what was counted.
    pub(crate) fn forget(&mut self) {
        *self = Passes { kept: std::mem::take(&mut self.kept), ..Passes::default() };
    }

    /// Whether the next step begins a pass.
    pub(crate) fn begins(&self) -> bool {
        self.left.is_empty()
    }

    /// One step, inside the transaction that is open; what is known after it, once it is committed.
    pub(crate) async fn step(
        &self,
        session: &mut Session,
        expiry: &Expiry,
    ) -> Result<(Expired, Passes), Failed> {
        let states = retention::states(session).await?;
        let mut passes = self.clone();
        if passes.left.is_empty() {
            passes.left = states.iter().rev().copied().collect();
        }
        let mut room = Room { rows: LOOKED_AT_MAX, messages: expiry.limit.min(TOUCHED_MAX) };
        let mut messages = 0;
        while room.rows > 0
            && room.messages > 0
            && let Some((interface, _)) = passes.left.last().copied()
        {
            // As it is now, which may be another than when the pass began.
            let state = states.iter().find(|(id, _)| *id == interface).map(|(_, state)| *state);
            let state = state.unwrap_or_default();
            let tier = state.in_force().tier;
            let old = Old { interface, state, before: expiry.now - (tier.window() + grace(tier)) };
            let mut looked = old.look(session, passes.after, room.rows).await?;
            room.take(&old, &mut looked);
            messages += u64::from(remove(session, &old, &looked.rows).await?);
            passes.see(&old, &looked, expiry.now);
        }
        Ok((Expired { messages, goes_on: !passes.left.is_empty() }, passes))
    }

    fn see(&mut self, old: &Old, looked: &Looked, now: Timestamp) {
        self.after = looked.rows.last().map_or(self.after, |row| row.id);
        for row in looked.rows.iter().filter(|row| !old.goes(row)) {
            match status_of(row.status) {
                Some(MessageStatus::Quarantined) => self.counting.quarantined += 1,
                _ => self.counting.pending += 1,
            }
        }
        if looked.is_end {
            let counted = KeptBeyond { at: now, ..self.counting };
            self.kept.insert(old.interface, counted);
            self.left.pop();
            (self.after, self.counting) = (0, KeptBeyond::default());
        }
    }
}

impl Room {
    /// Takes room for what was looked at, and leaves the rest of it to the next transaction.
    fn take(&mut self, old: &Old, looked: &mut Looked) {
        let mut going = 0;
        let full = looked.rows.iter().position(|row| {
            going += u32::from(old.expires(row));
            going > self.messages
        });
        if let Some(full) = full {
            looked.rows.truncate(full);
            looked.is_end = false;
        }
        self.messages = self.messages.saturating_sub(going);
        let rows = u32::try_from(looked.rows.len()).unwrap_or(u32::MAX);
        self.rows = self.rows.saturating_sub(rows.max(INTERFACE_ROWS));
    }
}

async fn remove(session: &mut Session, old: &Old, rows: &[Row]) -> Result<u32, Failed> {
    let going = rows.iter().filter(|row| old.expires(row)).map(|row| (row.id, row.day));
    let held = keeping::hold(session, going.collect::<Vec<_>>()).await?;
    // What an operator sent again in the meantime stays.
    let still = held.into_iter().map(|(_, held)| held).filter(|held| old.expires(&held.row));
    let gone = keeping::remove(session, still.collect()).await?;
    Ok(u32::try_from(gone).unwrap_or(u32::MAX))
}

const FORGET_KEYS: &str = "DELETE FROM dedupe WHERE (interface_id, key_digest) IN
    (SELECT interface_id, key_digest FROM dedupe WHERE expires_at <= $1
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";

/// Removes expired dedupe keys, at most `limit`.
pub(crate) async fn forget_keys(session: &mut Session, now: Timestamp, limit: u32) -> Result<(), Failed> {
    let statement = sqlx::query(FORGET_KEYS).bind(stored(now.0)).bind(i64::from(limit));
    session.execute("forget expired dedupe keys", statement).await.map(drop)
}
