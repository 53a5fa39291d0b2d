//! Owning groups: what a claim takes, what the end gives back, and who owns what now.
//!
//! One claim at a time decides, so what it reads of owners stays true until it commits. Everybody else holds
//! owners and engines in a mode that a claim waits for: results count or belong to another engine, and
//! messages are seen by the next owner or it is told of them, but nothing falls in between.

use std::collections::BTreeSet;

use portway_model::{Epoch, GroupId, Timestamp};
use portway_store::{Claimed, Durability, EngineView, Owner, Tenure};

use crate::destination;
use crate::error::{Failed, damaged};
use crate::number::{self, small, stored};
use crate::process::Process;
use crate::query::{Session, value};
use crate::transaction::{Turn, begin};

/// A claim, with what is known about who makes it.
pub(crate) struct Claim<'a> {
    pub(crate) engine: &'a str,
    pub(crate) groups: BTreeSet<GroupId>,
    pub(crate) now: Timestamp,
    /// In which it owns others already, since the session that claims has its lock.
    pub(crate) epoch: Option<Epoch>,
    /// The epoch that ended with the lock of this engine, which went on running.
    pub(crate) survived: Option<Epoch>,
    pub(crate) process: Option<&'a Process>,
}

/// What a group's row says of its owner.
struct Owning {
    group: GroupId,
    engine: String,
    epoch: Epoch,
    since: Timestamp,
    clean: bool,
    process: String,
    is_alive: bool,
    /// Of its tenure.
    unclean: bool,
    /// One before it may have been sending when it was displaced, and may still.
    overlapped: bool,
}

const ONE_AT_A_TIME: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ': claims', 0))";
const OWNERS: &str = "WITH locks AS MATERIALIZED (
        SELECT classid::int8 << 32 | objid::int8 AS key FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
    alive AS MATERIALIZED (
        SELECT engine FROM engines WHERE EXISTS (SELECT 1 FROM locks WHERE key = lock_key))
    SELECT group_id, engine, epoch, since, clean, process,
        EXISTS (SELECT 1 FROM alive a WHERE a.engine = o.engine), unclean,
        coalesce(abs(extract(epoch FROM clock_timestamp() - overlapped_at)::float8) < $2, false)
    FROM owners o WHERE group_id = ANY ($1) ORDER BY group_id";
const LAST_EPOCH: &str = "SELECT greatest((SELECT coalesce(max(epoch), 0) FROM owners),
    (SELECT coalesce(max(epoch), 0) FROM engines))";
const HOLD_ENGINES: &str = "SELECT count(*) FROM
    (SELECT 1 FROM engines WHERE engine = ANY ($1) ORDER BY engine FOR UPDATE) AS held";
const END_TENURES: &str = "UPDATE engines SET owns = false WHERE engine = ANY ($1)";
const BEGIN_TENURE: &str = "UPDATE engines SET owns = true, epoch = $2 WHERE engine = $1";
const HOLD_OWNERS: &str = "SELECT count(*) FROM
    (SELECT 1 FROM owners WHERE group_id = ANY ($1) ORDER BY group_id FOR UPDATE) AS held";
/// What is claimed again in its own tenure stays as it was when that began.
const OWN: &str = "INSERT INTO owners
        (group_id, engine, epoch, since, clean, process, strangers, unclean, overlapped_at)
    SELECT g.id, $2, $3, $4, false, $5, 0, $6, CASE WHEN $7 THEN clock_timestamp() END
        FROM unnest($1::int4[]) AS g (id) ORDER BY g.id
    ON CONFLICT (group_id) DO UPDATE SET (engine, epoch, process, clean, since, unclean, overlapped_at) = (
        SELECT excluded.engine, excluded.epoch, excluded.process, false,
            CASE WHEN stays THEN owners.since ELSE excluded.since END,
            CASE WHEN stays THEN owners.unclean ELSE excluded.unclean END,
            CASE WHEN stays OR NOT (owners.clean OR $7) THEN owners.overlapped_at
                ELSE excluded.overlapped_at END
        FROM (SELECT owners.engine = excluded.engine AND owners.epoch = excluded.epoch AND NOT owners.clean)
            AS own (stays))
    RETURNING group_id, strangers";

