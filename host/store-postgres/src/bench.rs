//! What benchmarks need of a server and no engine does: a database of their own in it, messages that lie in
//! many partitions or are old already, and a snapshot that nobody lets go.
//!
//! Messages get there through the port like any others; here they are only put elsewhere. Nothing else in this
//! crate uses it, and it is no promise to anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use portway_model::Tier;
use portway_store::StoreError;
use sqlx::AssertSqlSafe;

use crate::connect::Connector;
use crate::error::Failed;
use crate::number::{HELD, TIERS};
use crate::open::{OpenError, classify};
use crate::partition::{self, Leaf, Patience, Slot, TABLES};
use crate::query::{Session, value};
use crate::sealed;
use crate::settings::PostgresSettings;

/// A million rows are moved or cleaned up in less, also on a slow disk.
const ANSWER_MAX: Duration = Duration::from_secs(1_800);
/// For how many days past its window messages of a tier are there at the least until their period goes.
const BEYOND_DAYS: i32 = 1;
/// Days between a period that is old by its end and the end of its window.
const AGED_DAYS: i32 = 7;

/// A database that is made for one benchmark.
pub struct BenchDatabase {
    name: String,
    url: String,
    server: Connector,
    own: Connector,
}

/// How far the move of what is needed of that which [`BenchDatabase::age`] made old has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Waits,
    Runs,
    Over,
}

/// A transaction that sees what there was when it began, until it is let go.
pub struct Snapshot(Session);

impl Snapshot {
    pub async fn let_go(self) {
        self.0.close().await;
    }
}

impl BenchDatabase {
    /// All names begin with this.
    pub const PREFIX: &str = "portway_bench_";

    /// Names one on the server of this address, whose own database stays as it is.
    pub fn new(server_url: &str) -> Result<BenchDatabase, OpenError> {
        let name = format!("{}{:016x}", Self::PREFIX, RandomState::new().build_hasher().finish());
        // Of two such words in an address the last one counts.
        let separator = if server_url.contains('?') { '&' } else { '?' };
        let url = format!("{server_url}{separator}dbname={name}");
        let connector = |url: &str| {
            let settings = PostgresSettings::new(url, "bench");
            Connector::new(&settings).map_err(|source| OpenError::Address { source })
        };
        let (server, own) = (connector(server_url)?, connector(&url)?);
        Ok(BenchDatabase { name, url, server, own })
    }

    /// Makes it.
    pub async fn create(&self) -> Result<(), OpenError> {
        let make = format!("CREATE DATABASE {} TEMPLATE template0", self.name);
        let made = on(&self.server, "make a database", make).await;
        made.map_err(|failed| classify(failed, &self.server.place()))
    }

    /// The address of a store in it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Removes it if it is there, whoever uses it.
    pub async fn remove(&self) -> Result<(), StoreError> {
        let remove = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        Ok(on(&self.server, "remove a database", remove).await?)
    }

    /// Lays the messages that are there out over the partitions of a store that kept messages of every tier for
    /// as long as the tier lasts. Answers how many partitions each table has, at the least.
    pub async fn spread(&self) -> Result<usize, StoreError> {
        let mut session = connected(&self.own).await?;
        let today = partition::today(&mut session).await?;
        lay_out(&mut session, history(today), today).await?;
        let mut counts: BTreeMap<String, usize> = TABLES.map(|table| (table.to_owned(), 0)).into();
        for leaf in partition::leaves(&mut session).await? {
            *counts.entry(leaf.table).or_default() += 1;
        }
        session.close().await;
        Ok(counts.into_values().min().unwrap_or_default())
    }

    /// Makes the messages that are there old, as if they were stored on so many days that are over: their periods
    /// are removed with the next pass over old messages, and what is needed in them is held.
    pub async fn age(&self, days: u8) -> Result<(), StoreError> {
        let mut session = connected(&self.own).await?;
        let today = partition::today(&mut session).await?;
        let last = aged_to(today);
        let slots = (0..i32::from(days.max(1))).rev().map(|back| (TIERS[0], last - back)).collect();
        lay_out(&mut session, slots, today).await?;
        session.close().await;
        Ok(())
    }

    /// Looks at the periods of [`BenchDatabase::age`], not at what is in them: once its removal is decided nothing
    /// in a period is needed.
    pub async fn removal(&self) -> Result<Removal, StoreError> {
        let mut session = connected(&self.own).await?;
        let today = partition::today(&mut session).await?;
        let leaves = partition::leaves(&mut session).await?;
        let sealed = sealed::list(&mut session).await?;
        session.close().await;
        let is_decided =
            |leaf: &Leaf| sealed.iter().any(|sealed| sealed.going && sealed.contains((leaf.tier, leaf.from)));
        let is_old = |leaf: &&Leaf| leaf.tier == TIERS[0] && leaf.from <= aged_to(today);
        Ok(match leaves.iter().filter(is_old).all(is_decided) {
            true => Removal::Over,
            false if sealed.is_empty() => Removal::Waits,
            false => Removal::Runs,
        })
    }

