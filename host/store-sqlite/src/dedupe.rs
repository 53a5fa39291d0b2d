//! Recognising messages that were stored before.

use portway_model::Timestamp;
use portway_store::NewMessage;
use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

use crate::message::Seen;
use crate::number::stored;

/// First half of a body's SHA-256: enough to tell two bodies of one key apart.
const DIGEST_BYTES: usize = 16;

const LOOK_UP: &str =
    "SELECT message_id, body_digest FROM dedupe WHERE interface_id = ? AND key = ? AND expires_at > ?";
const REMEMBER: &str =
    "INSERT INTO dedupe (interface_id, key, message_id, body_digest, expires_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET message_id = excluded.message_id, body_digest = excluded.body_digest,
        expires_at = excluded.expires_at";

/// Whether a message was stored before, also earlier in the transaction; if not, remembers its key.
pub(crate) fn look_up(
    connection: &Connection,
    message: &NewMessage,
    id: i64,
    now: Timestamp,
) -> rusqlite::Result<Seen> {
    let (Some(key), Some(window)) = (&message.draft.dedupe, message.dedupe) else { return Ok(Seen::Never) };
    let (interface, key) = (message.interface.0, key.as_str());
    let digest = Sha256::digest(message.body());
    let digest = digest.get(..DIGEST_BYTES).unwrap_or_default();
    let known: Option<(i64, bool)> = connection
        .prepare_cached(LOOK_UP)?
        .query_row(params![interface, key, stored(now.0)], |row| {
            Ok((row.get(0)?, row.get_ref(1)?.as_blob()? == digest))
        })
        .optional()?;
    let seen = match known {
        Some((before, true)) => return Ok(Seen::Before(before)),
        Some((other, false)) => Seen::WithOtherBody(other),
        None => Seen::Never,
    };
    // The newest body counts: what is sent again is nearly always the last that was sent.
    let expires_at = stored((now + window.0).0);
    connection.prepare_cached(REMEMBER)?.execute(params![interface, key, id, digest, expires_at])?;
    Ok(seen)
}
