//! The handles of one instance: blobs, files, connections.
//!
//! The host keeps its own table and empties it when a call returns, since not every language
//! drops what it was handed. A number is never used twice, so that a stale handle is `gone`
//! and cannot open what belongs to another message.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use portway_net::folder::{Folder, FolderFile};
use portway_net::tcp::TcpConnection;

/// An instance is replaced after so many handles: the guest's side of them is never freed.
pub(crate) const HANDLES_MAX: u32 = 60_000;
/// What the writers and slices of one call may hold together.
pub(crate) const QUOTA_BYTES: usize = 128 << 20;

#[derive(Default)]
pub(crate) struct Things {
    next: u32,
    held_bytes: usize,
    blobs: HashMap<u32, Bytes>,
    writers: HashMap<u32, BytesMut>,
    files: HashMap<u32, Arc<FolderFile>>,
    connections: HashMap<u32, TcpConnection>,
    /// One clone a call: what it appended is what its `sync` answers for.
    folders: HashMap<String, Arc<Folder>>,
}

/// The call holds all it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaExceeded;

impl Things {
    /// How many handles the instance was ever given.
    pub fn handed_out(&self) -> u32 {
        self.next
    }

    /// The call has returned: nothing it was handed lives on.
    pub fn clear(&mut self) {
        self.held_bytes = 0;
        self.blobs.clear();
        self.writers.clear();
        self.files.clear();
        self.connections.clear();
        self.folders.clear();
    }

    fn number(&mut self) -> u32 {
        // A call would have to make two billion handles; its fuel ends long before.
        self.next = self.next.saturating_add(1);
        self.next
    }

    /// Counts bytes that live in the host because of this call.
    pub fn hold(&mut self, bytes: usize) -> Result<(), QuotaExceeded> {
        let held = self.held_bytes.saturating_add(bytes);
        if held > QUOTA_BYTES {
            return Err(QuotaExceeded);
        }
        self.held_bytes = held;
        Ok(())
    }

    pub fn add_blob(&mut self, bytes: Bytes) -> u32 {
        let number = self.number();
        self.blobs.insert(number, bytes);
        number
    }

    pub fn blob(&self, number: u32) -> Option<&Bytes> {
        self.blobs.get(&number)
    }

    pub fn take_blob(&mut self, number: u32) -> Option<Bytes> {
        self.blobs.remove(&number)
    }

    pub fn add_writer(&mut self) -> u32 {
        let number = self.number();
        self.writers.insert(number, BytesMut::new());
        number
    }

    pub fn has_writer(&self, number: u32) -> bool {
        self.writers.contains_key(&number)
    }

    pub fn write(&mut self, number: u32, bytes: &[u8]) -> Result<(), QuotaExceeded> {
        self.hold(bytes.len())?;
        if let Some(writer) = self.writers.get_mut(&number) {
            writer.extend_from_slice(bytes);
        }
        Ok(())
    }

    pub fn take_writer(&mut self, number: u32) -> Option<Bytes> {
        self.writers.remove(&number).map(BytesMut::freeze)
    }

    pub fn add_file(&mut self, file: FolderFile) -> u32 {
        let number = self.number();
        self.files.insert(number, Arc::new(file));
        number
    }

    pub fn file(&self, number: u32) -> Option<Arc<FolderFile>> {
        self.files.get(&number).cloned()
    }

    pub fn drop_file(&mut self, number: u32) {
        self.files.remove(&number);
    }

    pub fn add_connection(&mut self, connection: TcpConnection) -> u32 {
        let number = self.number();
        self.connections.insert(number, connection);
        number
    }

    pub fn connection(&mut self, number: u32) -> Option<&mut TcpConnection> {
        self.connections.get_mut(&number)
    }

    pub fn take_connection(&mut self, number: u32) -> Option<TcpConnection> {
        self.connections.remove(&number)
    }

    /// This call's clone of a granted folder.
    pub fn folder(&mut self, name: &str, granted: &Folder) -> Arc<Folder> {
        if let Some(folder) = self.folders.get(name) {
            return folder.clone();
        }
        let folder = Arc::new(granted.clone());
        self.folders.insert(name.to_owned(), folder.clone());
        folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_number_opens_nothing() {
        let mut things = Things::default();
        let first = things.add_blob(Bytes::from_static(b"first"));
        things.clear();
        let second = things.add_blob(Bytes::from_static(b"second"));
        assert_ne!(first, second);
        assert_eq!(things.blob(first), None);
        assert_eq!(things.blob(second).map(|blob| &blob[..]), Some(&b"second"[..]));
    }

    #[test]
    fn a_call_holds_no_more_than_its_quota() {
        let mut things = Things::default();
        let writer = things.add_writer();
        assert_eq!(things.write(writer, b"a"), Ok(()));
        assert_eq!(things.hold(QUOTA_BYTES), Err(QuotaExceeded));
        things.clear();
        assert_eq!(things.hold(QUOTA_BYTES), Ok(()));
    }
}
