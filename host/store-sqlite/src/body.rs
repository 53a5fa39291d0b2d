//! Large bodies: written ahead of their message, in pieces.
//!
//! A body of 60 MB in one transaction would be in memory a second time until its commit. Pieces are
//! transactions of their own; the message's commit makes them valid, and what no message names is
//! removed when the store is opened.

use portway_store::{NewMessage, StoreError, WriteBatch};
use rusqlite::{Connection, params};

use crate::error::{failed, is_full};
use crate::result;

/// Larger bodies are written in pieces of this size.
const CHUNK_BYTES: usize = 1 << 20;

/// The number of a large body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BodyId(pub(crate) i64);

/// Bodies that were written ahead of the transaction of a batch.
#[derive(Default)]
pub(crate) struct Ahead<'a> {
    bodies: Vec<Written<'a>>,
}

struct Written<'a> {
    of: &'a NewMessage,
    id: BodyId,
    is_used: bool,
}

impl<'a> Ahead<'a> {
    /// Writes the large bodies of a batch and of its routes, under numbers from `next` on.
    pub(crate) fn write(
        &mut self,
        connection: &Connection,
        batch: &'a WriteBatch,
        next: &mut BodyId,
    ) -> Result<(), StoreError> {
        let routed = batch.results.iter().flat_map(result::routes);
        for message in batch.messages.iter().chain(routed) {
            if message.body().len() > CHUNK_BYTES {
                let id = *next;
                *next = BodyId(id.0 + 1);
                self.bodies.push(Written { of: message, id, is_used: false });
                write_pieces(connection, id, message.body())
                    .map_err(|error| failed("write a large body", error))?;
            }
        }
        Ok(())
    }

    /// Where the body of a message was written, which is now used; none: it is small.
    pub(crate) fn take(&mut self, message: &NewMessage) -> Option<BodyId> {
        if message.body().len() <= CHUNK_BYTES {
            return None;
        }
        let written = self.bodies.iter_mut().find(|written| std::ptr::eq(written.of, message))?;
        written.is_used = true;
        Some(written.id)
    }

    /// What no message uses, because it is a duplicate or its result did not count.
    pub(crate) fn unused(&self) -> impl Iterator<Item = BodyId> {
        self.bodies.iter().filter(|written| !written.is_used).map(|written| written.id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = BodyId> {
        self.bodies.iter().map(|written| written.id)
    }
}

const INSERT_PIECE: &str = "INSERT INTO body_chunks (body_id, number, bytes) VALUES (?, ?, ?)";

fn write_pieces(connection: &Connection, id: BodyId, body: &[u8]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(INSERT_PIECE)?;
    for (number, piece) in (0_i64..).zip(body.chunks(CHUNK_BYTES)) {
        insert.execute(params![id.0, number, piece])?;
    }
    Ok(())
}

const REMOVE: &str = "DELETE FROM body_chunks WHERE body_id = ?";

/// Removes bodies that were written ahead for nothing.
pub(crate) fn remove(
    connection: &Connection,
    unused: impl IntoIterator<Item = BodyId>,
) -> rusqlite::Result<()> {
    let mut remove = connection.prepare_cached(REMOVE)?;
    unused.into_iter().try_for_each(|id| remove.execute([id.0]).map(drop))
}

const REMOVE_ORPHANS: &str = "DELETE FROM body_chunks WHERE body_id NOT IN
    (SELECT body_id FROM messages INDEXED BY messages_large WHERE body_id IS NOT NULL)";
const NEXT: &str = "SELECT coalesce(max(body_id), 0) + 1 FROM body_chunks";

/// At start: removes what no message names; answers the next free number.
pub(crate) fn remove_orphans(connection: &Connection) -> rusqlite::Result<BodyId> {
    match connection.execute(REMOVE_ORPHANS, []) {
        // On a full disk they wait for the next start.
        Err(error) if !is_full(&error) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    connection.query_row(NEXT, [], |row| row.get(0)).map(BodyId)
}
