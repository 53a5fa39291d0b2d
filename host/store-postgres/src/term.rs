//! Terms: the index by which messages are found.
//!
//! An index over all messages by term would change a page of its own for nearly every message. So
//! terms are kept in buckets of messages' numbers, and those of the newest messages wait until there
//! are enough to be filed together. A search looks into each bucket, newest first, and at what waits.

use std::collections::BTreeSet;

use portway_model::{Attributes, Key, Term};
use portway_store::{ListMessages, MessageView, Page};

use crate::error::Failed;
use crate::number::{given, stored};
use crate::query::{Session, value};
use crate::view;

/// Messages in a bucket, as a power of two; the migrations say it as well.
const BUCKET_BITS: u32 = 13;
/// Messages whose terms wait until they are filed together.
pub(crate) const FRESH_MAX: usize = 1_024;
/// Messages that have the term and are looked at for one page.
const LOOKED_AT_MAX: usize = 10_000;
/// Messages looked at together.
const LOOKED_AT_ONCE: usize = 500;
/// Of one term, as it waits.
const TERM_BYTES: usize = 8;

fn bucket(id: i64) -> i64 {
    id >> BUCKET_BITS
}

const INSERT: &str =
    "INSERT INTO fresh_terms (message_id, terms) SELECT * FROM unnest($1::int8[], $2::bytea[])";

/// Inside the transaction that is open.
pub(crate) async fn insert<'a>(
    session: &mut Session,
    found_by: impl Iterator<Item = (i64, &'a [Term])>,
) -> Result<(), Failed> {
    let encode = |terms: &[Term]| terms.iter().flat_map(|term| term.0.to_le_bytes()).collect::<Vec<u8>>();
    let (ids, terms): (Vec<i64>, Vec<Vec<u8>>) = found_by.map(|(id, terms)| (id, encode(terms))).unzip();
    if ids.is_empty() {
        return Ok(());
    }
    session.execute("store search terms", sqlx::query(INSERT).bind(ids).bind(terms)).await.map(drop)
}

fn decode(terms: &[u8]) -> impl Iterator<Item = Term> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    terms.chunks_exact(TERM_BYTES).map(move |bytes| Term(number(bytes)))
}

const COUNT: &str = "SELECT count(*)::int8 FROM (SELECT 1 FROM fresh_terms LIMIT 1024) AS counted";

/// How many messages wait to be filed, as far as it matters.
pub(crate) async fn count_fresh(session: &mut Session) -> Result<usize, Failed> {
    let count = session.read_one("count search terms", sqlx::query(COUNT), |row| value::<i64>(row, 0));
    Ok(usize::try_from(count.await?.unwrap_or(0)).unwrap_or(0))
}

/// Those another engine is filing are left to it.
const TAKE_FRESH: &str = "DELETE FROM fresh_terms WHERE message_id IN
    (SELECT message_id FROM fresh_terms ORDER BY message_id LIMIT 4096 FOR UPDATE SKIP LOCKED)
    RETURNING message_id, terms";
const FILE: &str = "INSERT INTO message_terms (bucket, term, message_id)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[]) ON CONFLICT DO NOTHING";

/// Files what waits, inside the transaction that is open.
pub(crate) async fn file(session: &mut Session) -> Result<(), Failed> {
    let what = "file search terms";
    let fresh = session
        .read(what, sqlx::query(TAKE_FRESH), |row| Ok((value::<i64>(row, 0)?, value::<Vec<u8>>(row, 1)?)));
    let mut entries: Vec<(i64, i64, i64)> = Vec::with_capacity(FRESH_MAX * 2);
    for (id, terms) in fresh.await? {
        entries.extend(decode(&terms).map(|term| (bucket(id), term.0.cast_signed(), id)));
    }
    // In the order of the table, so that each page is changed once.
    entries.sort_unstable();
    let statement = sqlx::query(FILE)
        .bind(entries.iter().map(|(bucket, ..)| *bucket).collect::<Vec<_>>())
        .bind(entries.iter().map(|(_, term, _)| *term).collect::<Vec<_>>())
        .bind(entries.iter().map(|(.., id)| *id).collect::<Vec<_>>());
    session.execute(what, statement).await.map(drop)
}

const REMOVE_FRESH: &str = "DELETE FROM fresh_terms WHERE message_id = ANY ($1)";
const REMOVE: &str = "DELETE FROM message_terms t
    USING unnest($1::int8[], $2::int8[], $3::int8[]) AS r (bucket, term, message_id)
    WHERE t.bucket = r.bucket AND t.term = r.term AND t.message_id = r.message_id";

/// What a message may be found by, as it stands with it.
pub(crate) struct FoundBy {
    pub(crate) id: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) attributes: Vec<u8>,
}

