//! One poll's work: what was found so far, and what still fits.

use portway_sdk::{Item, Query, Trouble};

use crate::cursor::Cursor;

/// What one poll has found.
#[derive(Debug)]
pub struct Work {
    pub cursor: Cursor,
    pub items: Vec<Item>,
    items_max: usize,
    bytes: u64,
    bytes_max: u64,
    /// Files that were opened: receipts tell them apart by their number.
    pub files: u32,
    pub now_ms: u64,
    /// Files that are not looked at again in this poll.
    pub put_off: Vec<String>,
    /// Files that were begun and are not what they were.
    pub changed: Vec<String>,
    /// Why one of them could not be read now.
    pub trouble: Option<Trouble>,
    /// The inbox was looked at in this poll.
    pub has_looked: bool,
    /// How long until a file may be ready.
    pub rests_in_ms: Option<u64>,
}

impl Work {
    /// Nothing yet.
    pub fn new(cursor: Cursor, query: &Query, now_ms: u64) -> Work {
        Work {
            cursor,
            items: Vec::new(),
            items_max: usize::try_from(query.items_max).unwrap_or(usize::MAX).max(1),
            bytes: 0,
            bytes_max: u64::from(query.bytes_max),
            files: 0,
            now_ms,
            put_off: Vec::new(),
            changed: Vec::new(),
            trouble: None,
            has_looked: false,
            rests_in_ms: None,
        }
    }

    /// Whether a message of so many bytes may still be added. The first one always may.
    pub fn has_room(&self, bytes: u64) -> bool {
        let fits = self.items.len() < self.items_max && self.bytes.saturating_add(bytes) <= self.bytes_max;
        self.items.is_empty() || fits
    }

    /// Adds a message.
    pub fn push(&mut self, item: Item, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push(item);
    }

    /// How much there is, to go back to.
    pub fn size(&self) -> (usize, u64) {
        (self.items.len(), self.bytes)
    }

    /// Takes back what was added since.
    pub fn shrink(&mut self, size: (usize, u64)) {
        self.items.truncate(size.0);
        self.bytes = size.1;
    }
}
