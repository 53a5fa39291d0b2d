//! Removing a period as a whole once all that is in it is old.
//!
//! First it is sealed, by somebody who is alone: from then on nothing is stored in it or moved into it, and
//! what is done stays done. Then what is needed in it moves to where such things are held, and what goes
//! although it is quarantined goes by itself. When nothing in it is needed, its removal is decided, again
//! alone, and carried out whatever happens: what lies beside it, then its partitions.

use std::collections::BTreeSet;

use portway_model::{InterfaceId, RetentionState, Tier, Timestamp};
use portway_store::Expiry;

use crate::error::Failed;
use crate::expiry::Old;
use crate::keeping::{self, Row};
use crate::number::{self, HELD, stored};
use crate::partition::{self, Leaf, Period, Slot};
use crate::query::{Session, value};
use crate::retention::{self, States};
use crate::term::FoundBy;

/// Messages looked at in one transaction to see how old they are.
const CHECKED_MAX: i64 = 20_000;
/// Messages of which that goes in one transaction which lies beside their period.
const BESIDE_MAX: i64 = 1_000;
/// Messages that are held elsewhere in one transaction. Acknowledgements wait while it runs, so it has to take no
/// longer than a commit or two; between two of them there is a pause that is longer anyway.
const HELD_MAX: u32 = 64;
const DAY_MS: i64 = 86_400_000;

/// A period that is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    tier: i16,
    from: i32,
    to: i32,
    /// Its removal is decided.
    going: bool,
}

/// What a pass did with periods.
#[derive(Clone, Default)]
pub(crate) struct Periods {
    work: Option<Work>,
    /// They were looked at in this pass: tier and first day.
    tried: BTreeSet<(i16, i32)>,
    is_over: bool,
}

/// How far the removal of a period has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) sealed: Sealed,
    stage: Stage,
    /// Removed with it.
    pub(crate) messages: u64,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Whether all is old, behind this message.
    Check(i64),
    /// What is needed goes elsewhere.
    Needed,
    /// What lies beside it goes, behind this message.
    Beside(i64),
    Remove,
}

/// What is to be done next.
pub(crate) enum Next {
    /// Nothing with periods in this pass.
    Nothing,
    /// Begin with this one, alone.
    Seal(Sealed),
    /// Decide, alone, that this one goes.
    Decide(Work),
    /// Its partitions go.
    Remove(Work),
    /// A step was made: messages removed.
    Stepped(u64),
    /// Partitions are to be made first; nothing was done.
    Lacks(BTreeSet<Slot>),
}

impl Sealed {
    pub(crate) fn contains(&self, (tier, day): Slot) -> bool {
        self.tier == tier && (self.from..self.to).contains(&day)
    }

    pub(crate) fn holds(&self, row: &Row) -> bool {
        self.contains((row.tier, row.day))
    }

    pub(crate) fn period(&self) -> Period {
        let tier = u8::try_from(self.tier).unwrap_or(Tier::HELD_NUMBER);
        Period { tier, from_day: self.from, to_day: self.to }
    }

    /// What was stored in it before is old. What is held waits for the longest window.
    fn before(&self, now: Timestamp) -> i64 {
        stored((now - number::read_tier(self.tier).unwrap_or(Tier::LONGEST).window()).0)
    }
}

impl Work {
    fn of(sealed: Sealed) -> Work {
        let stage = if sealed.going { Stage::Beside(0) } else { Stage::Check(0) };
        Work { sealed, stage, messages: 0 }
    }

    pub(crate) fn period(&self) -> Period {
        self.sealed.period()
    }
}

const LIST: &str = "SELECT tier, from_day, to_day, going FROM sealed_periods ORDER BY from_day, tier";

/// All that are sealed.
pub(crate) async fn list(session: &mut Session) -> Result<Vec<Sealed>, Failed> {
    let listed = session.read("list sealed periods", sqlx::query(LIST), |row| {
        Ok(Sealed { tier: value(row, 0)?, from: value(row, 1)?, to: value(row, 2)?, going: value(row, 3)? })
    });
    listed.await
}

impl Periods {
    /// A new pass begins.
    pub(crate) fn begin(&mut self) {
        self.tried.clear();
        self.is_over = false;
    }

    /// Goes on with a period that was sealed or decided.
    pub(crate) fn go_on(&mut self, sealed: Sealed) {
        self.work = Some(Work::of(sealed));
    }

