//! Appending: open files that are kept, and who answers for their bytes being on disk.
//!
//! A handle that failed to sync is thrown away for good: the system reports such an error once
//! and would call the lost bytes clean the next time. Everyone who appended to it is told.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cap_fs_ext::{MetadataExt, OpenOptionsExt};
use cap_std::fs::{Dir, File, OpenOptions};
use rustix::fs::{FlockOperation, flock};

use super::path::Place;
use super::publish::{FILE_MODE, sync_dir};
use super::{FolderError, lock, open_regular};

/// Files kept open, and files with appends that wait for their sync.
const HANDLES_MAX: usize = 64;

/// A file that is appended to.
pub(super) struct Handle {
    file: Mutex<File>,
    mark: (u64, u64),
    /// The directory's entry is not known to be on disk; holds the directory.
    new_in: Mutex<Option<Arc<Dir>>>,
    /// Bytes written and bytes known to be on disk.
    written: AtomicU64,
    synced: AtomicU64,
    broken: AtomicBool,
}

/// Open files by path, shared by all clones of a folder.
#[derive(Default)]
pub(super) struct Handles {
    by_path: HashMap<String, (Arc<Handle>, u64)>,
    uses: u64,
}

/// What one clone appended and has not synced.
#[derive(Default)]
pub(super) struct Appended {
    by_path: HashMap<String, Vec<Arc<Handle>>>,
}

impl Appended {
    pub(super) fn remember(&mut self, path: &str, handle: Arc<Handle>) -> Result<(), FolderError> {
        let known = self.by_path.len();
        let handles = match self.by_path.get_mut(path) {
            Some(handles) => handles,
            None if known < HANDLES_MAX => self.by_path.entry(path.to_owned()).or_default(),
            // Bytes nobody could answer for are no use to the caller.
            None => return handle.sync(),
        };
        if !handles.iter().any(|known| Arc::ptr_eq(known, &handle)) {
            handles.push(handle);
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, path: &str) -> Vec<Arc<Handle>> {
        self.by_path.remove(path).unwrap_or_default()
    }
}

/// The kept handle, if it is still the file of that name, or a new one.
pub(super) fn handle(
    handles: &Mutex<Handles>,
    path: &str,
    place: &Place,
) -> Result<Arc<Handle>, FolderError> {
    let known = lock(handles).find(path);
    if let Some(known) = known {
        let current = place.dir.symlink_metadata(&place.name);
        let same = current.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == known.mark);
        if same && !known.broken.load(Ordering::Acquire) {
            return Ok(known);
        }
    }
    let opened = Arc::new(Handle::open(place)?);
    let dropped = lock(handles).insert(path, opened.clone());
    drop(dropped);
    Ok(opened)
}

/// Brings to disk what was appended to these handles; without any, what the file holds.
pub(super) fn sync(
    handles: &Mutex<Handles>,
    path: &str,
    place: &Place,
    appended: &[Arc<Handle>],
) -> Result<(), FolderError> {
    let mut result = Ok(());
    for handle in appended {
        let synced = handle.sync();
        if synced.is_err() {
            lock(handles).remove(path, handle);
        }
        result = result.and(synced);
    }
    if appended.is_empty() {
        let (file, _) = open_regular(&place.dir, &place.name, OpenOptions::new().read(true))?;
        file.sync_data().map_err(FolderError::from_io)?;
        return sync_dir(&place.dir);
    }
    result
}

impl Handles {
    fn find(&mut self, path: &str) -> Option<Arc<Handle>> {
        self.uses += 1;
        let uses = self.uses;
        self.by_path.get_mut(path).map(|(handle, used)| {
            *used = uses;
            handle.clone()
        })
    }

    /// Returns what must be closed, so that it is closed outside the lock. Whoever appended to
    /// it and has not synced holds it still.
    fn insert(&mut self, path: &str, handle: Arc<Handle>) -> Vec<Arc<Handle>> {
        let mut dropped = Vec::new();
        if let Some((old, _)) = self.by_path.insert(path.to_owned(), (handle, self.uses)) {
            dropped.push(old);
        }
        while self.by_path.len() > HANDLES_MAX {
            let Some(least) =
                self.by_path.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone())
            else {
                break;
            };
            dropped.extend(self.by_path.remove(&least).map(|(handle, _)| handle));
        }
        dropped
    }

    fn remove(&mut self, path: &str, handle: &Arc<Handle>) {
        if self.by_path.get(path).is_some_and(|(known, _)| Arc::ptr_eq(known, handle)) {
            self.by_path.remove(path);
        }
    }
}

