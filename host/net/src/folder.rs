//! A granted folder: a wall around one directory of this machine.
//!
//! Paths are relative and plain, no symbolic link is followed on the way or at its end, and
//! only regular files are opened, never waiting for a pipe or a device. All functions block;
//! call them where blocking is fine. Appending is in `append`, what makes a file appear whole
//! or not at all in `publish`.

mod append;
mod error;
mod path;
mod publish;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

pub use self::error::FolderError;
use self::path::Place;

/// Bytes of one read at most.
pub const READ_BYTES_MAX: u32 = 1 << 20;
/// Names of one scan at most.
pub const SCAN_MAX: u32 = 1_000;
/// Names a folder may hold to be scanned.
const NAMES_MAX: usize = 1_000_000;

/// A directory that may be reached, and what may be done there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FolderGrant {
    pub path: PathBuf,
    pub access: Access,
}

/// What a folder is granted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    /// Reading too.
    Write,
}

/// What to do where the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExists {
    Fail,
    Replace,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub size: u64,
    pub modified_ms: u64,
    /// Changes when another file takes the name.
    pub identity: String,
    pub is_folder: bool,
}

/// A granted folder. It is opened with its first use, and again when another directory takes
/// its place.
///
/// A clone shares the open files, but not the memory of what was appended: `sync` answers for
/// the appends of its own clone, so give every caller one.
pub struct Folder {
    shared: Arc<Shared>,
    appended: Mutex<append::Appended>,
}

struct Shared {
    grant: FolderGrant,
    root: Mutex<Option<Root>>,
    handles: Mutex<append::Handles>,
}

/// The directory behind the grant's path, as it was when it was last looked at.
#[derive(Clone)]
struct Root {
    dir: Arc<Dir>,
    mark: (u64, u64),
}

/// An open regular file.
#[derive(Debug)]
pub struct FolderFile {
    file: File,
    metadata: Metadata,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clone for Folder {
    fn clone(&self) -> Folder {
        Folder { shared: self.shared.clone(), appended: Mutex::default() }
    }
}

impl Folder {
    /// Looks at nothing yet: a folder that is away is an error of the call that needs it.
    pub fn new(grant: FolderGrant) -> Folder {
        let shared = Shared { grant, root: Mutex::new(None), handles: Mutex::default() };
        Folder { shared: Arc::new(shared), appended: Mutex::default() }
    }

    /// What the folder reaches.
    pub fn grant(&self) -> &FolderGrant {
        &self.shared.grant
    }

    /// Names in byte order, after `after`; an empty path is the folder itself. Names that are
    /// neither a regular file nor a folder, or no UTF-8, are not shown.
    pub fn scan(&self, path: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, FolderError> {
        let dir = self.dir(path::parse_folder(path)?)?;
        let mut names = Vec::new();
        for entry in dir.entries().map_err(FolderError::from_io)? {
            let entry = entry.map_err(FolderError::from_io)?;
            let kind = entry.file_type().map_err(FolderError::from_io)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let shown = (kind.is_file() || kind.is_dir()) && !path::is_reserved(&name);
            if shown && after.is_none_or(|after| name.as_str() > after) {
                names.push(name);
            }
            if names.len() > NAMES_MAX {
                return Err(FolderError::Other(format!("the folder holds more than {NAMES_MAX} names")));
            }
        }
        names.sort_unstable();
        names.truncate(limit.min(SCAN_MAX) as usize);
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            match dir.symlink_metadata(&name) {
                // It may have gone or changed since its name was read.
                Ok(metadata) if metadata.is_file() || metadata.is_dir() => {
                    entries.push(entry(name, &metadata))
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FolderError::from_io(error)),
            }
        }
        Ok(entries)
    }

    /// One name.
    pub fn stat(&self, path: &str) -> Result<Entry, FolderError> {
        let place = self.place(path)?;
        let metadata = place.dir.symlink_metadata(&place.name).map_err(FolderError::from_io)?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(FolderError::NotAFile);
        }
        Ok(entry(place.name, &metadata))
    }

    /// Opens a regular file for reading; never waits for a pipe or a device.
    pub fn open(&self, path: &str) -> Result<FolderFile, FolderError> {
        let place = self.place(path)?;
        open_regular(&place.dir, &place.name, OpenOptions::new().read(true))
            .map(|(file, metadata)| FolderFile { file, metadata })
    }

    /// Whole or not at all, and on disk when it returns.
    pub fn put(&self, path: &str, bytes: &[u8], on_exists: OnExists) -> Result<(), FolderError> {
        self.put_from(path, &mut &*bytes, on_exists)
    }

    /// The same from a reader.
    pub fn put_from(
        &self,
        path: &str,
        bytes: &mut dyn io::Read,
        on_exists: OnExists,
    ) -> Result<(), FolderError> {
        self.may_write()?;
        let place = self.place(path)?;
        publish::put(&place.dir, &place.name, bytes, on_exists)
    }

    /// Writes at the end of a file, which is made if there is none. Not on disk before `sync`.
    pub fn append(&self, path: &str, bytes: &[u8]) -> Result<(), FolderError> {
        self.may_write()?;
        let place = self.place(path)?;
        let handle = append::handle(&self.shared.handles, path, &place)?;
        handle.append(bytes)?;
        lock(&self.appended).remember(path, handle)
    }

