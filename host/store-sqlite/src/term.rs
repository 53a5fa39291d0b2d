//! Terms: the index by which messages are found.
//!
//! An index over all messages by term would change a page of its own for nearly every message. So
//! terms are kept in buckets of messages' numbers, and those of the newest messages wait until there
//! are enough to be filed together: that changes each page of the newest bucket once for many messages.
//! A search reads what waits, and then looks into each bucket, newest first, some microseconds a bucket.

use portway_model::{Attributes, Key, Term};
use portway_store::{ListMessages, MessageView, Page, StoreError};
use rusqlite::{Connection, params};

use crate::number::{given, stored};
use crate::query::{blob, int, row, rows};
use crate::view;

/// Messages in a bucket, as a power of two; the migrations say it as well.
const BUCKET_BITS: u32 = 13;
/// Messages whose terms wait until they are filed together.
pub(crate) const FRESH_MAX: usize = 1_024;
/// Messages that have the term and are looked at for one page.
const LOOKED_AT_MAX: usize = 10_000;
/// Of one term, as it waits.
const TERM_BYTES: usize = 8;

fn bucket(id: i64) -> i64 {
    id >> BUCKET_BITS
}

const INSERT: &str = "INSERT INTO fresh_terms (message_id, terms) VALUES (?, ?)";

/// Inside the transaction that is open.
pub(crate) fn insert(connection: &Connection, id: i64, terms: &[Term]) -> rusqlite::Result<()> {
    let terms: Vec<u8> = terms.iter().flat_map(|term| term.0.to_le_bytes()).collect();
    connection.prepare_cached(INSERT)?.execute(params![id, terms]).map(drop)
}

fn decode(terms: &[u8]) -> impl Iterator<Item = Term> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    terms.chunks_exact(TERM_BYTES).map(move |bytes| Term(number(bytes)))
}

const COUNT: &str = "SELECT count(*) FROM fresh_terms";

/// How many messages wait to be filed.
pub(crate) fn count_fresh(connection: &Connection) -> rusqlite::Result<usize> {
    let count: i64 = connection.query_row(COUNT, [], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

const FRESH: &str = "SELECT message_id, terms FROM fresh_terms";
const FILE: &str = "INSERT OR IGNORE INTO message_terms (bucket, term, message_id) VALUES (?, ?, ?)";
const FILED: &str = "DELETE FROM fresh_terms";

/// Files what waits, inside the transaction that is open.
pub(crate) fn file(connection: &Connection) -> rusqlite::Result<()> {
    let mut entries: Vec<(i64, i64, i64)> = Vec::with_capacity(FRESH_MAX * 2);
    let mut fresh = connection.prepare_cached(FRESH)?;
    let mut rows = fresh.query([])?;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        let terms = row.get_ref(1)?.as_blob()?;
        entries.extend(decode(terms).map(|term| (bucket(id), term.0.cast_signed(), id)));
    }
    // In the order of the table, so that each page is changed once.
    entries.sort_unstable();
    let mut file = connection.prepare_cached(FILE)?;
    entries.into_iter().try_for_each(|entry| file.execute(entry).map(drop))?;
    connection.prepare_cached(FILED)?.execute([]).map(drop)
}

const OF: &str = "SELECT key, attributes FROM messages WHERE id = ?";
const REMOVE_FRESH: &str = "DELETE FROM fresh_terms WHERE message_id = ?";
const REMOVE: &str = "DELETE FROM message_terms WHERE bucket = ? AND term = ? AND message_id = ?";

/// Forgets what a message is found by, whichever of its values that is.
pub(crate) fn remove(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(REMOVE_FRESH)?.execute([id])?;
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

const FIND_FRESH: &str = "SELECT message_id, terms FROM fresh_terms ORDER BY message_id DESC";

/// A page of the messages that have a term, from `lowest` up to `before`.
pub(crate) fn list(
    connection: &Connection,
    list: &ListMessages,
    term: Term,
    (lowest, before): (i64, i64),
) -> Result<Page<MessageView>, StoreError> {
    let what = "search messages";
    // First what waits: what is filed meanwhile is found here, and not again where it went.
    let has_term = |row: &rusqlite::Row<'_>| Ok((int(row, 0)?, decode(blob(row, 1)?).any(|own| own == term)));
    let fresh = rows(connection, what, FIND_FRESH, [], has_term)?;
    let ends = row(connection, what, ENDS, [], |row| Ok((int(row, 0)?, int(row, 1)?)))?;
    let (oldest, newest) = ends.unwrap_or((0, -1));
    let (lowest, before) = (lowest.max(oldest), before.min(newest.saturating_add(1)));
    let mut found = Found::new(list);
    for (id, _) in fresh.iter().filter(|(id, has)| *has && (lowest..before).contains(id)) {
        if !found.look_at(connection, *id)? {
            return Ok(found.page);
        }
    }
    let before = fresh.last().map_or(before, |(first, _)| before.min(*first));
    for bucket in (bucket(lowest)..=bucket(before.saturating_sub(1))).rev() {
        let wanted = params![bucket, term.0.cast_signed(), before, lowest, LOOKED_AT_MAX as i64];
        for id in rows(connection, what, FIND, wanted, |row| int(row, 0))? {
            if !found.look_at(connection, id)? {
                return Ok(found.page);
            }
        }
    }
    Ok(found.page)
}

/// A page that is being filled, newest message first.
struct Found<'a> {
    list: &'a ListMessages,
    page: Page<MessageView>,
    looked_at: usize,
}

impl Found<'_> {
    fn new(list: &ListMessages) -> Found<'_> {
        Found { list, page: Page { items: Vec::new(), next: None }, looked_at: 0 }
    }

    /// Takes the message if it fits; false, and the next page begins with it, if there is no room.
    fn look_at(&mut self, connection: &Connection, id: i64) -> Result<bool, StoreError> {
        let limit = self.list.limit.clamp(1, ListMessages::LIMIT_MAX) as usize;
        if self.page.items.len() == limit || self.looked_at == LOOKED_AT_MAX {
            self.page.next = Some(given(id.saturating_add(1)));
            return Ok(false);
        }
        self.looked_at += 1;
        let view = view::get_fitting(connection, id, self.list)?;
        self.page.items.extend(view.filter(|view| self.list.fits(view.key.as_deref(), &view.attributes)));
        Ok(true)
    }
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