impl Handle {
    fn open(place: &Place) -> Result<Handle, FolderError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(FILE_MODE);
        let (file, metadata) = open_regular(&place.dir, &place.name, &mut options)?;
        // All that append share the lock; who mends a torn end needs it alone. Somebody else's
        // lock means that he does not want the file changed now. No lock at all is fine.
        if let Err(rustix::io::Errno::WOULDBLOCK) = flock(&file, FlockOperation::NonBlockingLockShared) {
            return Err(FolderError::Unavailable("the file is locked by another process".into()));
        }
        Ok(Handle {
            file: Mutex::new(file),
            mark: (metadata.dev(), metadata.ino()),
            // Also when it was there: who made it may have died before he synced its name.
            new_in: Mutex::new(Some(place.dir.clone())),
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            broken: AtomicBool::new(false),
        })
    }

    pub(super) fn append(&self, bytes: &[u8]) -> Result<(), FolderError> {
        let mut file = lock(&self.file);
        let mut rest = bytes;
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(0) => return self.torn(&file, bytes.len() - rest.len(), FolderError::Full),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return self.torn(&file, bytes.len() - rest.len(), FolderError::from_io(error));
                }
            }
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    /// Takes back the part that was written, if nobody else can have written after it.
    fn torn(&self, file: &File, written: usize, error: FolderError) -> Result<(), FolderError> {
        if written > 0 && flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let length = file.metadata().map(|metadata| metadata.len());
            let mended = length.and_then(|length| file.set_len(length.saturating_sub(written as u64)));
            if let Err(error) = mended {
                tracing::warn!(%error, "a half-written record was left in a file");
            }
            // Others may append again, also while somebody waits to sync this handle.
            let _ = flock(file, FlockOperation::NonBlockingLockShared);
        }
        // The upgrade may have lost the lock; a new handle takes its own.
        self.broken.store(true, Ordering::Release);
        Err(error)
    }

    fn sync(&self) -> Result<(), FolderError> {
        if self.broken.load(Ordering::Acquire) && self.synced.load(Ordering::Acquire) == u64::MAX {
            return Err(FolderError::Other("an earlier sync of the file failed".into()));
        }
        let target = self.written.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) < target {
            let duplicate = lock(&self.file).try_clone().map_err(FolderError::from_io)?;
            if let Err(error) = duplicate.sync_data() {
                self.broken.store(true, Ordering::Release);
                self.synced.store(u64::MAX, Ordering::Release);
                return Err(FolderError::from_io(error));
            }
            self.synced.fetch_max(target, Ordering::AcqRel);
        }
        let new_in = lock(&self.new_in).clone();
        if let Some(dir) = new_in {
            sync_dir(&dir)?;
            *lock(&self.new_in) = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    fn place(folder: &tempfile::TempDir) -> Place {
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        Place { dir: Arc::new(dir), name: "log".into() }
    }

    #[test]
    fn a_sync_brings_the_bytes_and_the_name_to_disk_once() {
        let folder = tempfile::tempdir().unwrap();
        let handle = Handle::open(&place(&folder)).unwrap();
        handle.append(b"one\n").unwrap();
        assert_eq!(handle.synced.load(Ordering::Acquire), 0);
        assert!(lock(&handle.new_in).is_some());
        handle.sync().unwrap();
        assert_eq!(handle.synced.load(Ordering::Acquire), 4);
        assert!(lock(&handle.new_in).is_none());
    }

    #[test]
    fn after_a_failed_sync_everyone_who_appended_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (handles, place) = (Mutex::default(), place(&folder));
        let first = handle(&handles, "log", &place).unwrap();
        first.append(b"one\n").unwrap();
        // What a failed sync leaves behind.
        first.broken.store(true, Ordering::Release);
        first.synced.store(u64::MAX, Ordering::Release);
        let second = handle(&handles, "log", &place).unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        second.append(b"two\n").unwrap();
        assert!(sync(&handles, "log", &place, std::slice::from_ref(&first)).is_err());
        assert!(sync(&handles, "log", &place, &[second]).is_ok());
        assert!(sync(&handles, "log", &place, &[first]).is_err());
    }

    #[test]
    fn a_torn_record_is_taken_back_unless_another_may_have_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let handle = Handle::open(&place).unwrap();
        handle.append(b"whole\nto").unwrap();
        let error = handle.torn(&lock(&handle.file), 2, FolderError::Full).unwrap_err();
        assert_eq!(error, FolderError::Full);
        assert_eq!(std::fs::read(folder.path().join("log")).unwrap(), b"whole\n");
        let other = Handle::open(&place).unwrap();
        assert!(handle.torn(&lock(&handle.file), 3, FolderError::Full).is_err());
        assert_eq!(std::fs::read(folder.path().join("log")).unwrap(), b"whole\n");
        drop(other);
    }

    #[test]
    fn open_files_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let (handles, mut place) = (Mutex::default(), place(&folder));
        for number in 0..HANDLES_MAX + 8 {
            place.name = format!("log-{number}");
            handle(&handles, &place.name, &place).unwrap();
        }
        assert_eq!(lock(&handles).by_path.len(), HANDLES_MAX);
    }
}
