//! Moving old messages to the tier that a change of their interface's retention brings.
//!
//! A step is one transaction: it looks at some messages behind those of the last one, then moves and removes
//! what is to be touched of them.

use std::collections::BTreeSet;

use portway_model::{RetentionChange, RetentionState};
use portway_store::MoveRetention;

use crate::error::Failed;
use crate::expiry::{LOOKED_AT_MAX, TOUCHED_MAX};
use crate::keeping::{self, Held, Row};
use crate::number::{self, HELD, stored};
use crate::old::{Looked, Old};
use crate::partition::{Slot, There};
use crate::query::Session;
use crate::retention;
use crate::sealed::{self, Sealed};

/// Bytes of messages moved in one transaction, about.
const TOUCHED_BYTES: i64 = 16 << 20;

/// What a step of a change came to.
pub(crate) enum Step {
    /// No change runs.
    Idle(RetentionState),
    /// Partitions are to be made first; nothing was done.
    Lacks(BTreeSet<Slot>),
    /// Another engine is at it, or where it would put something is being removed: nothing was done.
    Waits(RetentionState),
    Done {
        state: RetentionState,
        change: RetentionChange,
        moved: u64,
        removed: u64,
        seen_to: Option<i64>,
    },
}

/// What becomes of the messages of a step.
#[derive(Default)]
struct Sorted {
    /// Old, and needed by nobody.
    gone: Vec<Held>,
    /// For the tier of the change.
    own: Vec<Row>,
    /// Old, and needed.
    held: Vec<Row>,
}

/// One step of a change, inside the transaction that is open, behind `moved_to`.
pub(crate) async fn move_some(
    session: &mut Session,
    step: &MoveRetention,
    moved_to: Option<(RetentionChange, i64)>,
    there: &mut There,
) -> Result<Step, Failed> {
    let state = retention::state_of(session, step.interface).await?.unwrap_or_default();
    let Some(change) = state.change else { return Ok(Step::Idle(state)) };
    if !keeping::take_turn(session).await? {
        return Ok(Step::Waits(state));
    }
    let after = moved_to.filter(|(of, _)| *of == change).map_or(0, |(_, after)| after);
    let old = Old { interface: step.interface, state, before: step.age_now - change.to.tier.window() };
    let to = number::tier(change.to.tier);
    let sealed = sealed::list(session).await?;
    let looked = old.look_at_all(session, after, LOOKED_AT_MAX).await?;
    let (looked, touched) = choose(&old, looked, to, &sealed, step.limit.min(TOUCHED_MAX));
    let sorted = sort(session, &old, touched, to).await?;
    let slots = sorted.slots(to);
    if sealed::meets(&sealed, &slots) {
        return Ok(Step::Waits(state));
    }
    let lacks = there.lacking(session, slots).await?;
    if !lacks.is_empty() {
        return Ok(Step::Lacks(lacks));
    }
    keeping::move_to(session, &sorted.own, to).await?;
    keeping::move_to(session, &sorted.held, HELD).await?;
    let moved = (sorted.own.len() + sorted.held.len()) as u64;
    let removed = keeping::remove(session, sorted.gone).await?;
    let seen_to = match looked.is_end {
        true => None,
        false => Some(looked.rows.last().map_or(after, |row| row.id)),
    };
    Ok(Step::Done { state, change, moved, removed, seen_to })
}

/// How far this step goes, and which messages it touches.
fn choose(
    old: &Old,
    mut looked: Looked,
    to: i16,
    sealed: &[Sealed],
    limit: u32,
) -> (Looked, Vec<(i64, i32)>) {
    let is_touched = |row: &Row| {
        let goes_anyway = old.is_done(row.status) && sealed.iter().any(|period| period.holds(row));
        !goes_anyway && (old.goes(row) || old.is_to_be_moved(row, to))
    };
    let (mut bytes, mut touched) = (0_i64, Vec::new());
    for (index, row) in looked.rows.iter().enumerate() {
        if !is_touched(row) {
            continue;
        }
        if touched.len() >= limit as usize || bytes >= TOUCHED_BYTES {
            looked.rows.truncate(index);
            looked.is_end = false;
            break;
        }
        bytes = bytes.saturating_add(row.body_bytes);
        touched.push((row.id, row.day));
    }
    (looked, touched)
}

/// As they are once they are held; another engine may have moved them meanwhile.
async fn sort(session: &mut Session, old: &Old, touched: Vec<(i64, i32)>, to: i16) -> Result<Sorted, Failed> {
    let mut sorted = Sorted::default();
    for (_, message) in keeping::hold(session, touched).await? {
        let is_old = message.row.stored_at < stored(old.before.0);
        match (old.goes(&message.row), is_old) {
            (true, _) => sorted.gone.push(message),
            (false, true) if message.row.tier != HELD => sorted.held.push(message.row),
            (false, false) if old.is_to_be_moved(&message.row, to) => sorted.own.push(message.row),
            (false, _) => {}
        }
    }
    Ok(sorted)
}

impl Sorted {
    /// Where something moves to.
    fn slots(&self, to: i16) -> BTreeSet<Slot> {
        let own = self.own.iter().map(|row| (to, row.day));
        own.chain(self.held.iter().map(|row| (HELD, row.day))).collect()
    }
}
