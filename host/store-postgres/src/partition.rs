//! Partitions: which there are, making those of the days to come, and removing old ones as a whole.
//!
//! Messages of a tier are divided by day or week; what is held beyond its window, by month.
//!
//! A new partition is a table of its own first and is then attached, which takes no lock that an insert or a
//! query has to wait for. One table and tier a transaction: two tables in one would meet, in the other
//! order, transactions that change deliveries and then messages. That it is there is told to all: `announce`.

use std::collections::BTreeSet;

use portway_store::StoreError;
use sqlx::AssertSqlSafe;
use time::Date;

use crate::announce::announce;
use crate::error::{Failed, damaged};
use crate::number::{HELD, TIERS};
use crate::query::{Session, value};

/// Tables that are divided by tier and day. What belongs to a message goes before it.
pub(crate) const TABLES: [&str; 5] = ["bodies", "attempts", "outputs", "deliveries", "messages"];
/// Days for which there are partitions ahead of time.
const AHEAD_DAYS: i32 = 3;
/// The tier whose partitions are of a day each; those of the others are of a week, of [`HELD`] of a month.
const DAILY_TIER: i16 = 7;

/// A partition that holds rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) table: String,
    pub(crate) tier: i16,
    /// As SQL names it.
    pub(crate) name: String,
    /// Its first day.
    pub(crate) from: i32,
    /// The first day that is not its.
    pub(crate) to: i32,
}

/// How long to wait for others who have a lock that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// New inserts wait behind whoever waits for a lock: better to try again later.
    Short,
    /// Without the partition there would be nothing to insert into.
    UntilItIsThere,
}

const LEAVES: &str = "SELECT root.relname::text, tier.relname::text, leaf.oid::regclass::text,
        bounds[1]::int4, bounds[2]::int4
    FROM pg_class root
    JOIN pg_inherits of_root ON of_root.inhparent = root.oid
    JOIN pg_class tier ON tier.oid = of_root.inhrelid
    JOIN pg_inherits of_tier ON of_tier.inhparent = tier.oid
    JOIN pg_class leaf ON leaf.oid = of_tier.inhrelid
    CROSS JOIN LATERAL regexp_match(pg_get_expr(leaf.relpartbound, leaf.oid),
        'FROM \\(''?(-?\\d+)''?\\) TO \\(''?(-?\\d+)''?\\)') AS bounds
    WHERE root.relnamespace = current_schema()::regnamespace
        AND root.relname IN ('bodies', 'attempts', 'outputs', 'deliveries', 'messages')
        AND NOT of_tier.inhdetachpending AND bounds IS NOT NULL
    ORDER BY 1, 2, 4";

/// All partitions that hold rows.
pub(crate) async fn leaves(session: &mut Session) -> Result<Vec<Leaf>, Failed> {
    let found = session.read("list partitions", sqlx::query(LEAVES), |row| {
        let (table, tier): (String, String) = (value(row, 0)?, value(row, 1)?);
        let tier = tier.rsplit_once("_t").and_then(|(_, days)| days.parse().ok());
        Ok(tier.map(|tier| {
            Ok::<_, StoreError>(Leaf {
                table,
                tier,
                name: value(row, 2)?,
                from: value(row, 3)?,
                to: value(row, 4)?,
            })
        }))
    });
    // What is named otherwise somebody else made.
    Ok(found.await?.into_iter().flatten().collect::<Result<_, _>>()?)
}

const TODAY: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4";

/// The day it is for the database.
pub(crate) async fn today(session: &mut Session) -> Result<i32, Failed> {
    let today = session.read_one("read the clock of the database", sqlx::query(TODAY), |row| value(row, 0));
    Ok(today.await?.ok_or_else(|| damaged("there is no day"))?)
}

/// Makes the partitions of today and of the next days that are not there. With nothing to make, no lock is
/// taken. Answers whether something was made.
pub(crate) async fn make_ahead(
    session: &mut Session,
    today: i32,
    patience: Patience,
) -> Result<bool, Failed> {
    let mut made = false;
    for (table, tier) in missing(&leaves(session).await?, today) {
        made = true;
        let result = make(session, table, tier, (today, today + AHEAD_DAYS), patience).await;
        if result.is_err() {
            session.roll_back().await;
        }
        result?;
    }
    if made {
        announce(session).await?;
    }
    Ok(made)
}

/// Whether there is a partition of every table and tier for a day.
pub(crate) fn is_ready(leaves: &[Leaf], day: i32) -> bool {
    slots().all(|(table, tier)| has(leaves, table, tier, day))
}

fn slots() -> impl Iterator<Item = (&'static str, i16)> {
    // Messages last: whoever finds a partition of messages finds those of what belongs to them.
    TABLES.into_iter().flat_map(|table| TIERS.map(|tier| (table, tier)))
}

