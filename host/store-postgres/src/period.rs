//! What is asked of a period and done to it on its way out, a transaction at a time.
//!
//! In which order is said in `removal`.

use std::collections::BTreeSet;

use portway_model::{InterfaceId, RetentionState, Timestamp};
use portway_store::Expiry;

use crate::error::Failed;
use crate::keeping;
use crate::number::{self, HELD};
use crate::old::Old;
use crate::partition::{self, Leaf, Slot, There};
use crate::query::{Session, value};
use crate::retention::States;
use crate::sealed::{self, Sealed};
use crate::term::FoundBy;

/// Messages looked at in one transaction to see how old they are.
const CHECKED_MAX: i64 = 20_000;
/// Messages of which that goes in one transaction which lies beside their period.
const BESIDE_MAX: i64 = 1_000;
const DAY_MS: i64 = 86_400_000;

/// Periods that are over, by the clock of the database and by the age of messages.
pub(crate) async fn candidates(session: &mut Session, now: Timestamp) -> Result<Vec<Sealed>, Failed> {
    let today = partition::today(session).await?;
    let leaves = partition::leaves(session).await?;
    let sealed = |leaf: &Leaf| Sealed { tier: leaf.tier, from: leaf.from, to: leaf.to, going: false, by: 0 };
    let is_over = |sealed: &Sealed| {
        sealed.to < today && i64::from(sealed.to).saturating_mul(DAY_MS) <= sealed.before(now)
    };
    let of_messages = leaves.iter().filter(|leaf| leaf.table == "messages");
    Ok(of_messages.map(sealed).filter(is_over).collect())
}

const NEWEST: &str = "SELECT stored_at FROM messages WHERE tier = $1 AND day >= $2 AND day < $3
    ORDER BY id DESC LIMIT 1";

/// Whether its newest message is old. Where messages are held, only an empty period is.
pub(crate) async fn looks_old(
    session: &mut Session,
    sealed: Sealed,
    expiry: &Expiry,
) -> Result<bool, Failed> {
    let newest = sqlx::query(NEWEST).bind(sealed.tier).bind(sealed.from).bind(sealed.to);
    let newest = session.read_one("look for old periods", newest, |row| value::<i64>(row, 0)).await?;
    Ok(newest.is_none_or(|stored_at| sealed.tier != HELD && stored_at < sealed.before(expiry.now)))
}

/// What a look at a period showed.
pub(crate) enum Checked {
    /// Up to this message.
    Old(i64),
    End,
    Young,
}

const CHECK: &str = "SELECT max(id), coalesce(max(stored_at), 0), coalesce(bool_and(status BETWEEN 0 AND 3
        AND interface_id = ANY ($6::int4[])), true)
    FROM (SELECT id, stored_at, status, interface_id FROM messages
        WHERE tier = $1 AND day >= $2 AND day < $3 AND id > $4 ORDER BY id LIMIT $5) AS looked_at";

/// Whether all is older than the window of the tier, and no interface keeps its messages for longer.
pub(crate) async fn check(
    session: &mut Session,
    sealed: Sealed,
    after: i64,
    expiry: &Expiry,
    states: &States,
) -> Result<Checked, Failed> {
    let keeps_no_longer = |state: &RetentionState| number::tier(state.in_force().tier) <= sealed.tier;
    let interfaces = states.iter().filter(|(_, state)| keeps_no_longer(state));
    let check = sqlx::query(CHECK)
        .bind(sealed.tier)
        .bind(sealed.from)
        .bind(sealed.to)
        .bind(after)
        .bind(CHECKED_MAX)
        .bind(interfaces.map(|(id, _)| number::small(id.0)).collect::<Vec<_>>());
    let checked = session.read_one("look how old a period is", check, |row| {
        Ok((value::<Option<i64>>(row, 0)?, value::<i64>(row, 1)?, value::<bool>(row, 2)?))
    });
    let Some((Some(last), newest, is_usual)) = checked.await? else { return Ok(Checked::End) };
    Ok(match is_usual && sealed.tier != HELD && newest < sealed.before(expiry.now) {
        true => Checked::Old(last),
        false => Checked::Young,
    })
}

/// What became of what is needed in a period.
pub(crate) enum Cleared {
    /// There is nothing that is needed.
    Nothing,
    Lacks(BTreeSet<Slot>),
    /// What is needed is gone, or cannot be held: perhaps because where it would be is itself being removed, and
    /// is made again after that.
    Stuck,
    /// Messages removed.
    Some(u64),
}

/// Moves what is needed to where such things are held, a few at a time; what is quarantined and goes, goes.
pub(crate) async fn clear(
    session: &mut Session,
    sealed: Sealed,
    (expiry, states): (&Expiry, &States),
    there: &mut There,
) -> Result<Cleared, Failed> {
    let found = sealed::needed(session, sealed).await?;
    if found.is_empty() {
        return Ok(Cleared::Nothing);
    }
    let (mut gone, mut held) = (Vec::new(), Vec::new());
    for (interface, message) in keeping::hold(session, found).await? {
        let interface = InterfaceId(interface);
        let state = states.iter().find(|(id, _)| *id == interface).map(|(_, state)| *state);
        let before = Timestamp(u64::try_from(sealed.before(expiry.now)).unwrap_or(0));
        let old = Old { interface, state: state.unwrap_or_default(), before };
        match old.goes(&message.row) {
            true => gone.push(message),
            false => held.push(message.row),
        }
    }
    if gone.is_empty() && held.is_empty() {
        return Ok(Cleared::Stuck);
    }
    let slots: BTreeSet<Slot> = held.iter().map(|row| (HELD, row.day)).collect();
    if sealed::meets(&sealed::list(session).await?, &slots) {
        return Ok(Cleared::Stuck);
    }
    let lacks = there.lacking(session, slots).await?;
    if !lacks.is_empty() {
        return Ok(Cleared::Lacks(lacks));
    }
    keeping::move_to(session, &held, HELD).await?;
    Ok(Cleared::Some(keeping::remove(session, gone).await?))
}

const BESIDE: &str = "SELECT id, key, attributes FROM messages
    WHERE tier = $1 AND day >= $2 AND day < $3 AND id > $4 ORDER BY id LIMIT $5";

/// Removes what lies beside a period; the last message this was done for, and for how many. None: for all.
pub(crate) async fn remove_beside(
    session: &mut Session,
    sealed: Sealed,
    after: i64,
) -> Result<Option<(i64, u64)>, Failed> {
    let beside =
        sqlx::query(BESIDE).bind(sealed.tier).bind(sealed.from).bind(sealed.to).bind(after).bind(BESIDE_MAX);
    let messages = session.read("remove what lies beside a period", beside, |row| {
        Ok(FoundBy { id: value(row, 0)?, key: value(row, 1)?, attributes: value(row, 2)? })
    });
    let messages = messages.await?;
    let Some(last) = messages.last().map(|message| message.id) else { return Ok(None) };
    keeping::remove_beside(session, &messages).await?;
    Ok(Some((last, messages.len() as u64)))
}
