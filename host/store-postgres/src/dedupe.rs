//! Recognising messages that were stored before.
//!
//! The keys of a batch are claimed by one statement, in the order of their digests: of two engines with the
//! same keys one waits for the other, and none for one that waits for it.

use std::collections::BTreeMap;

use portway_model::Timestamp;
use portway_store::NewMessage;
use sha2::{Digest as _, Sha256};

use crate::error::Failed;
use crate::message::Seen;
use crate::number::{small, stored};
use crate::query::{Session, value};

/// First half of a SHA-256: enough to tell two keys, or two bodies of one key, apart.
const DIGEST_BYTES: usize = 16;

type Slot = (i32, Vec<u8>);

/// What is remembered of a key.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    message: i64,
    body: Vec<u8>,
    expires_at: i64,
}

/// A message with a key that is looked up.
struct Asked {
    index: usize,
    slot: Slot,
    entry: Entry,
}

/// Which of these messages were stored before, also earlier in the batch; remembers the keys of the others.
pub(crate) async fn look_up(
    session: &mut Session,
    messages: &[&NewMessage],
    ids: &[i64],
    now: Timestamp,
) -> Result<Vec<Seen>, Failed> {
    let mut seen = vec![Seen::Never; messages.len()];
    let asked: Vec<Asked> = messages
        .iter()
        .zip(ids)
        .enumerate()
        .filter_map(|(index, (message, id))| asked(index, message, *id, now))
        .collect();
    if asked.is_empty() {
        return Ok(seen);
    }
    let mut first: BTreeMap<&Slot, &Entry> = BTreeMap::new();
    for Asked { slot, entry, .. } in &asked {
        first.entry(slot).or_insert(entry);
    }
    let stored_before = claim(session, &first).await?;
    // What is in the database now; what it has to be at the end.
    let mut known = stored_before.clone();
    for Asked { index, slot, entry } in &asked {
        let before = known.get(slot).filter(|before| before.expires_at > stored(now.0));
        let (is, changes) = match before {
            // Its own entry, just made.
            Some(before) if before.message == entry.message => (Seen::Never, false),
            Some(before) if before.body == entry.body => (Seen::Before(before.message), false),
            // The newest body counts: what is sent again is nearly always the last that was sent.
            Some(before) => (Seen::WithOtherBody(before.message), true),
            None => (Seen::Never, true),
        };
        if changes {
            known.insert(slot.clone(), entry.clone());
        }
        if let Some(seen) = seen.get_mut(*index) {
            *seen = is;
        }
    }
    known.retain(|slot, entry| stored_before.get(slot) != Some(entry));
    remember(session, &known).await?;
    Ok(seen)
}

fn asked(index: usize, message: &NewMessage, id: i64, now: Timestamp) -> Option<Asked> {
    let (key, window) = (message.draft.dedupe.as_ref()?, message.dedupe?);
    let slot = (small(message.interface.0), digest(key.as_str().as_bytes()));
    let expires_at = stored((now + window.0).0);
    Some(Asked { index, slot, entry: Entry { message: id, body: digest(message.body()), expires_at } })
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).get(..DIGEST_BYTES).unwrap_or_default().to_vec()
}

/// A key that is there is locked, and answered as it is.
const CLAIM: &str = "INSERT INTO dedupe (interface_id, key_digest, message_id, body_digest, expires_at)
    SELECT * FROM unnest($1::int4[], $2::bytea[], $3::int8[], $4::bytea[], $5::int8[]) AS c (i, k, m, b, e)
    ORDER BY i, k
    ON CONFLICT (interface_id, key_digest) DO UPDATE SET message_id = dedupe.message_id
    RETURNING interface_id, key_digest, message_id, body_digest, expires_at";

async fn claim(
    session: &mut Session,
    entries: &BTreeMap<&Slot, &Entry>,
) -> Result<BTreeMap<Slot, Entry>, Failed> {
    let statement = sqlx::query(CLAIM)
        .bind(entries.keys().map(|slot| slot.0).collect::<Vec<_>>())
        .bind(entries.keys().map(|slot| slot.1.as_slice()).collect::<Vec<_>>())
        .bind(entries.values().map(|entry| entry.message).collect::<Vec<_>>())
        .bind(entries.values().map(|entry| entry.body.as_slice()).collect::<Vec<_>>())
        .bind(entries.values().map(|entry| entry.expires_at).collect::<Vec<_>>());
    let claimed = session.read("look for duplicates", statement, |row| {
        let entry = Entry { message: value(row, 2)?, body: value(row, 3)?, expires_at: value(row, 4)? };
        Ok(((value(row, 0)?, value(row, 1)?), entry))
    });
    Ok(claimed.await?.into_iter().collect())
}

const REMEMBER: &str = "UPDATE dedupe d SET message_id = r.m, body_digest = r.b, expires_at = r.e
    FROM unnest($1::int4[], $2::bytea[], $3::int8[], $4::bytea[], $5::int8[]) AS r (i, k, m, b, e)
    WHERE d.interface_id = r.i AND d.key_digest = r.k";

async fn remember(session: &mut Session, entries: &BTreeMap<Slot, Entry>) -> Result<(), Failed> {
    if entries.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(REMEMBER)
        .bind(entries.keys().map(|slot| slot.0).collect::<Vec<_>>())
        .bind(entries.keys().map(|slot| slot.1.as_slice()).collect::<Vec<_>>())
        .bind(entries.values().map(|entry| entry.message).collect::<Vec<_>>())
        .bind(entries.values().map(|entry| entry.body.as_slice()).collect::<Vec<_>>())
        .bind(entries.values().map(|entry| entry.expires_at).collect::<Vec<_>>());
    session.execute("remember dedupe keys", statement).await.map(drop)
}
