//! Which messages are old, and removing or moving them, a few at a time, so that the writer is free in
//! between.
//!
//! How long an interface keeps its messages is in `retention`; periods that go as a whole are in `sealed`.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use portway_model::{
    InterfaceId, MessageStatus, Quarantined, RetentionChange, RetentionState, Tier, Timestamp,
};
use portway_store::{Expired, Expiry, KeptBeyond, MoveRetention};

use crate::error::Failed;
use crate::keeping::{self, Row};
use crate::number::{self, small, stored};
use crate::partition::{self, Slot};
use crate::query::{Session, value};
use crate::retention::{self, States};
use crate::sealed::{self, Periods};

/// Messages removed or moved in one transaction.
const TOUCHED_MAX: u32 = 256;
/// Their bytes, about.
const TOUCHED_BYTES: i64 = 16 << 20;
/// Messages looked at in one transaction.
const LOOKED_AT_MAX: u32 = 4_096;
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

/// Which messages of an interface are old, and what becomes of them.
pub(crate) struct Old {
    pub(crate) interface: InterfaceId,
    pub(crate) state: RetentionState,
    /// What was stored before is old.
    pub(crate) before: Timestamp,
}

/// Messages of an interface, in their order.
pub(crate) struct Looked {
    pub(crate) rows: Vec<Row>,
    /// There is no other behind the last one.
    pub(crate) is_end: bool,
}

const LOOK: &str = "SELECT id, status, stored_at, body_bytes, tier, day FROM messages
    WHERE interface_id = $1 AND id > $2 ORDER BY id LIMIT $3";

impl Old {
    /// Looks at no more than `rows_max` messages behind `after`.
    pub(crate) async fn look_at_all(
        &self,
        session: &mut Session,
        after: i64,
        rows_max: u32,
    ) -> Result<Looked, Failed> {
        let look = sqlx::query(LOOK).bind(small(self.interface.0)).bind(after).bind(i64::from(rows_max));
        let rows = session.read("look for old messages", look, |row| {
            Ok(Row {
                id: value(row, 0)?,
                status: value(row, 1)?,
                stored_at: value(row, 2)?,
                body_bytes: value(row, 3)?,
                tier: value(row, 4)?,
                day: value(row, 5)?,
            })
        });
        let rows = rows.await?;
        let is_end = rows.len() < rows_max as usize;
        Ok(Looked { rows, is_end })
    }

    /// The same, up to the first that is not old: numbers rise with time, but for a clock that was set back.
    pub(crate) async fn look(
        &self,
        session: &mut Session,
        after: i64,
        rows_max: u32,
    ) -> Result<Looked, Failed> {
        let mut looked = self.look_at_all(session, after, rows_max).await?;
        if let Some(young) = looked.rows.iter().position(|row| row.stored_at >= stored(self.before.0)) {
            looked.rows.truncate(young);
            looked.is_end = true;
        }
        Ok(looked)
    }

    /// Whether a message is old and needed by nobody.
    pub(crate) fn goes(&self, row: &Row) -> bool {
        self.is_done(row.status) && row.stored_at < stored(self.before.0)
    }

    /// Whether it goes: not while a change that runs has still to take it into its tier.
    fn expires(&self, row: &Row) -> bool {
        let own = number::tier(self.state.in_force().tier);
        let waits = self.state.change.is_some() && row.tier != own && row.tier != number::HELD;
        self.goes(row) && !waits
    }

    /// Whether nobody needs a message with this status any more.
    pub(crate) fn is_done(&self, status: i16) -> bool {
        let purges = self.state.in_force().quarantined == Quarantined::Purge;
        match status_of(status) {
            Some(MessageStatus::Finished | MessageStatus::Duplicate) => true,
            Some(MessageStatus::Quarantined) => purges,
            // A status of a newer binary is left alone.
            Some(MessageStatus::Pending) | None => false,
        }
    }

    /// Whether a change to a tier has to touch it.
    pub(crate) fn is_to_be_moved(&self, row: &Row, to: i16) -> bool {
        row.tier != to && row.tier != number::HELD
    }
}

fn status_of(status: i16) -> Option<MessageStatus> {
    u8::try_from(status).ok().and_then(MessageStatus::from_number)
}

