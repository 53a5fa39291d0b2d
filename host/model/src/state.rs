//! Small values that a plugin keeps, as they are written with a message's outcome.

use std::sync::Arc;

use bytes::Bytes;

/// A value that was put or removed while a message was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWrite {
    /// Which use of a plugin at the destination it belongs to.
    pub space: Arc<str>,
    pub key: String,
    /// None: removed.
    pub value: Option<Bytes>,
}

impl StateWrite {
    /// Bytes of a key; at least one.
    pub const KEY_BYTES_MAX: usize = 256;
    /// Bytes of a value.
    pub const VALUE_BYTES_MAX: usize = 64 << 10;
    /// Values that one message puts or removes.
    pub const PER_MESSAGE_MAX: usize = 64;

    /// Within the limits of a key and a value, and storable in every store.
    pub fn fits(&self) -> bool {
        let value_bytes = self.value.as_ref().map_or(0, Bytes::len);
        StateWrite::is_key(&self.key) && value_bytes <= StateWrite::VALUE_BYTES_MAX
    }

    /// Whether a text can be a key.
    pub fn is_key(key: &str) -> bool {
        !key.is_empty() && key.len() <= StateWrite::KEY_BYTES_MAX && !key.contains('\0')
    }
}