    /// Deliveries that are held beyond their window.
    pub async fn count_held(&self) -> Result<u64, StoreError> {
        let mut session = connected(&self.own).await?;
        let held = sqlx::query(COUNT_HELD).bind(HELD);
        let held = session.read_one("count what is held", held, |row| value::<i64>(row, 0)).await?;
        session.close().await;
        Ok(held.and_then(|held| u64::try_from(held).ok()).unwrap_or_default())
    }

    /// A snapshot of now.
    pub async fn hold_snapshot(&self) -> Result<Snapshot, StoreError> {
        let mut session = connected(&self.own).await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM interfaces";
        session.script("hold a snapshot", begin).await?;
        Ok(Snapshot(session))
    }

    /// Cleans up behind what was just filled in, so that the server does not while something is measured.
    pub async fn settle(&self) -> Result<(), StoreError> {
        let mut session = connected(&self.own).await?;
        session.script("clean up", "SET client_min_messages = error").await?;
        session.script("clean up", "VACUUM (ANALYZE)").await?;
        // Only few may ask for it: then the server does it when it is due.
        if session.script("write back what was changed", "CHECKPOINT").await.is_err() && session.is_broken {
            return Ok(());
        }
        session.close().await;
        Ok(())
    }
}

const COUNT_HELD: &str = "SELECT count(*) FROM deliveries WHERE tier = $1";

async fn connected(connector: &Connector) -> Result<Session, Failed> {
    let mut session = connector.connect_plain().await?;
    session.answer_max = ANSWER_MAX;
    Ok(session)
}

async fn on(connector: &Connector, what: &'static str, script: String) -> Result<(), Failed> {
    let mut session = connected(connector).await?;
    let done = session.script(what, AssertSqlSafe(script)).await;
    session.close().await;
    done
}

/// The last day of messages that are old whatever the hour is.
fn aged_to(today: i32) -> i32 {
    today - i32::from(TIERS[0]) - AGED_DAYS
}

/// A day in each period of a store that kept messages for as long as each tier does, the oldest first.
fn history(today: i32) -> Vec<Slot> {
    let mut slots = BTreeSet::new();
    for tier in Tier::ALL.map(crate::number::tier) {
        let days = today - i32::from(tier) - BEYOND_DAYS..today;
        // The last day of a period that is over stands for it.
        let lasts: BTreeMap<i32, i32> = days.map(|day| (partition::period(tier, day).0, day)).collect();
        slots.extend(lasts.into_values().map(|day| (day, tier)));
    }
    slots.into_iter().map(|(day, tier)| (tier, day)).collect()
}

const LAST_ID: &str = "SELECT coalesce(max(id), 0) FROM messages";
/// Aging is the business of engines; this store looks as if one had run all the time.
const SAVE_AGE: &str = "INSERT INTO retention_age (id, at)
    VALUES (1, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
    ON CONFLICT (id) DO UPDATE SET at = excluded.at";

/// Moves all messages, in their order, into these slots; each gets as many as the others.
async fn lay_out(session: &mut Session, slots: Vec<Slot>, today: i32) -> Result<(), Failed> {
    let what = "lay messages out over partitions";
    partition::make_for(session, &slots.iter().copied().collect(), Patience::UntilItIsThere).await?;
    let last_id = session.read_one(what, sqlx::query(LAST_ID), |row| value::<i64>(row, 0)).await?;
    let count = i64::try_from(slots.len()).unwrap_or(i64::MAX);
    let (tiers, days): (Vec<i16>, Vec<i32>) = slots.into_iter().unzip();
    session.script(what, "BEGIN").await?;
    for table in TABLES {
        let (id, stored_at) = match table {
            "messages" => ("id", ", stored_at = stored_at - ($5 - s.day)::int8 * 86400000"),
            _ => ("message_id", ""),
        };
        let sql = format!(
            "UPDATE {table} AS t SET tier = s.tier, day = s.day{stored_at}
            FROM unnest($1::int2[], $2::int4[]) WITH ORDINALITY AS s (tier, day, n)
            WHERE s.n = 1 + (t.{id} - 1) * $3 / greatest($4, 1) AND $5::int4 IS NOT NULL"
        );
        let last_id = last_id.unwrap_or_default();
        let move_all = sqlx::query(AssertSqlSafe(sql)).bind(&tiers).bind(&days);
        let move_all = move_all.bind(count).bind(last_id).bind(today);
        session.execute(what, move_all).await?;
    }
    session.execute(what, sqlx::query(SAVE_AGE)).await?;
    session.commit(what).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_has_24_partitions_with_those_ahead_and_none_of_it_is_removed() {
        for today in 20_787..20_787 + 400 {
            let slots = history(today);
            let of = |tier| slots.iter().filter(|slot| slot.0 == tier).count();
            // Today and three days ahead are there anyway: of a day each, and of a week.
            assert!(of(7) + 4 + of(21) + of(49) >= 24, "{today}: {slots:?}");
            assert!(slots.iter().all(|(tier, day)| today - i32::from(*tier) - 1 <= *day && *day < today));
        }
    }
}
