//! What an upgrade would do to a database, without touching it; and doing it while no engine runs.
//!
//! What each migration is for, it says itself; here its tables are measured.

use std::time::Instant;

use portway_store::{ErrorKind, Migration, StoreError, TableWork, UpgradePlan, UpgradeStep, Upgraded, Work};

use crate::error::Failed;
use crate::open::{self, OpenError, classify, refuse};
use crate::query::{Session, value};
use crate::schema::{self, Beside, KNOWN, Schema};
use crate::settings::PostgresSettings;

/// What an upgrade of the database to the tables of this program would do. Nothing is changed, and no engine
/// is disturbed.
pub async fn check_upgrade(settings: PostgresSettings) -> Result<UpgradePlan, OpenError> {
    let (connector, place) = open::reach(&settings).await?;
    let failed = |failed| classify(failed, &place);
    let mut session = connector.connect().await.map_err(failed)?;
    session
        .script("only read", "SET default_transaction_read_only = on; SET lock_timeout = '2s'")
        .await
        .map_err(failed)?;
    let schema = schema::read(&mut session).await.map_err(failed)?.map_err(|unfit| refuse(unfit, &place))?;
    let plan = plan(&mut session, schema).await.map_err(failed)?;
    session.close().await;
    Ok(plan)
}

/// Brings the database to the tables of this program. Refused while an engine uses it.
pub async fn upgrade(settings: PostgresSettings) -> Result<Upgraded, OpenError> {
    let (connector, place) = open::reach(&settings).await?;
    let failed = |failed| classify(failed, &place);
    let begun = Instant::now();
    let mut session = connector.connect().await.map_err(failed)?;
    let schema = schema::read(&mut session).await.map_err(failed)?.map_err(|unfit| refuse(unfit, &place))?;
    let from = schema.present();
    if from.is_none() {
        return Err(OpenError::Missing { place });
    }
    open::prepare(&mut session, &place, Beside::Nobody, &settings).await?;
    session.close().await;
    Ok(Upgraded { from, to: KNOWN, took: begun.elapsed() })
}

async fn plan(session: &mut Session, schema: Schema) -> Result<UpgradePlan, Failed> {
    let present = schema.present();
    let mut steps = Vec::new();
    if present.is_some() {
        for migration in schema.missing() {
            steps.push(step(session, migration).await?);
        }
    }
    Ok(UpgradePlan { present, known: KNOWN, steps, newer: schema.newer, free_bytes: None })
}

async fn step(session: &mut Session, migration: &Migration) -> Result<UpgradeStep, Failed> {
    let head = migration.head();
    let head = head.map_err(|error| StoreError::new(ErrorKind::Fatal, error.to_string()))?;
    let mut tables = Vec::new();
    for (table, work) in head.works_through {
        tables.push(measure(session, table, work).await?);
    }
    Ok(UpgradeStep {
        number: migration.number(),
        name: migration.name.to_owned(),
        does: head.does,
        others: head.others,
        tables,
    })
}

/// Of a table and all its parts. The rows are what the server believes; of a part that it never counted,
/// what would fit into it.
const MEASURE: &str = "SELECT coalesce(sum(CASE WHEN c.reltuples < 0 THEN pg_relation_size(c.oid) / 100
            ELSE c.reltuples END), 0)::int8,
        coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8
    FROM pg_class c WHERE c.relkind = 'r' AND c.oid IN (
        SELECT to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1))::oid
        UNION ALL SELECT relid::oid FROM pg_partition_tree(
            to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1))))";

async fn measure(session: &mut Session, table: String, work: Work) -> Result<TableWork, Failed> {
    let measured = session.read_one("measure a table", sqlx::query(MEASURE).bind(&table), |row| {
        Ok((value::<i64>(row, 0)?, value::<i64>(row, 1)?))
    });
    let (rows, bytes) = measured.await?.unwrap_or_default();
    Ok(TableWork { table, work, rows: rows.unsigned_abs(), bytes: bytes.unsigned_abs(), at_least: false })
}
