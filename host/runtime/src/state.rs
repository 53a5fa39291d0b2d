//! What plugins keep: the grant of it, where it is read, and what one call wrote.
//!
//! Nothing is stored here. What a call wrote comes back with it, by message, and is stored by the
//! caller with the message's outcome, or dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::StateWrite;

/// Bytes that one call may keep for all its messages.
const CALL_BYTES_MAX: usize = 4 << 20;
/// Nothing was counted yet.
const UNKNOWN: u32 = u32::MAX;

/// What one use of a plugin keeps at its destination, as it is stored.
#[async_trait]
pub trait StateStore: Send + Sync + 'static {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, String>;
    /// Keys with a prefix in byte order, after `after`.
    async fn keys(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, String>;
    /// How many keys there are, counted up to `limit`.
    async fn count(&self, limit: u32) -> Result<u32, String>;
}

/// Keeps nothing, for where nothing is delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoState;

#[async_trait]
impl StateStore for NoState {
    async fn get(&self, _key: &str) -> Result<Option<Bytes>, String> {
        Ok(None)
    }

    async fn keys(&self, _prefix: &str, _after: Option<&str>, _limit: u32) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    async fn count(&self, _limit: u32) -> Result<u32, String> {
        Ok(0)
    }
}

/// State of one use of a plugin.
#[derive(Clone)]
pub struct StateGrant {
    /// What it is called within its destination.
    pub space: Arc<str>,
    pub keys_max: u32,
    pub store: Arc<dyn StateStore>,
}

impl fmt::Debug for StateGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateGrant({:?}, {})", self.space, self.keys_max)
    }
}

impl StateGrant {
    /// Two uses are the same only where one store serves both.
    pub(crate) fn is_same(&self, other: &StateGrant) -> bool {
        self.space == other.space && self.keys_max == other.keys_max && Arc::ptr_eq(&self.store, &other.store)
    }
}

/// A granted state, ready for use.
pub(crate) struct Space {
    pub grant: StateGrant,
    /// No more keys than this: counted once, and raised with each new one. What was dropped since is
    /// in it, too; where that seems to be too much they are counted anew.
    keys: AtomicU32,
}

/// What plugins keep of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Which message of the batch.
    pub index: u32,
    pub writes: Vec<StateWrite>,
}

/// What one call wrote so far. Empty, it owns nothing.
#[derive(Debug, Default)]
pub(crate) struct StateLog {
    /// By key, the messages that wrote it with what they wrote, in the order of the batch.
    by_key: BTreeMap<String, Vec<(u32, Option<Bytes>)>>,
    bytes: usize,
}

/// What the messages of a call see of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Each its own writes.
    #[default]
    Alone,
    /// One lane, in order: also those of the ones before.
    Ordered,
}

