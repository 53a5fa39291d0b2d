//! The retention of each interface as it was applied, the change that runs, and what waits.
//!
//! A message has no tier of its own here: how old it may become is decided by its interface, and
//! nothing has to be moved. A longer retention is in force with the change; a change to a shorter one
//! is over when what is too old for it is gone, which `expiry` removes.

use std::collections::HashMap;

use portway_model::{
    InterfaceId, Quarantined, Retention, RetentionChange, RetentionState, Tier, Timestamp, WaitingRetention,
};
use portway_store::{
    ConfirmRetention, Counted, KeptBeyond, MoveRetention, Moved, RetentionConfirmed, RetentionView,
    StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::failed;
use crate::expiry::{self, LOOKED_AT_MAX, Old, REMOVED_MAX};
use crate::number::{self, stored};
use crate::query::{int, maybe_int, rows, text};

/// What new messages of each interface get.
#[derive(Clone, Default)]
pub(crate) struct Tiers(HashMap<InterfaceId, Tier>);

impl Tiers {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Tiers> {
        let tiers = in_force(connection)?.into_iter();
        Ok(Tiers(tiers.map(|(interface, retention)| (interface, retention.tier)).collect()))
    }

    pub(crate) fn of(&self, interface: InterfaceId) -> Tier {
        self.0.get(&interface).copied().unwrap_or(Tier::LONGEST)
    }

    /// A change began or ended.
    pub(crate) fn set(&mut self, interface: InterfaceId, state: &RetentionState) {
        self.0.insert(interface, state.in_force().tier);
    }
}

const READ: &str = "SELECT interface_id, tier, quarantined, change_tier, change_quarantined, change_since,
    waiting_tier, waiting_quarantined, waiting_since, waiting_confirmed FROM retention";
const SAVE: &str = "INSERT INTO retention (interface_id, tier, quarantined, change_tier, change_quarantined,
        change_since, waiting_tier, waiting_quarantined, waiting_since, waiting_confirmed)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET tier = excluded.tier, quarantined = excluded.quarantined,
        change_tier = excluded.change_tier, change_quarantined = excluded.change_quarantined,
        change_since = excluded.change_since, waiting_tier = excluded.waiting_tier,
        waiting_quarantined = excluded.waiting_quarantined, waiting_since = excluded.waiting_since,
        waiting_confirmed = excluded.waiting_confirmed";

/// Every interface with its state, by number.
pub(crate) fn states(connection: &Connection) -> rusqlite::Result<Vec<(InterfaceId, RetentionState)>> {
    let mut read = connection.prepare_cached(&format!("{READ} ORDER BY interface_id"))?;
    read.query_map([], |row| Ok((InterfaceId(row.get(0)?), state(row)?)))?.collect()
}

/// What decides which messages of each interface are old, by number.
pub(crate) fn in_force(connection: &Connection) -> rusqlite::Result<Vec<(InterfaceId, Retention)>> {
    Ok(states(connection)?.into_iter().map(|(interface, state)| (interface, state.in_force())).collect())
}

fn state_of(connection: &Connection, interface: InterfaceId) -> rusqlite::Result<Option<RetentionState>> {
    let mut read = connection.prepare_cached(&format!("{READ} WHERE interface_id = ?"))?;
    read.query_row([interface.0], state).optional()
}

fn state(row: &Row<'_>) -> rusqlite::Result<RetentionState> {
    let change = match maybe_retention(row, 3)? {
        Some(to) => Some(RetentionChange { to, since: time(row, 5)? }),
        None => None,
    };
    let waiting = match maybe_retention(row, 6)? {
        Some(to) => Some(WaitingRetention { to, since: time(row, 8)?, is_confirmed: row.get(9)? }),
        None => None,
    };
    Ok(RetentionState { applied: maybe_retention(row, 1)?.unwrap_or_default(), change, waiting })
}

