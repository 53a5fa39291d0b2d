//! Rows of owners, until the module of ownership takes its place.

use std::collections::BTreeSet;

use portway_model::{Epoch, GroupId};
use portway_store::EngineView;

use crate::error::{Failed, damaged};
use crate::number::{self, small};
use crate::query::{Session, value};

const KNOW: &str = "INSERT INTO owners (group_id, engine, epoch) SELECT g, '', 0 FROM unnest($1::int4[]) AS g
    ON CONFLICT DO NOTHING";

/// Each group has a row.
pub(crate) async fn know(session: &mut Session, groups: &BTreeSet<GroupId>) -> Result<(), Failed> {
    if groups.is_empty() {
        return Ok(());
    }
    let groups: Vec<i32> = groups.iter().map(|group| small(group.0)).collect();
    session.execute("know groups", sqlx::query(KNOW).bind(groups)).await.map(drop)
}

const ENGINES: &str = "SELECT engine, started_at FROM engines WHERE owns ORDER BY engine";

pub(crate) async fn engines(session: &mut Session, own: &str) -> Result<Vec<EngineView>, Failed> {
    session
        .read("list engines", sqlx::query(ENGINES), |row| {
            let engine: String = value(row, 0)?;
            let is_self = engine == own;
            Ok(EngineView { engine, started_at: number::time(value(row, 1)?)?, is_self, groups: Vec::new() })
        })
        .await
}

const UNCLEAN: &str =
    "SELECT coalesce(bool_or(engine <> '' AND NOT clean), false), coalesce(max(epoch), 0) + 1
    FROM owners WHERE group_id = ANY ($1::int4[])";
const TAKE: &str = "UPDATE owners SET engine = $2, epoch = $3, since = $4, clean = false
    WHERE group_id = ANY ($1::int4[])";
const START: &str =
    "INSERT INTO engines (engine, started_at, lock_key, epoch, owns) VALUES ($1, $2, 0, $3, true)
    ON CONFLICT (engine) DO UPDATE SET started_at = excluded.started_at, epoch = excluded.epoch, owns = true";

/// Takes groups; whether the owner before left them uncleanly.
pub(crate) async fn take(
    session: &mut Session,
    engine: &str,
    groups: &[GroupId],
    since: i64,
) -> Result<(Epoch, bool), Failed> {
    know(session, &groups.iter().copied().collect()).await?;
    let what = "claim groups";
    let numbers: Vec<i32> = groups.iter().map(|group| small(group.0)).collect();
    let found = session.read_one(what, sqlx::query(UNCLEAN).bind(&numbers), |row| {
        Ok((value::<bool>(row, 0)?, value::<i64>(row, 1)?))
    });
    let (unclean, epoch) = found.await?.ok_or_else(|| damaged("there are no owners"))?;
    session.execute(what, sqlx::query(TAKE).bind(numbers).bind(engine).bind(epoch).bind(since)).await?;
    session.execute(what, sqlx::query(START).bind(engine).bind(since).bind(epoch)).await?;
    Ok((Epoch(epoch.cast_unsigned()), unclean))
}

const RELEASE: &str = "WITH ended AS (UPDATE engines SET owns = false WHERE engine = $1)
    UPDATE owners SET clean = true WHERE engine = $1";

pub(crate) async fn release(session: &mut Session, engine: &str) -> Result<(), Failed> {
    session.execute("give back groups", sqlx::query(RELEASE).bind(engine)).await.map(drop)
}
