//! What plugins keep.

use std::collections::BTreeMap;

use bytes::Bytes;
use portway_model::{DestinationId, StateWrite};
use portway_store::{DeliveryResult, ListStateKeys, StateKey};

use crate::error::Failed;
use crate::number::{small, text};
use crate::query::{Session, value};

const PUT: &str = "INSERT INTO plugin_state (destination_id, space, key, value)
    SELECT * FROM unnest($1::int4[], $2::text[], $3::text[], $4::bytea[])
    ON CONFLICT (destination_id, space, key) DO UPDATE SET value = excluded.value";
const REMOVE: &str = "DELETE FROM plugin_state s
    USING unnest($1::int4[], $2::text[], $3::text[]) AS r (destination_id, space, key)
    WHERE s.destination_id = r.destination_id AND s.space = r.space AND s.key = r.key";

/// Keeps what came with results that count, inside the transaction that is open. The last write of a key
/// counts.
pub(crate) async fn keep<'a>(
    session: &mut Session,
    counting: impl Iterator<Item = &'a DeliveryResult>,
) -> Result<(), Failed> {
    let mut last: BTreeMap<(i32, &str, &str), Option<&[u8]>> = BTreeMap::new();
    for result in counting {
        for StateWrite { space, key, value } in &result.state {
            last.insert((small(result.destination.0), space, key), value.as_deref());
        }
    }
    let put: Vec<_> = last.iter().filter_map(|(slot, value)| Some((*slot, (*value)?))).collect();
    if !put.is_empty() {
        let statement = sqlx::query(PUT)
            .bind(put.iter().map(|((destination, ..), _)| *destination).collect::<Vec<_>>())
            .bind(put.iter().map(|((_, space, _), _)| text(space)).collect::<Vec<_>>())
            .bind(put.iter().map(|((.., key), _)| *key).collect::<Vec<_>>())
            .bind(put.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        session.execute("keep the state of plugins", statement).await?;
    }
    let removed: Vec<_> = last.iter().filter(|(_, value)| value.is_none()).map(|(slot, _)| *slot).collect();
    if !removed.is_empty() {
        let statement = sqlx::query(REMOVE)
            .bind(removed.iter().map(|(destination, ..)| *destination).collect::<Vec<_>>())
            .bind(removed.iter().map(|(_, space, _)| text(space)).collect::<Vec<_>>())
            .bind(removed.iter().map(|(.., key)| *key).collect::<Vec<_>>());
        session.execute("remove state of plugins", statement).await?;
    }
    Ok(())
}

/// Removes a value inside the transaction that is open.
pub(crate) async fn remove(
    session: &mut Session,
    destination: DestinationId,
    at: &StateKey,
) -> Result<(), Failed> {
    if at.key.contains('\0') {
        // No such key is ever kept.
        return Ok(());
    }
    let statement = sqlx::query(REMOVE)
        .bind(vec![small(destination.0)])
        .bind(vec![text(&at.space)])
        .bind(vec![at.key.as_str()]);
    session.execute("remove state of plugins", statement).await.map(drop)
}

const GET: &str = "SELECT value FROM plugin_state WHERE destination_id = $1 AND space = $2 AND key = $3";

pub(crate) async fn get(
    session: &mut Session,
    destination: DestinationId,
    space: &str,
    key: &str,
) -> Result<Option<Bytes>, Failed> {
    if key.contains('\0') {
        // No such key is ever kept.
        return Ok(None);
    }
    let statement = sqlx::query(GET).bind(small(destination.0)).bind(text(space)).bind(key);
    let read = session.read_one("read the state of a plugin", statement, |row| value::<Vec<u8>>(row, 0));
    Ok(read.await?.map(Bytes::from))
}

const KEYS: &str = "SELECT key FROM plugin_state
    WHERE destination_id = $1 AND space = $2 AND key >= $3 AND key <= $4 AND key > $5
    ORDER BY key LIMIT $6";
/// More of it than a key has room for is behind every key with the same beginning.
const LAST_CHARACTER: &str = "\u{10FFFF}";

pub(crate) async fn list_keys(session: &mut Session, list: &ListStateKeys) -> Result<Vec<String>, Failed> {
    // No key is empty, so that all come after this.
    let after = list.after.as_deref().unwrap_or_default();
    let last = format!("{}{}", list.prefix, LAST_CHARACTER.repeat(StateWrite::KEY_BYTES_MAX / 4));
    if last.contains('\0') || after.contains('\0') {
        return Ok(Vec::new());
    }
    let statement = sqlx::query(KEYS)
        .bind(small(list.destination.0))
        .bind(text(&list.space))
        .bind(&list.prefix)
        .bind(last)
        .bind(after)
        .bind(i64::from(list.limit));
    session.read("list the state of a plugin", statement, |row| value(row, 0)).await
}

const COUNT: &str = "SELECT count(*)::int4 FROM
    (SELECT 1 FROM plugin_state WHERE destination_id = $1 AND space = $2 LIMIT $3) AS counted";

pub(crate) async fn count(
    session: &mut Session,
    destination: DestinationId,
    space: &str,
    limit: u32,
) -> Result<u32, Failed> {
    let statement = sqlx::query(COUNT).bind(small(destination.0)).bind(text(space)).bind(i64::from(limit));
    let counted = session.read_one("count the state of a plugin", statement, |row| value::<i32>(row, 0));
    Ok(counted.await?.and_then(|count| u32::try_from(count).ok()).unwrap_or(0))
}