    /// Nothing more is done with the one that is worked on, in this pass.
    pub(crate) fn leave(&mut self) {
        if let Some(work) = self.work.take() {
            self.tried.insert((work.sealed.tier, work.sealed.from));
        }
    }

    /// Nothing more is done with periods in this pass: whoever is in the way of one is in that of others.
    pub(crate) fn give_up(&mut self) {
        self.work = None;
        self.is_over = true;
    }

    /// One step, inside the transaction that is open.
    pub(crate) async fn step(&mut self, session: &mut Session, expiry: &Expiry) -> Result<Next, Failed> {
        if self.is_over {
            return Ok(Next::Nothing);
        }
        let states = retention::states(session).await?;
        let Some(mut work) = self.work else { return self.find(session, expiry, &states).await };
        let sealed = work.sealed;
        match work.stage {
            Stage::Check(after) => match check(session, sealed, after, expiry, &states).await? {
                Checked::Young => {
                    unseal(session, sealed).await?;
                    self.leave();
                    return Ok(Next::Stepped(0));
                }
                Checked::Old(last) => work.stage = Stage::Check(last),
                Checked::End => work.stage = Stage::Needed,
            },
            Stage::Needed => {
                return match clear(session, sealed, expiry, &states).await? {
                    Cleared::Nothing => Ok(Next::Decide(work)),
                    Cleared::Lacks(slots) => Ok(Next::Lacks(slots)),
                    Cleared::Some(removed) => Ok(Next::Stepped(removed)),
                    Cleared::Stuck => {
                        self.leave();
                        Ok(Next::Stepped(0))
                    }
                };
            }
            Stage::Beside(after) => match remove_beside(session, sealed, after).await? {
                Some((last, count)) => {
                    work.messages += count;
                    work.stage = Stage::Beside(last);
                }
                None => work.stage = Stage::Remove,
            },
            Stage::Remove => return Ok(Next::Remove(work)),
        }
        self.work = Some(work);
        Ok(Next::Stepped(0))
    }

    /// What was begun is ended first.
    async fn find(
        &mut self,
        session: &mut Session,
        expiry: &Expiry,
        states: &States,
    ) -> Result<Next, Failed> {
        let is_new = |sealed: &&Sealed| !self.tried.contains(&(sealed.tier, sealed.from));
        let begun = list(session).await?;
        if let Some(sealed) = begun.iter().find(is_new) {
            self.go_on(*sealed);
            return Ok(Next::Stepped(0));
        }
        if states.iter().all(|(_, state)| state.change.is_none()) {
            for sealed in candidates(session, expiry.now).await? {
                if is_new(&&sealed) && !begun.contains(&sealed) && looks_old(session, sealed, expiry).await? {
                    return Ok(Next::Seal(sealed));
                }
            }
        }
        self.is_over = true;
        Ok(Next::Nothing)
    }
}

/// Periods that are over, by the clock of the database and by the age of messages.
async fn candidates(session: &mut Session, now: Timestamp) -> Result<Vec<Sealed>, Failed> {
    let today = partition::today(session).await?;
    let leaves = partition::leaves(session).await?;
    let sealed = |leaf: &Leaf| Sealed { tier: leaf.tier, from: leaf.from, to: leaf.to, going: false };
    let is_over = |sealed: &Sealed| {
        sealed.to < today && i64::from(sealed.to).saturating_mul(DAY_MS) <= sealed.before(now)
    };
    let of_messages = leaves.iter().filter(|leaf| leaf.table == "messages");
    Ok(of_messages.map(sealed).filter(is_over).collect())
}

const NEWEST: &str = "SELECT stored_at FROM messages WHERE tier = $1 AND day >= $2 AND day < $3
    ORDER BY id DESC LIMIT 1";

/// Whether its newest message is old. Where messages are held, only an empty period is.
async fn looks_old(session: &mut Session, sealed: Sealed, expiry: &Expiry) -> Result<bool, Failed> {
    let newest = sqlx::query(NEWEST).bind(sealed.tier).bind(sealed.from).bind(sealed.to);
    let newest = session.read_one("look for old periods", newest, |row| value::<i64>(row, 0)).await?;
    Ok(newest.is_none_or(|stored_at| sealed.tier != HELD && stored_at < sealed.before(expiry.now)))
}

