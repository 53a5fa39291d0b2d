//! How far sources have come.

use std::collections::BTreeMap;

use bytes::Bytes;
use portway_model::{InterfaceId, Timestamp};
use portway_store::SourceCursor;

use crate::error::Failed;
use crate::number::{small, stored};
use crate::query::{Session, value};

const KEEP: &str = "INSERT INTO source_cursors (interface_id, cursor, changed_at)
    SELECT c.*, $1 FROM unnest($2::int4[], $3::bytea[]) AS c
    ON CONFLICT (interface_id) DO UPDATE SET cursor = excluded.cursor, changed_at = excluded.changed_at";

/// Replaces cursors inside the transaction that is open; the last of an interface counts.
pub(crate) async fn keep(
    session: &mut Session,
    cursors: &[SourceCursor],
    now: Timestamp,
) -> Result<(), Failed> {
    if cursors.is_empty() {
        return Ok(());
    }
    let last: BTreeMap<i32, &[u8]> =
        cursors.iter().map(|cursor| (small(cursor.interface.0), &cursor.cursor[..])).collect();
    let statement = sqlx::query(KEEP)
        .bind(stored(now.0))
        .bind(last.keys().copied().collect::<Vec<_>>())
        .bind(last.values().copied().collect::<Vec<_>>());
    session.execute("keep the cursors of sources", statement).await.map(drop)
}

const READ: &str = "SELECT cursor FROM source_cursors WHERE interface_id = $1";

pub(crate) async fn read(session: &mut Session, interface: InterfaceId) -> Result<Option<Bytes>, Failed> {
    let statement = sqlx::query(READ).bind(small(interface.0));
    let cursor = session.read_one("read the cursor of a source", statement, |row| value::<Vec<u8>>(row, 0));
    Ok(cursor.await?.map(Bytes::from))
}
