//! Names of engines: which are in use, and forgetting those that are not for long.
//!
//! A name is in use while a session holds its lock, of whatever age its program is. Its rows are forgotten
//! under that very lock, so nobody can begin to use it meanwhile.

use crate::error::Failed;
use crate::query::{Session, value};

/// Days after which nothing of an engine is left that its rows would be asked for: its messages are past the
/// longest window. An engine that comes back later begins as a new one.
const FORGOTTEN_DAYS: i32 = 50;
/// Names forgotten in one pass, of each kind: locks are few on a server.
const FORGOTTEN_MAX: i64 = 64;

const IS_THERE: &str = "SELECT to_regclass(quote_ident(current_schema()) || '.last_write') IS NOT NULL";
const ALIVE: &str = "WITH locks AS MATERIALIZED (
        SELECT classid::int8 << 32 | objid::int8 AS key FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    SELECT engine FROM last_write WHERE hashtextextended(current_schema() || ': engine ' || engine, 0)
        IN (SELECT key FROM locks) ORDER BY engine";

/// The engines that use the database, also those that own nothing.
pub(crate) async fn alive(session: &mut Session) -> Result<Vec<String>, Failed> {
    let what = "look which engines are alive";
    let is_there = session.read_one(what, sqlx::query(IS_THERE), |row| value::<bool>(row, 0)).await?;
    if is_there != Some(true) {
        return Ok(Vec::new());
    }
    session.read(what, sqlx::query(ALIVE), |row| value(row, 0)).await
}

const ONE_AT_A_TIME: &str =
    "SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || ': seen engines', 0))";
/// Whoever was never looked at before has its time begin now.
const SEE: &str = "UPDATE last_write SET seen_day = $1
    WHERE seen_day < $1 AND (seen_day = 0 OR engine = ANY ($2))";
/// Also what an earlier pass left of a name, because it had the newest epoch: epochs rise from that.
const LONG_GONE: &str = "(SELECT engine FROM last_write WHERE seen_day < $1 AND seen_day <> 0
        ORDER BY engine LIMIT $2)
    UNION (SELECT engine FROM engines e WHERE epoch < (SELECT max(epoch) FROM engines)
        AND NOT EXISTS (SELECT 1 FROM last_write w WHERE w.engine = e.engine OFFSET 0)
        ORDER BY engine LIMIT $2)";
/// Both locks of a name: that of the session that writes, and that of the one that owns.
const HOLD: &str = "SELECT engine,
        pg_try_advisory_xact_lock(hashtextextended(current_schema() || ': engine ' || engine, 0))
        AND pg_try_advisory_xact_lock(hashtextextended(current_schema() || ': owner ' || engine, 0))
    FROM unnest($1::text[]) AS names (engine)";
const FORGET: &str = "DELETE FROM last_write WHERE engine = ANY ($1) AND seen_day < $2 AND seen_day <> 0";
const FORGET_OWNERS: &str = "DELETE FROM engines e
    WHERE engine = ANY ($1) AND epoch < (SELECT max(epoch) FROM engines)
        AND NOT EXISTS (SELECT 1 FROM last_write w WHERE w.engine = e.engine OFFSET 0)";

/// Notes which engines are there today, and forgets those that were not for long.
pub(crate) async fn note(session: &mut Session, today: i32) -> Result<(), Failed> {
    session.script(NOTE, "BEGIN; SET LOCAL lock_timeout = '2s'").await?;
    let noted = note_in(session, today).await;
    if noted.is_err() {
        session.roll_back().await;
    }
    noted
}

const NOTE: &str = "note which engines are there";

async fn note_in(session: &mut Session, today: i32) -> Result<(), Failed> {
    let is_alone = session.read_one(NOTE, sqlx::query(ONE_AT_A_TIME), |row| value::<bool>(row, 0)).await?;
    if is_alone == Some(true) {
        let there = alive(session).await?;
        session.execute(NOTE, sqlx::query(SEE).bind(today).bind(there)).await?;
        forget(session, today - FORGOTTEN_DAYS).await?;
    }
    session.commit(NOTE).await
}

/// Forgets who was not seen since `day`.
async fn forget(session: &mut Session, day: i32) -> Result<(), Failed> {
    let gone = sqlx::query(LONG_GONE).bind(day).bind(FORGOTTEN_MAX);
    let gone: Vec<String> = session.read(NOTE, gone, |row| value(row, 0)).await?;
    let free = session.read(NOTE, sqlx::query(HOLD).bind(&gone), |row| {
        Ok((value::<String>(row, 0)?, value::<bool>(row, 1)?))
    });
    let free: Vec<String> = free.await?.into_iter().filter(|(_, free)| *free).map(|(name, _)| name).collect();
    let count = session.execute(NOTE, sqlx::query(FORGET).bind(&free).bind(day)).await?;
    session.execute(NOTE, sqlx::query(FORGET_OWNERS).bind(&free)).await?;
    if count > 0 {
        tracing::info!(
            engines = free.join(", "),
            "forgot engines that were not there for {FORGOTTEN_DAYS} days"
        );
    }
    Ok(())
}