fn has(leaves: &[Leaf], table: &str, tier: i16, day: i32) -> bool {
    let is_it = |leaf: &Leaf| leaf.table == table && leaf.tier == tier && (leaf.from..leaf.to).contains(&day);
    leaves.iter().any(is_it)
}

fn missing(leaves: &[Leaf], today: i32) -> Vec<(&'static str, i16)> {
    let lacks = |table, tier| (today..=today + AHEAD_DAYS).any(|day| !has(leaves, table, tier, day));
    slots().filter(|(table, tier)| lacks(table, *tier)).collect()
}

/// The tier and day of a message.
pub(crate) type Slot = (i16, i32);

/// Slots that had their partitions when somebody looked. Another may have removed them since: then the server
/// says that one is missing, and this is to be forgotten.
#[derive(Default)]
pub(crate) struct There(BTreeSet<Slot>);

impl There {
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Those of the slots for which a partition is missing. To list all partitions takes as long as to move some
    /// messages, so it is done for new slots only.
    pub(crate) async fn lacking(
        &mut self,
        session: &mut Session,
        slots: BTreeSet<Slot>,
    ) -> Result<BTreeSet<Slot>, Failed> {
        if slots.is_subset(&self.0) {
            return Ok(BTreeSet::new());
        }
        let leaves = leaves(session).await?;
        let is_there = |(tier, day): &Slot| TABLES.iter().all(|table| has(&leaves, table, *tier, *day));
        let (there, lacking): (BTreeSet<Slot>, _) = slots.into_iter().partition(is_there);
        self.0 = there;
        Ok(lacking)
    }
}

/// Makes the partitions of these slots that are not there.
pub(crate) async fn make_for(
    session: &mut Session,
    slots: &BTreeSet<Slot>,
    patience: Patience,
) -> Result<(), Failed> {
    for (tier, day) in slots {
        for table in TABLES {
            let made = make(session, table, *tier, (*day, *day), patience).await;
            if made.is_err() {
                session.roll_back().await;
            }
            made?;
        }
    }
    announce(session).await.map(drop)
}

/// Of two engines that make the same, the second finds it made.
pub(crate) const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ': partitions', 0))";

async fn make(
    session: &mut Session,
    table: &'static str,
    tier: i16,
    (first, last): (i32, i32),
    patience: Patience,
) -> Result<(), Failed> {
    let what = "make partitions";
    session
        .script(
            what,
            match patience {
                Patience::Short => "BEGIN; SET LOCAL lock_timeout = '2s'",
                Patience::UntilItIsThere => "BEGIN; SET LOCAL lock_timeout = 0",
            },
        )
        .await?;
    session.execute(what, sqlx::query(LOCK)).await?;
    let leaves = leaves(session).await?;
    let mut day = first;
    while day <= last {
        let (from, to) = period(tier, day);
        if !has(&leaves, table, tier, day) {
            let leaf = format!("{table}_t{tier}_{}", date(from));
            let parent = format!("{table}_t{tier}");
            let script = format!(
                "CREATE TABLE IF NOT EXISTS {leaf} (LIKE {parent} INCLUDING ALL);
                COMMENT ON TABLE {leaf} IS 'Part of `{table}`: tier {tier}, {} to {}.';
                ALTER TABLE {parent} ATTACH PARTITION {leaf} FOR VALUES FROM ({from}) TO ({to})",
                date(from),
                date(to - 1),
            );
            session.script(what, AssertSqlSafe(script)).await?;
        }
        day = to;
    }
    session.commit(what).await
}

/// First day of the period of a day, and the first day behind it. Weeks begin on Monday; day 4 was one.
pub(crate) fn period(tier: i16, day: i32) -> (i32, i32) {
    match tier {
        HELD => month(day),
        DAILY_TIER => (day, day + 1),
        _ => {
            let monday = day - (day - 4).rem_euclid(7);
            (monday, monday + 7)
        }
    }
}

/// The Julian day of day 0.
const FIRST: i32 = 2_440_588;

/// First day of the month of a day, and of the next.
fn month(day: i32) -> (i32, i32) {
    let Ok(date) = Date::from_julian_day(FIRST.saturating_add(day)) else { return (day, day + 1) };
    let from = day - i32::from(date.day()) + 1;
    (from, from + i32::from(date.month().length(date.year())))
}

/// A day as people write it, without separators.
fn date(day: i32) -> String {
    match Date::from_julian_day(FIRST.saturating_add(day)) {
        Ok(date) => format!("{:04}{:02}{:02}", date.year(), u8::from(date.month()), date.day()),
        Err(_) => format!("day{day}"),
    }
}