const SEAL: &str =
    "INSERT INTO sealed_periods (tier, from_day, to_day) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

/// Seals a period, inside a transaction that is alone. Not while a change runs.
pub(crate) async fn seal(session: &mut Session, sealed: Sealed) -> Result<bool, Failed> {
    let states = retention::states(session).await?;
    if states.iter().any(|(_, state)| state.change.is_some()) {
        return Ok(false);
    }
    let seal = sqlx::query(SEAL).bind(sealed.tier).bind(sealed.from).bind(sealed.to);
    session.execute("seal a period", seal).await.map(|_| true)
}

const UNSEAL: &str = "DELETE FROM sealed_periods WHERE tier = $1 AND from_day = $2 AND going = $3";

async fn unseal(session: &mut Session, sealed: Sealed) -> Result<(), Failed> {
    let unseal = sqlx::query(UNSEAL).bind(sealed.tier).bind(sealed.from).bind(false);
    session.execute("open a period again", unseal).await.map(drop)
}

/// It is removed.
pub(crate) async fn forget(session: &mut Session, sealed: Sealed) -> Result<(), Failed> {
    let forget = sqlx::query(UNSEAL).bind(sealed.tier).bind(sealed.from).bind(true);
    session.execute("forget a period", forget).await.map(drop)
}

const DECIDE: &str = "UPDATE sealed_periods SET going = true WHERE tier = $1 AND from_day = $2";

/// Decides that a sealed period goes if nothing in it is needed, inside a transaction that is alone.
pub(crate) async fn decide(session: &mut Session, sealed: Sealed) -> Result<Option<Sealed>, Failed> {
    if !needed(session, sealed).await?.is_empty() {
        return Ok(None);
    }
    let decide = sqlx::query(DECIDE).bind(sealed.tier).bind(sealed.from);
    let decided = session.execute("decide that a period goes", decide).await?;
    Ok((decided > 0).then_some(Sealed { going: true, ..sealed }))
}

enum Checked {
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
async fn check(
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

/// Each part is what one partial index holds.
const NEEDED: &str = "SELECT DISTINCT id, day FROM (
    (SELECT message_id AS id, day FROM deliveries WHERE tier = $1 AND day >= $2 AND day < $3
        AND state = 0 AND (lane < 1024 OR due_at IS NULL) LIMIT $4)
    UNION ALL (SELECT message_id, day FROM deliveries WHERE tier = $1 AND day >= $2 AND day < $3
        AND state = 0 AND lane >= 1024 AND due_at IS NOT NULL LIMIT $4)
    UNION ALL (SELECT id, day FROM messages WHERE tier = $1 AND day >= $2 AND day < $3
        AND status = 2 LIMIT $4)) AS needed
    ORDER BY id LIMIT $4";

/// Messages that are pending or quarantined, some of them.
async fn needed(session: &mut Session, sealed: Sealed) -> Result<Vec<(i64, i32)>, Failed> {
    let needed =
        sqlx::query(NEEDED).bind(sealed.tier).bind(sealed.from).bind(sealed.to).bind(i64::from(HELD_MAX));
    session.read("look what is needed of a period", needed, |row| Ok((value(row, 0)?, value(row, 1)?))).await
}

enum Cleared {
    /// There is nothing that is needed.
    Nothing,
    Lacks(BTreeSet<Slot>),
    /// What is needed is gone, or cannot be held.
    Stuck,
    /// Messages removed.
    Some(u64),
}

/// Moves what is needed to where such things are held, a few at a time; what is quarantined and goes, goes.
async fn clear(
    session: &mut Session,
    sealed: Sealed,
    expiry: &Expiry,
    states: &States,
) -> Result<Cleared, Failed> {
    let found = needed(session, sealed).await?;
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
    let lacks = partition::lacking(session, slots).await?;
    if !lacks.is_empty() {
        return Ok(Cleared::Lacks(lacks));
    }
    keeping::move_to(session, &held, HELD).await?;
    Ok(Cleared::Some(keeping::remove(session, gone).await?))
}

const BESIDE: &str = "SELECT id, key, attributes FROM messages
    WHERE tier = $1 AND day >= $2 AND day < $3 AND id > $4 ORDER BY id LIMIT $5";

/// Removes what lies beside a period; the last message this was done for, and for how many. None: for all.
async fn remove_beside(
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