impl Passes {
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
            let mut going = 0;
            let full = looked.rows.iter().position(|row| {
                going += u32::from(old.expires(row));
                going > room.messages
            });
            if let Some(full) = full {
                looked.rows.truncate(full);
                looked.is_end = false;
            }
            let gone = remove(session, &old, &looked.rows).await?;
            messages += u64::from(gone);
            room.messages = room.messages.saturating_sub(going.min(room.messages));
            let rows = u32::try_from(looked.rows.len()).unwrap_or(u32::MAX);
            room.rows = room.rows.saturating_sub(rows.max(INTERFACE_ROWS));
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

async fn remove(session: &mut Session, old: &Old, rows: &[Row]) -> Result<u32, Failed> {
    let going = rows.iter().filter(|row| old.expires(row)).map(|row| (row.id, row.day));
    let held = keeping::hold(session, going.collect::<Vec<_>>()).await?;
    // What an operator sent again in the meantime stays.
    let still = held.into_iter().map(|(_, held)| held).filter(|held| old.expires(&held.row));
    let gone = keeping::remove(session, still.collect()).await?;
    Ok(u32::try_from(gone).unwrap_or(u32::MAX))
}

/// What a step of a change came to.
pub(crate) enum Step {
    /// No change runs.
    Idle(RetentionState),
    /// Partitions are to be made first; nothing was done.
    Lacks(BTreeSet<Slot>),
    /// Where it would put something is being removed: nothing was done.
    Waits(RetentionState),
    Done {
        state: RetentionState,
        change: RetentionChange,
        moved: u64,
        removed: u64,
        seen_to: Option<i64>,
    },
}

/// One step of a change, inside the transaction that is open, behind `moved_to`.
pub(crate) async fn move_some(
    session: &mut Session,
    step: &MoveRetention,
    moved_to: Option<(RetentionChange, i64)>,
) -> Result<Step, Failed> {
    let state = retention::state_of(session, step.interface).await?.unwrap_or_default();
    let Some(change) = state.change else { return Ok(Step::Idle(state)) };
    let after = moved_to.filter(|(of, _)| *of == change).map_or(0, |(_, after)| after);
    let old = Old { interface: step.interface, state, before: step.age_now - change.to.tier.window() };
    let to = number::tier(change.to.tier);
    let mut looked = old.look_at_all(session, after, LOOKED_AT_MAX).await?;
    let sealed = sealed::list(session).await?;
    let is_touched = |row: &Row| {
        let goes_anyway = old.is_done(row.status) && sealed.iter().any(|period| period.holds(row));
        !goes_anyway && (old.goes(row) || old.is_to_be_moved(row, to))
    };
    let (mut count, mut bytes) = (0, 0);
    let full = looked.rows.iter().position(|row| {
        let is_full = count >= step.limit.min(TOUCHED_MAX) || bytes >= TOUCHED_BYTES;
        if is_touched(row) {
            count += 1;
            bytes += row.body_bytes;
        }
        is_full && is_touched(row)
    });
    if let Some(full) = full {
        looked.rows.truncate(full);
        looked.is_end = false;
    }
    let touched: Vec<(i64, i32)> =
        looked.rows.iter().filter(|row| is_touched(row)).map(|row| (row.id, row.day)).collect();
    let (mut gone, mut own, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for (_, message) in keeping::hold(session, touched).await? {
        let is_old = message.row.stored_at < stored(old.before.0);
        match (old.goes(&message.row), is_old) {
            (true, _) => gone.push(message),
            (false, true) if message.row.tier != number::HELD => held.push(message.row),
            (false, true) => {}
            (false, false) => own.push(message.row),
        }
    }
    let slots = own.iter().map(|row| (to, row.day)).chain(held.iter().map(|row| (number::HELD, row.day)));
    let slots: BTreeSet<Slot> = slots.collect();
    if sealed.iter().any(|period| slots.iter().any(|slot| period.contains(*slot))) {
        return Ok(Step::Waits(state));
    }
    let lacks = partition::lacking(session, slots).await?;
    if !lacks.is_empty() {
        return Ok(Step::Lacks(lacks));
    }
    keeping::move_to(session, &own, to).await?;
    keeping::move_to(session, &held, number::HELD).await?;
    let moved = (own.len() + held.len()) as u64;
    let removed = keeping::remove(session, gone).await?;
    let seen_to = match looked.is_end {
        true => None,
        false => Some(looked.rows.last().map_or(after, |row| row.id)),
    };
    Ok(Step::Done { state, change, moved, removed, seen_to })
}

const FORGET_KEYS: &str = "DELETE FROM dedupe WHERE (interface_id, key_digest) IN
    (SELECT interface_id, key_digest FROM dedupe WHERE expires_at <= $1
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";

/// Removes expired dedupe keys, at most `limit`.
pub(crate) async fn forget_keys(session: &mut Session, now: Timestamp, limit: u32) -> Result<(), Failed> {
    let statement = sqlx::query(FORGET_KEYS).bind(stored(now.0)).bind(i64::from(limit));
    session.execute("forget expired dedupe keys", statement).await.map(drop)
}
