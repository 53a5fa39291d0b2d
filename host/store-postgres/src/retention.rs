//! The retention of each interface as it was applied, the change that runs, and what waits.
//!
//! Whoever writes holds what is here as it is until its transaction ends (`transaction::begin`); what
//! changes the tier of new messages is done alone. So no message is stored in a tier that a change has left.

use std::collections::HashMap;

use portway_model::{
    InterfaceId, Quarantined, Retention, RetentionChange, RetentionState, Tier, Timestamp, WaitingRetention,
};
use portway_store::{
    ConfirmRetention, Counted, KeptBeyond, MoveRetention, RetentionConfirmed, RetentionView,
};
use sqlx::postgres::PgRow;

use portway_store::StoreError;

use crate::error::Failed;
use crate::number::{self, small, stored};
use crate::old::Old;
use crate::query::{Session, value};

/// Every interface with its state, by number.
pub(crate) type States = Vec<(InterfaceId, RetentionState)>;

const STATES: &str = "SELECT interface_id, tier, quarantined, change_tier, change_quarantined, change_since,
    waiting_tier, waiting_quarantined, waiting_since, waiting_confirmed FROM retention ORDER BY interface_id";
const SAVE: &str = "INSERT INTO retention (interface_id, tier, quarantined, change_tier, change_quarantined,
        change_since, waiting_tier, waiting_quarantined, waiting_since, waiting_confirmed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (interface_id) DO UPDATE SET tier = excluded.tier, quarantined = excluded.quarantined,
        change_tier = excluded.change_tier, change_quarantined = excluded.change_quarantined,
        change_since = excluded.change_since, waiting_tier = excluded.waiting_tier,
        waiting_quarantined = excluded.waiting_quarantined, waiting_since = excluded.waiting_since,
        waiting_confirmed = excluded.waiting_confirmed";

pub(crate) async fn states(session: &mut Session) -> Result<States, Failed> {
    let read = |row: &PgRow| Ok((number::interface(value(row, 0)?)?, state(row)?));
    session.read("read how long messages are kept", sqlx::query(STATES), read).await
}

pub(crate) async fn state_of(
    session: &mut Session,
    interface: InterfaceId,
) -> Result<Option<RetentionState>, Failed> {
    let states = states(session).await?;
    Ok(states.into_iter().find(|(id, _)| *id == interface).map(|(_, state)| state))
}

fn state(row: &PgRow) -> Result<RetentionState, StoreError> {
    let change = match maybe_retention(row, 3)? {
        Some(to) => Some(RetentionChange { to, since: time(row, 5)? }),
        None => None,
    };
    let waiting = match maybe_retention(row, 6)? {
        Some(to) => {
            let is_confirmed = value::<Option<bool>>(row, 9)?.unwrap_or_default();
            Some(WaitingRetention { to, since: time(row, 8)?, is_confirmed })
        }
        None => None,
    };
    Ok(RetentionState { applied: maybe_retention(row, 1)?.unwrap_or_default(), change, waiting })
}

/// What a newer binary wrote and this one does not know keeps the most.
fn maybe_retention(row: &PgRow, column: usize) -> Result<Option<Retention>, StoreError> {
    let tier: Option<i16> = value(row, column)?;
    let quarantined: Option<i16> = value(row, column + 1)?;
    let quarantined = quarantined.and_then(|number| u8::try_from(number).ok());
    Ok(tier.map(|tier| Retention {
        tier: number::read_tier(tier).unwrap_or(Tier::LONGEST),
        quarantined: quarantined.and_then(Quarantined::from_number).unwrap_or_default(),
    }))
}

fn time(row: &PgRow, column: usize) -> Result<Timestamp, StoreError> {
    number::time(value::<Option<i64>>(row, column)?.unwrap_or_default())
}

async fn save(session: &mut Session, interface: InterfaceId, state: &RetentionState) -> Result<(), Failed> {
    let quarantined = |retention: Retention| i16::from(retention.quarantined.number());
    let (change, waiting) = (state.change, state.waiting);
    let statement = sqlx::query(SAVE)
        .bind(small(interface.0))
        .bind(number::tier(state.applied.tier))
        .bind(quarantined(state.applied))
        .bind(change.map(|change| number::tier(change.to.tier)))
        .bind(change.map(|change| quarantined(change.to)))
        .bind(change.map(|change| stored(change.since.0)))
        .bind(waiting.map(|waiting| number::tier(waiting.to.tier)))
        .bind(waiting.map(|waiting| quarantined(waiting.to)))
        .bind(waiting.map(|waiting| stored(waiting.since.0)))
        .bind(waiting.map(|waiting| waiting.is_confirmed));
    session.execute("remember how long messages are kept", statement).await.map(drop)
}

/// What a project wants, inside a transaction that is alone.
pub(crate) async fn want(
    session: &mut Session,
    wanted: &[(InterfaceId, Retention)],
    now: Timestamp,
) -> Result<(), Failed> {
    let known: HashMap<InterfaceId, RetentionState> = states(session).await?.into_iter().collect();
    for (interface, wanted) in wanted {
        let before = known.get(interface).copied();
        let mut state = before.unwrap_or_else(|| RetentionState::new(*wanted));
        state.want(*wanted, now);
        if before != Some(state) {
            save(session, *interface, &state).await?;
        }
    }
    Ok(())
}

const CONFIRMED: &str = "UPDATE retention SET confirmed_at = $1, confirmed_by = $2, confirmed_why = $3
    WHERE interface_id = $4";