    /// Returns when all that this clone appended is on disk.
    pub fn sync(&self, path: &str) -> Result<(), FolderError> {
        self.may_write()?;
        let place = self.place(path)?;
        let appended = lock(&self.appended).forget(path);
        append::sync(&self.shared.handles, path, &place, &appended)
    }

    /// Also to another folder; copies where a rename cannot. On disk when it returns.
    pub fn move_to(
        &self,
        path: &str,
        to: &Folder,
        to_path: &str,
        on_exists: OnExists,
    ) -> Result<(), FolderError> {
        self.may_write()?;
        to.may_write()?;
        let (from, to) = (self.place(path)?, to.place(to_path)?);
        publish::move_file(&from, &to, on_exists)
    }

    /// Files only.
    pub fn remove(&self, path: &str) -> Result<(), FolderError> {
        self.may_write()?;
        let place = self.place(path)?;
        let metadata = place.dir.symlink_metadata(&place.name).map_err(FolderError::from_io)?;
        if !metadata.is_file() {
            return Err(FolderError::NotAFile);
        }
        place.dir.remove_file(&place.name).map_err(FolderError::from_io)?;
        publish::sync_dir(&place.dir)
    }

    fn may_write(&self) -> Result<(), FolderError> {
        match self.shared.grant.access {
            Access::Write => Ok(()),
            Access::Read => Err(FolderError::Denied),
        }
    }

    /// The directory a path lies in, and the last name of the path.
    fn place(&self, path: &str) -> Result<Place, FolderError> {
        let (parents, name) = path::parse_file(path)?;
        let dir = self.dir(parents)?;
        Ok(Place { dir, name: name.to_owned() })
    }

    /// Goes down one name at a time, since a name alone cannot lead anywhere else.
    fn dir<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<Arc<Dir>, FolderError> {
        let mut dir = self.root()?;
        for name in names {
            dir = Arc::new(dir.open_dir_nofollow(name).map_err(FolderError::from_parent)?);
        }
        Ok(dir)
    }

    /// The directory at the grant's path now: one that was removed or mounted over since it was
    /// opened would swallow what is written to it.
    fn root(&self) -> Result<Arc<Dir>, FolderError> {
        let path = &self.shared.grant.path;
        let away = |error: io::Error| {
            FolderError::Unavailable(format!("the folder `{}` cannot be opened: {error}", path.display()))
        };
        let metadata = std::fs::metadata(path).map_err(away)?;
        let mark = (metadata.dev(), metadata.ino());
        let mut root = lock(&self.shared.root);
        if let Some(root) = root.as_ref().filter(|root| root.mark == mark) {
            return Ok(root.dir.clone());
        }
        let dir = Arc::new(Dir::open_ambient_dir(path, ambient_authority()).map_err(away)?);
        *root = Some(Root { dir: dir.clone(), mark });
        Ok(dir)
    }
}

impl FolderFile {
    /// In bytes, now.
    pub fn size(&self) -> u64 {
        self.file.metadata().map_or(self.metadata.len(), |metadata| metadata.len())
    }

    /// As in `Entry`.
    pub fn identity(&self) -> String {
        identity(&self.metadata)
    }

    /// At most `READ_BYTES_MAX` bytes; shorter only at the end.
    pub fn read(&self, offset: u64, len: u32) -> Result<Bytes, FolderError> {
        let left = self.size().saturating_sub(offset);
        let wanted = u64::from(len.min(READ_BYTES_MAX)).min(left);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(0)];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_at(&self.file, rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FolderError::from_io(error)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes.into())
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    cap_std::fs::FileExt::read_at(file, bytes, offset)
}

/// Opens without waiting and without following a link, and makes sure that it is a file.
fn open_regular(dir: &Dir, name: &str, options: &mut OpenOptions) -> Result<(File, Metadata), FolderError> {
    // Opening alone can have effects on a device, so its kind is looked at first; what was
    // opened in the end is looked at again.
    match dir.symlink_metadata(name) {
        Ok(metadata) if !metadata.is_file() => return Err(FolderError::NotAFile),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(FolderError::from_io(error)),
    }
    options.nonblock(true).follow(FollowSymlinks::No);
    let file = dir.open_with(name, options).map_err(FolderError::from_io)?;
    let metadata = file.metadata().map_err(FolderError::from_io)?;
    if !metadata.is_file() {
        return Err(FolderError::NotAFile);
    }
    Ok((file, metadata))
}

fn entry(name: String, metadata: &Metadata) -> Entry {
    let modified = metadata.modified().map_or(UNIX_EPOCH, |time| time.into_std());
    Entry {
        name,
        size: metadata.len(),
        modified_ms: millis(modified),
        identity: identity(metadata),
        is_folder: metadata.is_dir(),
    }
}

/// Device and number of the file, and when it was made, since numbers are used again.
fn identity(metadata: &Metadata) -> String {
    let created = metadata.created().map_or(UNIX_EPOCH, |time| time.into_std());
    let created_ns = created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{:x}-{:x}-{created_ns:x}", metadata.dev(), metadata.ino())
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
