//! Terms: the index by which messages are found.
//!
//! An index over all messages by term would change a page of its own for nearly every message. So
//! terms are kept in buckets of messages' numbers: writing stays in the newest bucket, which is small
//! enough for the cache, and a search looks into each, newest first, some microseconds a bucket.

use portway_model::{Attributes, Key, Term};
use portway_store::{ListMessages, MessageView, Page, StoreError};
use rusqlite::{Connection, params};

use crate::number::{given, stored};
use crate::query::{int, row, rows};
use crate::view;

/// Messages in a bucket, as a power of two.
const BUCKET_BITS: u32 = 17;
/// Messages that have the term and are looked at for one page.
const LOOKED_AT_MAX: usize = 10_000;

fn bucket(id: i64) -> i64 {
    id >> BUCKET_BITS
}

const INSERT: &str = "INSERT OR IGNORE INTO message_terms (bucket, term, message_id) VALUES (?, ?, ?)";

/// Inside the transaction that is open.
pub(crate) fn insert(connection: &Connection, id: i64, terms: &[Term]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(INSERT)?;
    terms.iter().try_for_each(|term| insert.execute(params![bucket(id), term.0.cast_signed(), id]).map(drop))
}

const OF: &str = "SELECT key, attributes FROM messages WHERE id = ?";
const REMOVE: &str = "DELETE FROM message_terms WHERE bucket = ? AND term = ? AND message_id = ?";

/// Forgets what a message is found by, whichever of its values that is.
pub(crate) fn remove(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    let of = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (key, attributes): (Option<String>, Vec<u8>) = connection.prepare_cached(OF)?.query_row([id], of)?;
    // What is damaged has no terms that anybody could find.
    let attributes = Attributes::from_bytes(&attributes).unwrap_or_default();
    let names = attributes.pairs().iter().map(|(name, _)| name.clone());
    let names: Vec<String> = names.chain([Term::KEY.to_owned()]).collect();
    let mut remove = connection.prepare_cached(REMOVE)?;
    for term in Term::of_message(&names, key.and_then(|key| Key::new(&key)).as_ref(), &attributes) {
        remove.execute(params![bucket(id), term.0.cast_signed(), id])?;
    }
    Ok(())
}

const FIND: &str = "SELECT message_id FROM message_terms
    WHERE bucket = ? AND term = ? AND message_id < ? AND message_id >= ? ORDER BY message_id DESC LIMIT ?";

/// A page of the messages that have a term, from `lowest` up to `before`.
pub(crate) fn list(
    connection: &Connection,
    list: &ListMessages,
    term: Term,
    (lowest, before): (i64, i64),
) -> Result<Page<MessageView>, StoreError> {
    let what = "search messages";
    let limit = list.limit.clamp(1, ListMessages::LIMIT_MAX) as usize;
    let ends = row(connection, what, ENDS, [], |row| Ok((int(row, 0)?, int(row, 1)?)))?;
    let (oldest, newest) = ends.unwrap_or((0, -1));
    let (lowest, before) = (lowest.max(oldest), before.min(newest.saturating_add(1)));
    let (mut items, mut looked_at) = (Vec::new(), 0);
    for bucket in (bucket(lowest)..=bucket(before.saturating_sub(1))).rev() {
        let wanted = params![bucket, term.0.cast_signed(), before, lowest, LOOKED_AT_MAX as i64];
        for id in rows(connection, what, FIND, wanted, |row| int(row, 0))? {
            if items.len() == limit || looked_at == LOOKED_AT_MAX {
                return Ok(Page { items, next: Some(given(id.saturating_add(1))) });
            }
            looked_at += 1;
            let found = view::get_fitting(connection, id, list)?;
            items.extend(found.filter(|view| list.fits(view.key.as_deref(), &view.attributes)));
        }
    }
    Ok(Page { items, next: None })
}

const AT: &str = "SELECT id, stored_at FROM messages WHERE id >= ? ORDER BY id LIMIT 1";
/// Each end by itself: asked for both at once, SQLite reads everything between them.
const ENDS: &str = "SELECT coalesce((SELECT min(id) FROM messages), 0),
    coalesce((SELECT max(id) FROM messages), -1)";

/// The lowest number from which on messages were stored at this time or later: halving, since
/// numbers rise with time.
pub(crate) fn first_since(connection: &Connection, at: u64) -> Result<i64, StoreError> {
    let what = "find a time";
    let ends = row(connection, what, ENDS, [], |row| Ok((int(row, 0)?, int(row, 1)?)))?;
    let (mut low, max) = ends.unwrap_or((0, -1));
    let mut high = max.saturating_add(1);
    while low < high {
        let middle = low + (high - low) / 2;
        match row(connection, what, AT, [middle], |row| Ok((int(row, 0)?, int(row, 1)?)))? {
            Some((id, stored_at)) if stored_at < stored(at) => low = id.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}
