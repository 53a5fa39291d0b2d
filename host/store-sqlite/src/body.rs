//! Large bodies: written ahead of their message, in pieces.
//!
//! A body of 60 MB in one statement would be copied several times and kept in one piece on the
//! way. Pieces are transactions of their own; the message's commit makes them valid, and what no
//! message names is removed when the store is opened.

use bytes::Bytes;
use portway_store::StoreError;
use sqlx::sqlite::SqliteConnection;

use crate::error::{failed, is_full};
use crate::message::Candidate;
use crate::script::{IntArray, Script, run_once};

/// Larger bodies are written in pieces of this size.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// The number of a large body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BodyId(pub(crate) i64);

/// Writes a body in pieces.
pub(crate) async fn write_ahead(
    connection: &mut SqliteConnection,
    id: BodyId,
    body: &Bytes,
) -> Result<(), StoreError> {
    for (number, chunk) in (0_i64..).zip(body.chunks(CHUNK_BYTES)) {
        let mut script = Script::default();
        script.step("INSERT INTO body_chunks (body_id, number, bytes) VALUES (?, ?, ?)");
        script.bind(id.0).bind(number).bind(chunk);
        script.run(connection).await.map_err(|error| failed("write a large body", error))?;
    }
    Ok(())
}

/// Removes bodies that were written ahead for nothing.
pub(crate) async fn remove(
    connection: &mut SqliteConnection,
    unused: impl IntoIterator<Item = BodyId>,
) -> Result<(), StoreError> {
    let ids: IntArray = unused.into_iter().map(|id| id.0).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let mut script = Script::default();
    script
        .step("DELETE FROM body_chunks WHERE body_id IN (SELECT value FROM json_each(?))")
        .bind(ids.into_json());
    script.run(connection).await.map(drop).map_err(|error| failed("remove a large body", error))
}

/// The bodies of candidates that were written ahead.
pub(crate) fn written_ahead(candidates: &[Candidate<'_>]) -> impl Iterator<Item = BodyId> {
    candidates.iter().filter_map(|candidate| candidate.body_id)
}

/// At start: removes what no message names; answers the next free number.
pub(crate) async fn remove_orphans(connection: &mut SqliteConnection) -> Result<BodyId, sqlx::Error> {
    let removed = run_once(
        connection,
        "DELETE FROM body_chunks WHERE body_id NOT IN
            (SELECT body_id FROM messages INDEXED BY messages_large WHERE body_id IS NOT NULL)",
    );
    match removed.await {
        // On a full disk they wait for the next start.
        Err(error) if !is_full(&error) => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let next = "SELECT coalesce(max(body_id), 0) + 1 FROM body_chunks";
    sqlx::query_scalar(next).fetch_one(connection).await.map(BodyId)
}