/// What a newer binary wrote and this one does not know keeps the most.
fn maybe_retention(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Retention>> {
    let tier: Option<u8> = row.get(column)?;
    let quarantined: Option<u8> = row.get(column + 1)?;
    Ok(tier.map(|tier| Retention {
        tier: Tier::from_number(tier).unwrap_or(Tier::LONGEST),
        quarantined: quarantined.and_then(Quarantined::from_number).unwrap_or_default(),
    }))
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let at: i64 = row.get(column)?;
    Ok(Timestamp(u64::try_from(at).unwrap_or(0)))
}

fn save(connection: &Connection, interface: InterfaceId, state: &RetentionState) -> rusqlite::Result<()> {
    let number = |retention: Retention| (retention.tier.number(), retention.quarantined.number());
    let (tier, quarantined) = number(state.applied);
    let change = state.change.map(|change| (number(change.to), stored(change.since.0)));
    let waiting = state.waiting.map(|waiting| (number(waiting.to), stored(waiting.since.0)));
    connection
        .prepare_cached(SAVE)?
        .execute(params![
            interface.0,
            tier,
            quarantined,
            change.map(|((tier, _), _)| tier),
            change.map(|((_, quarantined), _)| quarantined),
            change.map(|(_, since)| since),
            waiting.map(|((tier, _), _)| tier),
            waiting.map(|((_, quarantined), _)| quarantined),
            waiting.map(|(_, since)| since),
            state.waiting.map(|waiting| waiting.is_confirmed),
        ])
        .map(drop)
}

/// What a project wants, inside the transaction that is open.
pub(crate) fn want(
    connection: &Connection,
    wanted: &[(InterfaceId, Retention)],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let known: HashMap<InterfaceId, RetentionState> = states(connection)?.into_iter().collect();
    for (interface, wanted) in wanted {
        let before = known.get(interface).copied();
        let mut state = before.unwrap_or_else(|| RetentionState::new(*wanted));
        state.want(*wanted, now);
        if before != Some(state) {
            save(connection, *interface, &state)?;
        }
    }
    Ok(())
}

const CONFIRMED: &str = "UPDATE retention SET confirmed_at = ?, confirmed_by = ?, confirmed_why = ?
    WHERE interface_id = ?";

/// Records a confirmation, inside the transaction that is open. None: nothing waits for one.
pub(crate) fn confirm(
    connection: &Connection,
    confirm: &ConfirmRetention,
) -> rusqlite::Result<Option<RetentionState>> {
    let Some(mut state) = state_of(connection, confirm.interface)? else { return Ok(None) };
    if state.unconfirmed().is_none() {
        return Ok(None);
    }
    state.confirm(confirm.now);
    save(connection, confirm.interface, &state)?;
    let values = params![stored(confirm.now.0), confirm.author, confirm.reason, confirm.interface.0];
    connection.prepare_cached(CONFIRMED)?.execute(values)?;
    Ok(Some(state))
}

/// One step of a change, inside the transaction that is open. Looks at what is behind `after`; how far
/// it came is answered, or none at the end.
pub(crate) fn move_some(
    connection: &Connection,
    step: &MoveRetention,
    after: i64,
) -> rusqlite::Result<(Moved, Option<i64>)> {
    let mut state = state_of(connection, step.interface)?.unwrap_or_default();
    let Some(change) = state.change else { return Ok((Moved::nothing(state), None)) };
    let old = Old { interface: step.interface, retention: change.to, now: step.age_now };
    let looked = old.look(connection, after, (LOOKED_AT_MAX, step.limit.min(REMOVED_MAX)))?;
    expiry::remove(connection, &looked.gone)?;
    if looked.is_end {
        state.finish(step.now);
        save(connection, step.interface, &state)?;
    }
    let removed = looked.gone.len() as u64;
    Ok((
        Moved { moved: 0, removed, state, goes_on: state.change.is_some() },
        (!looked.is_end).then_some(looked.seen_to),
    ))
}

const AGED_TO: &str = "SELECT coalesce((SELECT at FROM retention_age),
    (SELECT stored_at FROM messages WHERE id = (SELECT min(id) FROM messages)))";

/// How far messages have grown old: as an engine said, or, with more care, as the oldest
/// message says.
pub(crate) fn aged_to(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let at: Option<i64> = connection.query_row(AGED_TO, [], |row| row.get(0))?;
    Ok(at.map(|at| Timestamp(u64::try_from(at).unwrap_or(0))))
}

const SAVE_AGE: &str = "INSERT INTO retention_age (id, at) VALUES (1, ?)
    ON CONFLICT DO UPDATE SET at = excluded.at";

/// Remembers it, inside the transaction that is open.
pub(crate) fn save_age(connection: &Connection, aged_to: Timestamp) -> rusqlite::Result<()> {
    connection.prepare_cached(SAVE_AGE)?.execute([stored(aged_to.0)]).map(drop)
}

const LIST: &str = "SELECT interface_id, name, confirmed_at, confirmed_by, confirmed_why,
    (SELECT stored_at FROM messages INDEXED BY messages_by_interface WHERE interface_id = retention.interface_id
        ORDER BY id LIMIT 1)
    FROM retention JOIN interfaces ON interfaces.id = interface_id ORDER BY interface_id";

/// The retention of every interface, by number; `kept` is what the last pass counted.
pub(crate) fn list(
    connection: &Connection,
    age_now: Timestamp,
    kept: &HashMap<InterfaceId, KeptBeyond>,
) -> Result<Vec<RetentionView>, StoreError> {
    let what = "list retention";
    let error = |error| failed(what, error);
    let states: HashMap<InterfaceId, RetentionState> =
        states(connection).map_err(error)?.into_iter().collect();
    let mut views = rows(connection, what, LIST, [], |row| {
        let interface = number::interface(int(row, 0)?)?;
        let confirmed_at = maybe_int(row, 2)?.map(number::time).transpose()?;
        let words = |column| Ok::<_, StoreError>(text(row, column)?.unwrap_or_default().to_owned());
        let (author, reason) = (words(3)?, words(4)?);
        Ok(RetentionView {
            interface,
            name: words(1)?,
            state: states.get(&interface).copied().unwrap_or_default(),
            confirmed: confirmed_at.map(|at| RetentionConfirmed { at, author, reason }),
            oldest: maybe_int(row, 5)?.map(number::time).transpose()?,
            left: None,
            kept: kept.get(&interface).copied(),
        })
    })?;
    let mut room = RetentionView::LOOKED_AT_MAX;
    for view in &mut views {
        view.left = left(connection, view, age_now, &mut room).map_err(error)?;
    }
    Ok(views)
}

/// What a change that runs still removes, or what waits would; counted while there is room.
fn left(
    connection: &Connection,
    view: &RetentionView,
    age_now: Timestamp,
    room: &mut u32,
) -> rusqlite::Result<Option<Counted>> {
    let RetentionState { change, .. } = view.state;
    let to = change.map(|change| change.to).or(view.state.unconfirmed().map(|waiting| waiting.to));
    let Some(retention) = to.filter(|_| *room > 0) else { return Ok(None) };
    let old = Old { interface: view.interface, retention, now: age_now };
    let looked = old.look(connection, 0, (*room, *room))?;
    *room = room.saturating_sub(looked.rows());
    Ok(Some(Counted { count: looked.gone.len() as u64, is_cut: !looked.is_end }))
}