/// A time of which the messages of a tier are stored together, and can be removed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    /// In days.
    pub tier: u8,
    /// Its first day, since 1970 (UTC, by the clock of the database).
    pub from_day: i32,
    /// The first day that is not its.
    pub to_day: i32,
}

/// All periods there are, by tier, the oldest first.
pub(crate) async fn periods(session: &mut Session) -> Result<Vec<Period>, Failed> {
    let leaves = leaves(session).await?;
    let mut periods: Vec<Period> = leaves.iter().filter_map(Leaf::period).collect();
    periods.sort_unstable();
    periods.dedup();
    Ok(periods)
}

impl Leaf {
    fn period(&self) -> Option<Period> {
        let tier = u8::try_from(self.tier).ok()?;
        Some(Period { tier, from_day: self.from, to_day: self.to })
    }
}

/// Removes what was stored in a period, table by table: each part is detached beside inserts and queries,
/// then dropped. Nobody looks here whether something in it is still needed. What was begun and not ended is
/// ended by the next try.
///
/// Whoever reads or writes is waited for, but not for long: who makes partitions waits behind this.
pub(crate) async fn remove(session: &mut Session, period: Period) -> Result<(), Failed> {
    let what = "remove a partition";
    session.script(what, "SET lock_timeout = '200ms'").await?;
    let removed = remove_parts(session, period).await;
    if !session.is_broken {
        session.script(what, "SET lock_timeout = 0").await?;
    }
    removed
}

async fn remove_parts(session: &mut Session, period: Period) -> Result<(), Failed> {
    end_removals(session).await?;
    let leaves = leaves(session).await?;
    for table in TABLES {
        let is_it = |leaf: &&Leaf| leaf.table == table && leaf.period() == Some(period);
        if let Some(Leaf { table, tier, name, .. }) = leaves.iter().find(is_it) {
            let detach = format!("ALTER TABLE {table}_t{tier} DETACH PARTITION {name} CONCURRENTLY");
            session.script("detach a partition", AssertSqlSafe(detach)).await?;
        }
        // Also what an earlier try detached and did not come to drop.
        let name = format!("{table}_t{}_{}", period.tier, date(period.from_day));
        session.script("remove a partition", AssertSqlSafe(format!("DROP TABLE IF EXISTS {name}"))).await?;
    }
    Ok(())
}

const HALF_REMOVED: &str = "SELECT tier.relname::text, leaf.oid::regclass::text
    FROM pg_inherits of_tier
    JOIN pg_class leaf ON leaf.oid = of_tier.inhrelid
    JOIN pg_class tier ON tier.oid = of_tier.inhparent
    WHERE of_tier.inhdetachpending AND tier.relnamespace = current_schema()::regnamespace";

/// Ends what [`remove`] began and a crash or a time-out left.
async fn end_removals(session: &mut Session) -> Result<(), Failed> {
    let what = "end the removal of partitions";
    let half = session.read(what, sqlx::query(HALF_REMOVED), |row| {
        Ok((value::<String>(row, 0)?, value::<String>(row, 1)?))
    });
    for (parent, leaf) in half.await? {
        let script = format!("ALTER TABLE {parent} DETACH PARTITION {leaf} FINALIZE");
        session.script(what, AssertSqlSafe(script)).await?;
        session.script(what, AssertSqlSafe(format!("DROP TABLE {leaf}"))).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_days_or_weeks_from_monday_on() {
        // 30 November 2026, a Monday.
        let monday = 20_787;
        assert_eq!((date(monday), period(7, monday)), ("20261130".into(), (monday, monday + 1)));
        for day in monday..monday + 7 {
            assert_eq!(period(49, day), (monday, monday + 7));
        }
        assert_eq!(period(21, monday - 1), (monday - 7, monday));
        for day in [monday - 29, monday, monday - 7] {
            assert_eq!(period(HELD, day), (monday - 29, monday + 1), "November");
        }
        assert_eq!(period(HELD, monday + 1), (monday + 1, monday + 32));
    }

    #[test]
    fn what_is_missing_is_told_by_table_and_tier() {
        let leaf =
            |table: &str, tier, from, to| Leaf { table: table.into(), tier, name: String::new(), from, to };
        assert_eq!(missing(&[], 20_787).len(), 15);
        let mut leaves: Vec<Leaf> = slots().map(|(table, tier)| leaf(table, tier, 20_787, 20_794)).collect();
        assert_eq!(missing(&leaves, 20_787), []);
        assert!(is_ready(&leaves, 20_793) && !is_ready(&leaves, 20_794));
        assert_eq!(missing(&leaves, 20_791).len(), 15, "three days ahead");
        leaves.remove(0);
        assert_eq!(missing(&leaves, 20_787), [("bodies", 7)]);
    }
}
