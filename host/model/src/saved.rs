//! What a sender was given of a message, kept for people where a destination wants that.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Attributes, Key};

/// What a destination's transforms made of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedOutput {
    pub key: Option<Key>,
    pub attributes: Arc<Attributes>,
    pub body: SavedBody,
}

/// The bytes of an output, as far as they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedBody {
    /// Those of the message itself.
    Same,
    Kept(Bytes),
    /// More than are kept; how many.
    TooLarge(u64),
    /// The store had no room for them; how many.
    NoRoom(u64),
}

impl SavedOutput {
    /// Bytes of one body that are kept.
    pub const BODY_BYTES_MAX: usize = 1 << 20;
    /// Bytes of all bodies of one run that are kept.
    pub const RUN_BYTES_MAX: usize = 8 << 20;

    /// Bytes that it takes in memory and in the store, but for its attributes.
    pub fn bytes(&self) -> usize {
        match &self.body {
            SavedBody::Kept(bytes) => bytes.len(),
            SavedBody::Same | SavedBody::TooLarge(_) | SavedBody::NoRoom(_) => 0,
        }
    }

    /// There is no room for its bytes: only their number stays.
    pub fn leave(&mut self) {
        if let SavedBody::Kept(bytes) = &self.body {
            self.body = SavedBody::NoRoom(bytes.len() as u64);
        }
    }
}
