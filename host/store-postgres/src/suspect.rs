//! Deliveries that may have killed the process: how often each was recorded before it was tried.

use std::collections::BTreeMap;

use portway_model::{DestinationId, MessageId};
use portway_store::Suspect;

use crate::error::Failed;
use crate::number::{message, small, stored};
use crate::query::{Session, value};

const COUNT: &str = "INSERT INTO suspects (message_id, destination_id, tries)
    SELECT * FROM unnest($1::int8[], $2::int4[], $3::int8[])
    ON CONFLICT (message_id, destination_id) DO UPDATE SET tries = suspects.tries + excluded.tries
    RETURNING message_id, destination_id, tries";

/// Counts suspects inside the transaction that is open; answers each one's count.
pub(crate) async fn count(session: &mut Session, suspects: &[Suspect]) -> Result<Vec<u32>, Failed> {
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let slot = |suspect: &Suspect| (stored(suspect.message.0), small(suspect.destination.0));
    let mut times: BTreeMap<(i64, i32), i64> = BTreeMap::new();
    for suspect in suspects {
        *times.entry(slot(suspect)).or_insert(0) += 1;
    }
    let statement = sqlx::query(COUNT)
        .bind(times.keys().map(|(message, _)| *message).collect::<Vec<_>>())
        .bind(times.keys().map(|(_, destination)| *destination).collect::<Vec<_>>())
        .bind(times.values().copied().collect::<Vec<_>>());
    let counted = session.read("count suspects", statement, |row| {
        Ok(((value::<i64>(row, 0)?, value::<i32>(row, 1)?), value::<i64>(row, 2)?))
    });
    // What each had before this batch; then it rises with each time it stands in it.
    let mut counts: BTreeMap<(i64, i32), i64> = counted.await?.into_iter().collect();
    for (slot, times) in times {
        if let Some(count) = counts.get_mut(&slot) {
            *count -= times;
        }
    }
    Ok(suspects
        .iter()
        .map(|suspect| {
            let count = counts.entry(slot(suspect)).or_insert(0);
            *count += 1;
            u32::try_from(*count).unwrap_or(u32::MAX)
        })
        .collect())
}

const LIST: &str = "SELECT message_id FROM suspects WHERE destination_id = $1 ORDER BY message_id";

/// Those of a destination.
pub(crate) async fn list(
    session: &mut Session,
    destination: DestinationId,
) -> Result<Vec<MessageId>, Failed> {
    let statement = sqlx::query(LIST).bind(small(destination.0));
    session.read("list suspects", statement, |row| message(value(row, 0)?)).await
}

pub(crate) const FORGET: &str = "DELETE FROM suspects s
    USING unnest($1::int8[], $2::int4[]) AS f (message_id, destination_id)
    WHERE s.message_id = f.message_id AND s.destination_id = f.destination_id";
