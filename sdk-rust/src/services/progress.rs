//! Tells the host where in a batch the plugin is. The SDK does it by itself; only a
//! plugin that takes whole batches (`transform_batch`, `send_batch`) calls these.

use crate::host;

/// Work on the message at this index begins. Indexes only rise.
pub fn begin(index: usize) {
    host::progress_begin(u32::try_from(index).unwrap_or(u32::MAX));
}

/// Senders: the message at this index has arrived. Holds even if the call is cut short.
pub fn sent(index: usize) {
    host::progress_sent(u32::try_from(index).unwrap_or(u32::MAX));
}