/// More than one message or one call may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Space {
    pub fn new(grant: StateGrant) -> Space {
        Space { grant, keys: AtomicU32::new(UNKNOWN) }
    }

    /// Takes room for one more key, where there surely is some.
    pub fn take_room(&self) -> bool {
        let has_room = self.keys.load(Ordering::Relaxed) < self.grant.keys_max;
        if has_room {
            self.keys.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    /// The same by counting: what is stored, and of what is written but not stored what is new.
    pub async fn count_room(&self, key: &str, written: &[String]) -> Result<bool, String> {
        let StateGrant { keys_max, store, .. } = &self.grant;
        if store.get(key).await?.is_some() {
            return Ok(true);
        }
        let mut keys = store.count(*keys_max).await?;
        for other in written {
            if keys < *keys_max && store.get(other).await?.is_none() {
                keys += 1;
            }
        }
        self.keys.store(keys.saturating_add(1), Ordering::Relaxed);
        Ok(keys < *keys_max)
    }
}

impl StateLog {
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// What a message sees under a key; none: what is stored.
    pub fn get(&self, key: &str, index: u32, sight: Sight) -> Option<Option<&Bytes>> {
        seen(self.by_key.get(key)?, index, sight)
    }

    /// What a message sees beside what is stored, by key: added or changed, or removed.
    pub fn overlay(&self, index: u32, sight: Sight) -> impl Iterator<Item = (&String, bool)> {
        let visible =
            move |writes: &[(u32, Option<Bytes>)]| seen(writes, index, sight).map(|value| value.is_some());
        self.by_key.iter().filter_map(move |(key, writes)| Some((key, visible(writes)?)))
    }

    pub fn write(&mut self, key: String, index: u32, value: Option<Bytes>) -> Result<(), TooMuch> {
        let bytes = key.len() + value.as_ref().map_or(0, Bytes::len);
        let is_known = self.by_key.get(&key).is_some_and(|writes| find(writes, index).is_ok());
        if self.bytes + bytes > CALL_BYTES_MAX
            || (!is_known && self.count_of(index) >= StateWrite::PER_MESSAGE_MAX)
        {
            return Err(TooMuch);
        }
        self.bytes += bytes;
        let writes = self.by_key.entry(key).or_default();
        match find(writes, index) {
            Ok(at) => writes.splice(at..=at, [(index, value)]).for_each(drop),
            Err(at) => writes.insert(at, (index, value)),
        }
        Ok(())
    }

    fn count_of(&self, index: u32) -> usize {
        self.by_key.values().filter(|writes| find(writes, index).is_ok()).count()
    }

    /// By message, for whoever stores it.
    pub fn into_written(self, space: &Arc<str>) -> Vec<Written> {
        let mut by_message: BTreeMap<u32, Vec<StateWrite>> = BTreeMap::new();
        for (key, writes) in self.by_key {
            for (index, value) in writes {
                let write = StateWrite { space: space.clone(), key: key.clone(), value };
                by_message.entry(index).or_default().push(write);
            }
        }
        by_message.into_iter().map(|(index, writes)| Written { index, writes }).collect()
    }
}

fn find(writes: &[(u32, Option<Bytes>)], index: u32) -> Result<usize, usize> {
    writes.binary_search_by_key(&index, |(written, _)| *written)
}

fn seen(writes: &[(u32, Option<Bytes>)], index: u32, sight: Sight) -> Option<Option<&Bytes>> {
    let is_visible = |written: u32| match sight {
        Sight::Alone => written == index,
        Sight::Ordered => written <= index,
    };
    let (_, value) = writes.iter().rev().find(|(written, _)| is_visible(*written))?;
    Some(value.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(log: &mut StateLog, key: &str, index: u32, value: &str) -> Result<(), TooMuch> {
        log.write(key.into(), index, Some(Bytes::copy_from_slice(value.as_bytes())))
    }

    #[test]
    fn in_order_a_message_sees_the_ones_before_it_and_else_itself_alone() {
        let mut log = StateLog::default();
        put(&mut log, "a", 0, "0").unwrap();
        put(&mut log, "a", 2, "2").unwrap();
        log.write("a".into(), 3, None).unwrap();
        let get = |index, sight| log.get("a", index, sight).map(|value| value.map(|value| value.to_vec()));
        assert_eq!(get(1, Sight::Ordered), Some(Some(b"0".to_vec())));
        assert_eq!(get(1, Sight::Alone), None);
        assert_eq!(get(2, Sight::Alone), Some(Some(b"2".to_vec())));
        assert_eq!(get(3, Sight::Ordered), Some(None), "removed");
        let written = log.into_written(&"s".into());
        assert_eq!(
            written.iter().map(|one| (one.index, one.writes.len())).collect::<Vec<_>>(),
            [(0, 1), (2, 1), (3, 1)]
        );
        assert_eq!(written[2].writes[0].value, None);
    }

    #[test]
    fn a_message_and_a_call_write_only_so_much() {
        let mut log = StateLog::default();
        for number in 0..StateWrite::PER_MESSAGE_MAX {
            put(&mut log, &format!("k{number}"), 0, "1").unwrap();
        }
        assert_eq!(put(&mut log, "one-more", 0, "1"), Err(TooMuch));
        put(&mut log, "k0", 0, "again").unwrap();
        put(&mut log, "one-more", 1, "1").unwrap();
        let large = "v".repeat(StateWrite::VALUE_BYTES_MAX);
        let taken =
            (0..200).take_while(|number| put(&mut log, &format!("l{number}"), 2 + number, &large).is_ok());
        assert_eq!(taken.count(), 63);
    }
}
