//! Periods that are sealed: since when nothing comes into them, and whether they go.
//!
//! Sealing and deciding are done by somebody who is alone. Several engines may work on one period: each holds
//! its seal while it makes a step, and takes up what others did with it. What leads there is in `removal`.

use std::collections::BTreeSet;

use portway_model::{Tier, Timestamp};
use portway_store::Durability;

use crate::error::Failed;
use crate::keeping::Row;
use crate::number::{self, stored};
use crate::partition::{self, Period, Slot};
use crate::query::{Session, value};
use crate::retention;
use crate::transaction::{Turn, begin};

/// Messages that are held elsewhere in one transaction: as few as make a step short beside a commit, since on
/// a machine with few processors whoever stores waits for these. Between two steps there is a pause that is longer.
const HELD_MAX: u32 = 24;

/// A period that is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) tier: i16,
    pub(crate) from: i32,
    pub(crate) to: i32,
    /// Its removal is decided.
    pub(crate) going: bool,
    /// The transaction that sealed it, or decided. What was learnt of a period holds for one seal; zero: it is
    /// not sealed yet.
    pub(crate) by: i64,
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
    pub(crate) fn before(&self, now: Timestamp) -> i64 {
        stored((now - number::read_tier(self.tier).unwrap_or(Tier::LONGEST).window()).0)
    }
}

const LIST: &str = "SELECT tier, from_day, to_day, going, xmin::text::int8 FROM sealed_periods
    ORDER BY from_day, tier";

/// All that are sealed.
pub(crate) async fn list(session: &mut Session) -> Result<Vec<Sealed>, Failed> {
    session.read("list sealed periods", sqlx::query(LIST), read).await
}

/// Whether one of these slots is in a period that is sealed.
pub(crate) fn meets(sealed: &[Sealed], slots: &BTreeSet<Slot>) -> bool {
    sealed.iter().any(|period| slots.iter().any(|slot| period.contains(*slot)))
}

fn read(row: &sqlx::postgres::PgRow) -> Result<Sealed, portway_store::StoreError> {
    Ok(Sealed {
        tier: value(row, 0)?,
        from: value(row, 1)?,
        to: value(row, 2)?,
        going: value(row, 3)?,
        by: value(row, 4)?,
    })
}

const HOLD: &str = "SELECT tier, from_day, to_day, going, xmin::text::int8 FROM sealed_periods
    WHERE tier = $1 AND from_day = $2 FOR KEY SHARE";

/// A period as it is now, sealed until the end of the transaction; none: it is not sealed any more.
pub(crate) async fn hold(session: &mut Session, sealed: Sealed) -> Result<Option<Sealed>, Failed> {
    let hold = sqlx::query(HOLD).bind(sealed.tier).bind(sealed.from);
    session.read_one("hold a sealed period", hold, read).await
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

/// Lets messages in again.
pub(crate) async fn unseal(session: &mut Session, sealed: Sealed) -> Result<(), Failed> {
    let unseal = sqlx::query(UNSEAL).bind(sealed.tier).bind(sealed.from).bind(false);
    session.execute("open a period again", unseal).await.map(drop)
}

const DECIDE: &str = "UPDATE sealed_periods SET going = true
    WHERE tier = $1 AND from_day = $2 AND xmin::text::int8 = $3";

/// Decides that a sealed period goes if nothing in it is needed, inside a transaction that is alone.
pub(crate) async fn decide(session: &mut Session, sealed: Sealed) -> Result<bool, Failed> {
    if !needed(session, sealed).await?.is_empty() {
        return Ok(false);
    }
    let decide = sqlx::query(DECIDE).bind(sealed.tier).bind(sealed.from).bind(sealed.by);
    let decided = session.execute("decide that a period goes", decide).await?;
    Ok(decided > 0)
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
pub(crate) async fn needed(session: &mut Session, sealed: Sealed) -> Result<Vec<(i64, i32)>, Failed> {
    let needed =
        sqlx::query(NEEDED).bind(sealed.tier).bind(sealed.from).bind(sealed.to).bind(i64::from(HELD_MAX));
    session.read("look what is needed of a period", needed, |row| Ok((value(row, 0)?, value(row, 1)?))).await
}

/// Who removes the partitions of a period does so alone, and forgets the period before anybody else can
/// begin: a period that was forgotten may be made again, with messages that are needed.
const TRY_ALONE: &str = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ': removal', 0))";
const NOT_ALONE: &str = "SELECT pg_advisory_unlock(hashtextextended(current_schema() || ': removal', 0))";
const REMOVE: &str = "remove a period";

/// Removes the partitions of a period whose removal is decided, beside the writer. Answers whether it did:
/// others may be at it, or have done it.
pub(crate) async fn remove(session: &mut Session, sealed: Sealed) -> Result<bool, Failed> {
    let is_alone = session.read_one(REMOVE, sqlx::query(TRY_ALONE), |row| value::<bool>(row, 0)).await?;
    if is_alone != Some(true) {
        return Ok(false);
    }
    let removed = remove_alone(session, sealed).await;
    if removed.is_err() {
        session.roll_back().await;
    }
    if !session.is_broken {
        session.execute(REMOVE, sqlx::query(NOT_ALONE)).await?;
    }
    removed
}

async fn remove_alone(session: &mut Session, sealed: Sealed) -> Result<bool, Failed> {
    if !hold(session, sealed).await?.is_some_and(|sealed| sealed.going) {
        return Ok(false);
    }
    partition::remove(session, sealed.period()).await?;
    begin(session, REMOVE, Turn::Beside(Durability::Relaxed)).await?;
    let forget = sqlx::query(UNSEAL).bind(sealed.tier).bind(sealed.from).bind(true);
    session.execute(REMOVE, forget).await?;
    session.commit(REMOVE).await?;
    Ok(true)
}
