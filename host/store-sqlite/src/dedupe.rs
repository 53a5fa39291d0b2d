//! Recognising messages that were stored before.

use std::collections::HashMap;

use portway_model::{InterfaceId, Timestamp};
use portway_store::StoreError;
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use crate::error::failed;
use crate::message::{Candidate, Numbered, Seen};
use crate::number::stored;
use crate::script::{ROWS_MAX, Script};

/// First half of a body's SHA-256: enough to tell two bodies of one key apart.
type BodyDigest = [u8; 16];
type Slot<'a> = (InterfaceId, &'a str);

/// A key that was seen, in the store or earlier in the batch.
struct Known {
    message: i64,
    digest: BodyDigest,
}

/// A key to remember.
pub(crate) struct Remembered<'a> {
    slot: Slot<'a>,
    message: i64,
    digest: BodyDigest,
    expires_at: Timestamp,
}

/// Numbers candidates from `first` on and tells which were stored before.
pub(crate) async fn number<'a>(
    connection: &mut SqliteConnection,
    candidates: &[&'a Candidate<'a>],
    first: i64,
    now: Timestamp,
) -> Result<(Vec<Numbered<'a>>, Vec<Remembered<'a>>), StoreError> {
    let mut known = look_up(connection, candidates, now).await?;
    let mut remembered = Vec::new();
    let mut numbered = Vec::with_capacity(candidates.len());
    for (id, &candidate) in (first..).zip(candidates) {
        let Some((slot, window)) = slot(candidate) else {
            numbered.push(Numbered { id, candidate, seen: Seen::Never });
            continue;
        };
        let digest = digest(&candidate.new.draft.body);
        let seen = match known.get(&slot) {
            Some(known) if known.digest == digest => Seen::Before(known.message),
            Some(known) => Seen::WithOtherBody(known.message),
            None => Seen::Never,
        };
        if !matches!(seen, Seen::Before(_)) {
            // The newest body counts: what is sent again is nearly always the last that was sent.
            known.insert(slot, Known { message: id, digest });
            remembered.push(Remembered { slot, message: id, digest, expires_at: now + window });
        }
        numbered.push(Numbered { id, candidate, seen });
    }
    Ok((numbered, remembered))
}

fn slot<'a>(candidate: &'a Candidate<'a>) -> Option<(Slot<'a>, std::time::Duration)> {
    let key = candidate.new.draft.dedupe.as_ref()?;
    Some(((candidate.new.interface, key.as_str()), candidate.new.dedupe?.0))
}

fn digest(body: &[u8]) -> BodyDigest {
    let mut digest = BodyDigest::default();
    let full = Sha256::digest(body);
    digest.iter_mut().zip(full).for_each(|(to, from)| *to = from);
    digest
}

async fn look_up<'a>(
    connection: &mut SqliteConnection,
    candidates: &[&'a Candidate<'a>],
    now: Timestamp,
) -> Result<HashMap<Slot<'a>, Known>, StoreError> {
    let slots: Vec<Slot<'a>> = candidates.iter().filter_map(|candidate| Some(slot(candidate)?.0)).collect();
    let mut known = HashMap::new();
    if slots.is_empty() {
        return Ok(known);
    }
    let wanted: Vec<(u32, &str)> = slots.iter().map(|(interface, key)| (interface.0, *key)).collect();
    let what = "look for duplicates";
    let json =
        serde_json::to_string(&wanted).map_err(|error| failed(what, sqlx::Error::Encode(error.into())))?;
    let rows = sqlx::query(
        "SELECT wanted.key, dedupe.message_id, dedupe.body_digest FROM json_each(?) AS wanted
        CROSS JOIN dedupe ON interface_id = wanted.value ->> 0 AND dedupe.key = wanted.value ->> 1
        WHERE expires_at > ?",
    )
    .bind(json)
    .bind(stored(now.0))
    .fetch_all(connection)
    .await
    .map_err(|error| failed(what, error))?;
    for row in rows {
        let read = || -> Result<(i64, i64, &[u8]), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
        };
        let (index, message, stored_digest) = read().map_err(|error| failed(what, error))?;
        let slot = usize::try_from(index).ok().and_then(|index| slots.get(index));
        if let (Some(slot), Ok(digest)) = (slot, BodyDigest::try_from(stored_digest)) {
            known.insert(*slot, Known { message, digest });
        }
    }
    Ok(known)
}

/// At most [`ROWS_MAX`] keys.
pub(crate) fn remember(script: &mut Script, keys: &[Remembered<'_>]) {
    if keys.is_empty() {
        return;
    }
    let columns = 5;
    let size = script.step_rows(
        "INSERT INTO dedupe (interface_id, key, message_id, body_digest, expires_at) SELECT * FROM ",
        columns,
        keys.len().min(ROWS_MAX),
        " WHERE column1 IS NOT NULL ON CONFLICT DO UPDATE SET message_id = excluded.message_id,
            body_digest = excluded.body_digest, expires_at = excluded.expires_at",
    );
    for key in keys {
        script
            .bind(i64::from(key.slot.0.0))
            .bind(key.slot.1)
            .bind(key.message)
            .bind(key.digest.as_slice())
            .bind(stored(key.expires_at.0));
    }
    script.bind_empty((size - keys.len()) * columns);
}