/// Claims in a transaction of its own, on the session that has the engine's lock: if the lock is gone, so is
/// the claim. Also answers how often others stored messages for each group before.
pub(crate) async fn claim(
    session: &mut Session,
    claim: &Claim<'_>,
) -> Result<(Claimed, Vec<(GroupId, i64)>), Failed> {
    let what = "own groups";
    begin(session, what, Turn::Beside(Durability::Strict)).await?;
    session.execute(what, sqlx::query(ONE_AT_A_TIME)).await?;
    let ids: Vec<i32> = claim.groups.iter().map(|group| small(group.0)).collect();
    let before = owners(session, &ids).await?;
    let of_others =
        before.iter().filter(|owning| owning.is_alive && !owning.clean && owning.engine != claim.engine);
    let refused: Vec<Owner> = of_others
        .map(|owning| Owner { group: owning.group, engine: owning.engine.clone(), since: owning.since })
        .collect();
    if !refused.is_empty() {
        session.roll_back().await;
        return Ok((Claimed::Refused(refused), Vec::new()));
    }
    let epoch = match claim.epoch {
        Some(epoch) => epoch,
        None => {
            let last = session.read_one(what, sqlx::query(LAST_EPOCH), |row| number::read(value(row, 0)?));
            Epoch(last.await?.unwrap_or(0) + 1)
        }
    };
    let is_own = |owning: &&Owning| owning.engine == claim.engine && owning.epoch == epoch;
    let left: Vec<&Owning> = before.iter().filter(|owning| !owning.clean && !is_own(owning)).collect();
    // What came before an owner that ended no better is not over with it.
    let unclean = left.iter().any(|owning| may_have_ended(owning, claim) || owning.unclean);
    let displaces = left.iter().any(|owning| may_run(owning, claim));
    let overlaps = displaces || left.iter().any(|owning| owning.overlapped);
    let former: BTreeSet<&str> = left.iter().map(|owning| owning.engine.as_str()).collect();
    begin_tenure(session, claim.engine, epoch, former).await?;
    session.execute(what, sqlx::query(HOLD_OWNERS).bind(&ids)).await?;
    let own = sqlx::query(OWN)
        .bind(ids)
        .bind(claim.engine)
        .bind(stored(epoch.0))
        .bind(stored(claim.now.0))
        .bind(claim.process.map(Process::text).unwrap_or_default())
        .bind(unclean)
        .bind(displaces);
    let counts = session.read(what, own, count).await?;
    let pauses = destination::pauses(session).await?;
    session.commit(what).await?;
    Ok((Claimed::Owned(Tenure { epoch, unclean, overlaps, pauses }), counts))
}

async fn owners(session: &mut Session, groups: &[i32]) -> Result<Vec<Owning>, Failed> {
    let statement = sqlx::query(OWNERS).bind(groups).bind(Tenure::OVERLAP_MAX.as_secs_f64());
    let owners = session.read("read who owns groups", statement, |row| {
        Ok(Owning {
            group: GroupId(number::read_u32(value(row, 0)?)?),
            engine: value(row, 1)?,
            epoch: Epoch(number::read(value(row, 2)?)?),
            since: number::time(value(row, 3)?)?,
            clean: value(row, 4)?,
            process: value(row, 5)?,
            is_alive: value(row, 6)?,
            unclean: value(row, 7)?,
            overlapped: value(row, 8)?,
        })
    });
    owners.await
}

/// Whether the process that owned a group may have ended, perhaps of what it delivered.
fn may_have_ended(owning: &Owning, claim: &Claim<'_>) -> bool {
    if owning.engine == claim.engine {
        return claim.survived != Some(owning.epoch);
    }
    match (Process::parse(&owning.process), claim.process) {
        (Some(former), Some(own)) => !former.is_seen_to_run(own),
        (None, _) | (_, None) => true,
    }
}

/// Whether the process that owned a group may still run, and send what it has in hand.
fn may_run(owning: &Owning, claim: &Claim<'_>) -> bool {
    match (Process::parse(&owning.process), claim.process) {
        // An engine has one store in a process: the one before is gone.
        (Some(former), Some(own)) if former == *own && owning.engine == claim.engine => false,
        (Some(former), Some(own)) => !former.is_gone(own),
        (None, _) | (_, None) => true,
    }
}

/// Ends the tenures of those from whom something is taken, after what they are storing right now.
async fn begin_tenure(
    session: &mut Session,
    engine: &str,
    epoch: Epoch,
    former: BTreeSet<&str>,
) -> Result<(), Failed> {
    let what = "begin a tenure";
    let held: BTreeSet<&str> = former.iter().copied().chain([engine]).collect();
    let held: Vec<&str> = held.into_iter().collect();
    session.execute(what, sqlx::query(HOLD_ENGINES).bind(held)).await?;
    let former: Vec<&str> = former.into_iter().collect();
    session.execute(what, sqlx::query(END_TENURES).bind(former)).await?;
    let begun = session.execute(what, sqlx::query(BEGIN_TENURE).bind(engine).bind(stored(epoch.0))).await?;
    match begun {
        0 => Err(damaged("the row of this engine is gone").into()),
        _ => Ok(()),
    }
}