/// Records a confirmation, inside a transaction that is alone. None: nothing waits for one.
pub(crate) async fn confirm(
    session: &mut Session,
    confirm: &ConfirmRetention,
) -> Result<Option<RetentionState>, Failed> {
    let Some(mut state) = state_of(session, confirm.interface).await? else { return Ok(None) };
    if state.unconfirmed().is_none() {
        return Ok(None);
    }
    state.confirm(confirm.now);
    save(session, confirm.interface, &state).await?;
    let statement = sqlx::query(CONFIRMED)
        .bind(stored(confirm.now.0))
        .bind(number::text(&confirm.author))
        .bind(number::text(&confirm.reason))
        .bind(small(confirm.interface.0));
    session.execute("record a confirmation", statement).await?;
    Ok(Some(state))
}

/// Ends the change that every message has gone through, inside a transaction that is alone. If another runs
/// by now, that one is left alone.
pub(crate) async fn finish(
    session: &mut Session,
    step: &MoveRetention,
    change: RetentionChange,
) -> Result<RetentionState, Failed> {
    let mut state = state_of(session, step.interface).await?.unwrap_or_default();
    if state.change == Some(change) {
        state.finish(step.now);
        save(session, step.interface, &state).await?;
    }
    Ok(state)
}

const AGED_TO: &str = "SELECT coalesce((SELECT at FROM retention_age),
    (SELECT stored_at FROM messages ORDER BY id LIMIT 1))";

/// How far messages have grown old: as an engine said, or, with more care, as the oldest message says.
pub(crate) async fn aged_to(session: &mut Session) -> Result<Option<Timestamp>, Failed> {
    let read = |row: &PgRow| value::<Option<i64>>(row, 0)?.map(number::time).transpose();
    Ok(session.read_one("read how far messages grew old", sqlx::query(AGED_TO), read).await?.flatten())
}

const SAVE_AGE: &str = "INSERT INTO retention_age (id, at) VALUES (1, $1)
    ON CONFLICT (id) DO UPDATE SET at = excluded.at";

/// Remembers it, inside the transaction that is open.
pub(crate) async fn save_age(session: &mut Session, aged_to: Timestamp) -> Result<(), Failed> {
    let statement = sqlx::query(SAVE_AGE).bind(stored(aged_to.0));
    session.execute("remember how far messages grew old", statement).await.map(drop)
}

const LIST: &str = "SELECT r.interface_id, i.name, r.confirmed_at, r.confirmed_by, r.confirmed_why,
    (SELECT m.stored_at FROM messages m WHERE m.interface_id = r.interface_id ORDER BY m.id LIMIT 1)
    FROM retention r JOIN interfaces i ON i.id = r.interface_id ORDER BY r.interface_id";

/// The retention of every interface, by number; `kept` is what the last pass counted.
pub(crate) async fn list(
    session: &mut Session,
    age_now: Timestamp,
    kept: &HashMap<InterfaceId, KeptBeyond>,
) -> Result<Vec<RetentionView>, Failed> {
    let states: HashMap<InterfaceId, RetentionState> = states(session).await?.into_iter().collect();
    let views = session.read("list how long messages are kept", sqlx::query(LIST), |row| {
        let interface = number::interface(value(row, 0)?)?;
        let time = |column| value::<Option<i64>>(row, column)?.map(number::time).transpose();
        let words = |column| Ok::<_, StoreError>(value::<Option<String>>(row, column)?.unwrap_or_default());
        let (author, reason) = (words(3)?, words(4)?);
        Ok(RetentionView {
            interface,
            name: words(1)?,
            state: states.get(&interface).copied().unwrap_or_default(),
            confirmed: time(2)?.map(|at| RetentionConfirmed { at, author, reason }),
            oldest: time(5)?,
            left: None,
            kept: kept.get(&interface).copied(),
        })
    });
    let mut views = views.await?;
    let mut room = RetentionView::LOOKED_AT_MAX;
    for view in &mut views {
        view.left = left(session, view, age_now, &mut room).await?;
    }
    Ok(views)
}

/// What a change that runs still has to touch, or what waits would remove; counted while there is room.
async fn left(
    session: &mut Session,
    view: &RetentionView,
    age_now: Timestamp,
    room: &mut u32,
) -> Result<Option<Counted>, Failed> {
    let interface = view.interface;
    let (looked, count) = match (view.state.change, view.state.unconfirmed()) {
        (None, None) => return Ok(None),
        _ if *room == 0 => return Ok(None),
        (Some(change), _) => {
            let old = Old { interface, state: view.state, before: age_now - change.to.tier.window() };
            let looked = old.look_at_all(session, 0, *room).await?;
            let to = number::tier(change.to.tier);
            let count = looked.rows.iter().filter(|row| old.is_to_be_moved(row, to)).count();
            (looked, count)
        }
        (None, Some(waiting)) => {
            let state = RetentionState::new(waiting.to);
            let old = Old { interface, state, before: age_now - waiting.to.tier.window() };
            let looked = old.look(session, 0, *room).await?;
            let count = looked.rows.iter().filter(|row| old.goes(row)).count();
            (looked, count)
        }
    };
    *room = room.saturating_sub(u32::try_from(looked.rows.len()).unwrap_or(u32::MAX));
    Ok(Some(Counted { count: count as u64, is_cut: !looked.is_end }))
}
