//! Deliveries that may have killed the process: how often each was tried by itself.

use std::collections::HashMap;

use portway_store::{DeliveryResult, StoreError, Suspect};
use sqlx::sqlite::SqliteConnection;

use crate::error::failed;
use crate::number::{read_u32, stored};
use crate::pair::Pairs;
use crate::script::Script;

/// Counts suspects inside the transaction that is open; answers each one's count.
pub(crate) async fn count(
    connection: &mut SqliteConnection,
    suspects: &[Suspect],
) -> Result<Vec<u32>, StoreError> {
    let error = |error| failed("count suspects", error);
    let mut known: HashMap<(i64, i64), u32> = HashMap::new();
    for pairs in pairs(suspects) {
        let query = sqlx::query_as(
            "SELECT message_id, destination_id, tries FROM suspects WHERE (message_id, destination_id) IN
                (SELECT ? + (value >> 32), value & 4294967295 FROM json_each(?))",
        );
        let rows: Vec<(i64, i64, i64)> =
            query.bind(pairs.first).bind(&pairs.json).fetch_all(&mut *connection).await.map_err(error)?;
        for (message, destination, tries) in rows {
            known.insert((message, destination), read_u32(tries)?);
        }
    }
    let mut counts = Vec::with_capacity(suspects.len());
    let mut rows = Vec::with_capacity(suspects.len());
    for suspect in suspects {
        let (message, destination) = (stored(suspect.message.0), i64::from(suspect.destination.0));
        let tries = known.entry((message, destination)).or_default();
        *tries = tries.saturating_add(1);
        counts.push(*tries);
        rows.push(serde_json::json!([message, destination, *tries]));
    }
    let mut script = Script::default();
    script
        .step(
            "INSERT OR REPLACE INTO suspects (message_id, destination_id, tries)
            SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
        )
        .bind(serde_json::Value::from(rows).to_string());
    script.run(connection).await.map_err(error)?;
    Ok(counts)
}

fn pairs(suspects: &[Suspect]) -> Vec<Pairs> {
    Pairs::of(suspects.iter().map(|suspect| (suspect.message, suspect.destination)))
}

/// Adds the forgetting of suspects that have a result now.
pub(crate) fn forget(script: &mut Script, results: &[&DeliveryResult]) {
    for pairs in Pairs::of(results.iter().map(|result| (result.message, result.destination))) {
        script
            .step(
                "DELETE FROM suspects WHERE (message_id, destination_id) IN
                    (SELECT ? + (value >> 32), value & 4294967295 FROM json_each(?))",
            )
            .bind(pairs.first)
            .bind(pairs.json.as_str());
    }
}

/// Whether there are any.
pub(crate) async fn any(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM suspects)").fetch_one(connection).await
}