fn count(row: &sqlx::postgres::PgRow) -> Result<(GroupId, i64), portway_store::StoreError> {
    Ok((GroupId(number::read_u32(value(row, 0)?)?), value(row, 1)?))
}

const STRANGERS: &str =
    "SELECT group_id, strangers FROM owners WHERE engine = $1 AND epoch = $2 AND strangers > 0";

/// How often others stored messages for each group of an engine.
pub(crate) async fn strangers(
    session: &mut Session,
    engine: &str,
    epoch: Epoch,
) -> Result<Vec<(GroupId, i64)>, Failed> {
    let statement = sqlx::query(STRANGERS).bind(engine).bind(stored(epoch.0));
    session.read("read what others stored", statement, count).await
}

const KNOW: &str = "INSERT INTO owners (group_id, engine, epoch, since, clean, process, strangers)
    SELECT g.id, '', 0, 0, true, '', 0 FROM unnest($1::int4[]) AS g (id) ORDER BY g.id
    ON CONFLICT DO NOTHING";

/// Gives groups a row that nobody owns, so that there is something to hold where a claim is made meanwhile.
pub(crate) async fn know(session: &mut Session, groups: &BTreeSet<GroupId>) -> Result<(), Failed> {
    if groups.is_empty() {
        return Ok(());
    }
    let ids: Vec<i32> = groups.iter().map(|group| small(group.0)).collect();
    session.execute("know groups", sqlx::query(KNOW).bind(ids)).await.map(drop)
}

const APPEAR: &str = "INSERT INTO engines (engine, started_at, lock_key, epoch, owns)
    VALUES ($1, $2, hashtextextended(current_schema() || ': owner ' || $1, 0), 0, false)
    ON CONFLICT (engine) DO UPDATE SET started_at = excluded.started_at, lock_key = excluded.lock_key
    RETURNING 'portway_' || to_hex(hashtextextended(current_schema() || ': news of ' || engine, 0))";

/// Enters an engine whose lock this session has; answers the channel on which it hears of others.
pub(crate) async fn appear(session: &mut Session, engine: &str, now: Timestamp) -> Result<String, Failed> {
    let statement = sqlx::query(APPEAR).bind(engine).bind(stored(now.0));
    let channel = session.read_one("enter the engine", statement, |row| value(row, 0)).await?;
    Ok(channel.ok_or_else(|| damaged("the engine has no row"))?)
}

const END_TENURE: &str = "UPDATE engines SET owns = false WHERE engine = $1 AND epoch = $2";
const RELEASE: &str = "UPDATE owners SET clean = true WHERE engine = $1 AND epoch = $2";

/// Gives back what an engine owns, in a transaction of its own, after what a session that it gave up is still
/// storing. Another process may have its name and an epoch by now: that one's tenure goes on.
pub(crate) async fn release(session: &mut Session, engine: &str, epoch: Epoch) -> Result<(), Failed> {
    let what = "give back groups";
    begin(session, what, Turn::Beside(Durability::Strict)).await?;
    session.execute(what, sqlx::query(ONE_AT_A_TIME)).await?;
    session.execute(what, sqlx::query(HOLD_ENGINES).bind(vec![engine])).await?;
    session.execute(what, sqlx::query(END_TENURE).bind(engine).bind(stored(epoch.0))).await?;
    session.execute(what, sqlx::query(RELEASE).bind(engine).bind(stored(epoch.0))).await?;
    session.commit(what).await
}

const ENGINES: &str = "WITH locks AS MATERIALIZED (
        SELECT classid::int8 << 32 | objid::int8 AS key FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    SELECT e.engine, e.started_at, ARRAY(SELECT o.group_id FROM owners o
        WHERE o.engine = e.engine AND o.epoch = e.epoch AND NOT o.clean ORDER BY o.group_id)
    FROM engines e WHERE EXISTS (SELECT 1 FROM locks WHERE key = e.lock_key) ORDER BY e.engine";

/// The engines that are alive. `asked` is the one that wants to know.
pub(crate) async fn engines(session: &mut Session, asked: &str) -> Result<Vec<EngineView>, Failed> {
    let engines = session.read("list engines", sqlx::query(ENGINES), |row| {
        let engine: String = value(row, 0)?;
        let groups: Vec<i32> = value(row, 2)?;
        let groups = groups.into_iter().map(|group| Ok(GroupId(number::read_u32(group)?)));
        Ok(EngineView {
            is_self: engine == asked,
            engine,
            started_at: number::time(value(row, 1)?)?,
            groups: groups.collect::<Result<_, portway_store::StoreError>>()?,
        })
    });
    engines.await
}