/// Forgets what messages are found by, whichever of their values that is.
pub(crate) async fn remove(session: &mut Session, messages: &[FoundBy]) -> Result<(), Failed> {
    let what = "remove search terms";
    let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
    session.execute(what, sqlx::query(REMOVE_FRESH).bind(ids)).await?;
    let (mut buckets, mut terms, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        // What is damaged has no terms that anybody could find.
        let attributes = Attributes::from_bytes(&message.attributes).unwrap_or_default();
        let key = message.key.as_deref().and_then(|key| Key::new(std::str::from_utf8(key).ok()?));
        let names = attributes.pairs().iter().map(|(name, _)| name.clone());
        let names: Vec<String> = names.chain([Term::KEY.to_owned()]).collect();
        for term in Term::of_message(&names, key.as_ref(), &attributes) {
            buckets.push(bucket(message.id));
            terms.push(term.0.cast_signed());
            ids.push(message.id);
        }
    }
    session.execute(what, sqlx::query(REMOVE).bind(buckets).bind(terms).bind(ids)).await.map(drop)
}

const FIND: &str = "SELECT found.message_id FROM generate_series($1::int8, $2::int8, -1) AS b (bucket)
    CROSS JOIN LATERAL (SELECT t.message_id FROM message_terms t
        WHERE t.bucket = b.bucket AND t.term = $3 AND t.message_id < $4 AND t.message_id >= $5
        ORDER BY t.message_id DESC LIMIT $6) AS found
    LIMIT $6";
const FIND_FRESH: &str = "SELECT message_id, terms FROM fresh_terms WHERE message_id < $1 AND message_id >= $2 ORDER BY message_id";

/// A page of the messages that have a term, from `lowest` up to `before`. Both looks see the same moment, so
/// that what is filed in between is neither missed nor found twice.
pub(crate) async fn list(
    session: &mut Session,
    list: &ListMessages,
    term: Term,
    (lowest, before): (i64, i64),
) -> Result<Page<MessageView>, Failed> {
    let what = "search messages";
    session.script(what, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let page = list_now(session, list, term, (lowest, before)).await;
    match page {
        Ok(page) => session.script(what, "COMMIT").await.map(|()| page),
        Err(error) => {
            session.roll_back().await;
            Err(error)
        }
    }
}

async fn list_now(
    session: &mut Session,
    list: &ListMessages,
    term: Term,
    (lowest, before): (i64, i64),
) -> Result<Page<MessageView>, Failed> {
    let what = "search messages";
    let (oldest, newest) = view::ends(session).await?;
    let (lowest, before) = (lowest.max(oldest), before.min(newest.saturating_add(1)));
    let fresh = session.read(what, sqlx::query(FIND_FRESH).bind(before).bind(lowest), |row| {
        Ok((value::<i64>(row, 0)?, decode(&value::<Vec<u8>>(row, 1)?).any(|own| own == term)))
    });
    let mut ids: BTreeSet<i64> = fresh.await?.into_iter().filter(|(_, has)| *has).map(|(id, _)| id).collect();
    let statement = sqlx::query(FIND)
        .bind(bucket(before.saturating_sub(1)))
        .bind(bucket(lowest))
        .bind(term.0.cast_signed())
        .bind(before)
        .bind(lowest)
        .bind(LOOKED_AT_MAX as i64 + 1);
    ids.extend(session.read(what, statement, |row| value::<i64>(row, 0)).await?);
    let ids: Vec<i64> = ids.into_iter().rev().collect();
    fill(session, list, &ids).await
}

/// Looks at messages, newest first, until a page is full.
async fn fill(session: &mut Session, list: &ListMessages, ids: &[i64]) -> Result<Page<MessageView>, Failed> {
    let limit = list.limit.clamp(1, ListMessages::LIMIT_MAX) as usize;
    let (looked_at, beyond) = ids.split_at(ids.len().min(LOOKED_AT_MAX));
    let mut page = Page { items: Vec::new(), next: None };
    for ids in looked_at.chunks(LOOKED_AT_ONCE) {
        for view in view::get_fitting(session, ids, list).await? {
            if page.items.len() == limit {
                page.next = page.items.last().map(|last: &MessageView| last.id);
                return Ok(page);
            }
            page.items.push(view);
        }
    }
    page.next = beyond.first().map(|id| given(id.saturating_add(1)));
    Ok(page)
}

const AT: &str = "SELECT id, stored_at FROM messages WHERE id >= $1 ORDER BY id LIMIT 1";

/// The lowest number from which on messages were stored at this time or later: halving, since
/// numbers rise with time.
pub(crate) async fn first_since(session: &mut Session, at: u64) -> Result<i64, Failed> {
    let (mut low, max) = view::ends(session).await?;
    let mut high = max.saturating_add(1);
    while low < high {
        let middle = low + (high - low) / 2;
        let found = session.read_one("find a time", sqlx::query(AT).bind(middle), |row| {
            Ok((value::<i64>(row, 0)?, value::<i64>(row, 1)?))
        });
        match found.await? {
            Some((id, stored_at)) if stored_at < stored(at) => low = id.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}
