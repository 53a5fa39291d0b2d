//! Telling every session of partitions that were made.
//!
//! A session of PostgreSQL keeps the plans of prepared statements. Attaching a partition tells all sessions that
//! plans with its parent are no good any more; but a session that is just making a plan, and has looked at the
//! parent already, hears of it too soon to connect the two: the plan is kept without the partition, and finds
//! nothing of what is stored there until something else makes it invalid. So after a partition was attached its
//! parent, and the table above that, which all plans depend on from their beginning, are changed once more. See
//! decision 30.

use sqlx::AssertSqlSafe;

use crate::error::Failed;
use crate::number::{HELD, TIERS};
use crate::partition::{LOCK, TABLES};
use crate::query::Session;

/// What is told is that something changed; that is to be nothing, under a lock that no insert and no query waits
/// for.
fn change(table: &str) -> String {
    format!("ALTER TABLE ONLY {table} ALTER COLUMN tier SET STATISTICS -1;")
}

/// Makes every session plan anew, in transactions of its own: plans that are made in the meantime are made with
/// what was committed before. Answers whether it did: others may have a lock, and housekeeping does it once more.
pub(crate) async fn announce(session: &mut Session) -> Result<bool, Failed> {
    for table in TABLES {
        let announced = announce_one(session, table).await;
        if announced.is_err() {
            session.roll_back().await;
        }
        match announced {
            Err(failed) if failed.is_locked_out() || failed.is_contended() => return Ok(false),
            announced => announced?,
        }
    }
    Ok(true)
}

async fn announce_one(session: &mut Session, table: &str) -> Result<(), Failed> {
    let what = "announce partitions";
    session.script(what, "BEGIN; SET LOCAL lock_timeout = '2s'").await?;
    // Whoever makes or announces others at the same time would lock the same tables in another order.
    session.execute(what, sqlx::query(LOCK)).await?;
    let tiers = TIERS.into_iter().chain([HELD]);
    let parents: String = tiers.map(|tier| change(&format!("{table}_t{tier}"))).collect();
    session.script(what, AssertSqlSafe(parents + &change(table))).await?;
    session.commit(what).await
}
