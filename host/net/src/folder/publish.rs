//! Making a file appear whole or not at all: written aside, synced, then named.
//!
//! What a killed process left half-written has a reserved name; it is invisible to plugins and
//! removed by a later `put` in the same folder.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cap_fs_ext::OpenOptionsExt;
use cap_std::fs::{Dir, OpenOptions};

use super::path::{Place, RESERVED_PREFIX, is_reserved};
use super::{FolderError, OnExists, open_regular};

/// Messages are nobody's but the owner's and the group's.
pub(super) const FILE_MODE: u32 = 0o660;
/// Bytes copied at a time.
const COPY_BYTES: usize = 256 << 10;
/// A half-written file that was not touched for so long belongs to nobody.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(3600);

/// Tells the files of one process apart.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// A half-written file; removed unless it was published.
struct Part<'a> {
    dir: &'a Dir,
    name: String,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        // After a successful rename there is nothing left to remove.
        let _ = self.dir.remove_file(&self.name);
    }
}

pub(super) fn put(
    dir: &Dir,
    name: &str,
    bytes: &mut dyn Read,
    on_exists: OnExists,
) -> Result<(), FolderError> {
    check_target(dir, name, on_exists)?;
    let part = write_part(dir, bytes)?;
    name_file(dir, &part.name, dir, name, on_exists)?;
    drop(part);
    sync_dir(dir)
}

pub(super) fn move_file(from: &Place, to: &Place, on_exists: OnExists) -> Result<(), FolderError> {
    let (mut file, _) = open_regular(&from.dir, &from.name, OpenOptions::new().read(true))?;
    check_target(&to.dir, &to.name, on_exists)?;
    match name_file(&from.dir, &from.name, &to.dir, &to.name, on_exists) {
        Ok(()) => {}
        Err(Named::AcrossDevices) => {
            put(&to.dir, &to.name, &mut file, on_exists)?;
            from.dir.remove_file(&from.name).map_err(FolderError::from_io)?;
        }
        Err(Named::Error(error)) => return Err(error),
    }
    sync_dir(&to.dir)?;
    sync_dir(&from.dir)
}

/// Makes names durable, where the system can.
pub(super) fn sync_dir(dir: &Dir) -> Result<(), FolderError> {
    let file = dir.open(".").map_err(FolderError::from_io)?;
    match file.sync_all() {
        // Some file systems keep names durable by themselves and refuse to be asked.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result.map_err(FolderError::from_io),
    }
}

/// Says early what would fail late, and keeps what is no file from being replaced.
fn check_target(dir: &Dir, name: &str, on_exists: OnExists) -> Result<(), FolderError> {
    match (dir.symlink_metadata(name), on_exists) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Err(error), _) => Err(FolderError::from_io(error)),
        (Ok(_), OnExists::Fail) => Err(FolderError::Exists),
        (Ok(metadata), OnExists::Replace) if metadata.is_file() => Ok(()),
        (Ok(_), OnExists::Replace) => Err(FolderError::NotAFile),
    }
}

fn write_part<'a>(dir: &'a Dir, bytes: &mut dyn Read) -> Result<Part<'a>, FolderError> {
    let number = PARTS.fetch_add(1, Ordering::Relaxed);
    if number.is_multiple_of(1024) {
        remove_left_behind(dir);
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!("{RESERVED_PREFIX}{:x}-{:x}-{number:x}", std::process::id(), since.as_nanos());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(FILE_MODE);
    let (mut file, _) = open_regular(dir, &name, &mut options)?;
    let part = Part { dir, name };
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = match bytes.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result.map_err(FolderError::from_io)?,
        };
        let Some(filled) = buffer.get(..read).filter(|filled| !filled.is_empty()) else { break };
        file.write_all(filled).map_err(FolderError::from_io)?;
    }
    file.sync_all().map_err(FolderError::from_io)?;
    Ok(part)
}

fn remove_left_behind(dir: &Dir) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|modified| modified.into_std().elapsed().is_ok_and(|age| age > LEFT_BEHIND_AFTER));
        if is_reserved(&name) && old {
            // Another process may be faster.
            let _ = dir.remove_file(&name);
        }
    }
}

/// Why a file did not get its name.
enum Named {
    AcrossDevices,
    Error(FolderError),
}

impl From<Named> for FolderError {
    fn from(named: Named) -> FolderError {
        match named {
            Named::AcrossDevices => FolderError::Unsupported,
            Named::Error(error) => error,
        }
    }
}

impl From<io::Error> for Named {
    fn from(error: io::Error) -> Named {
        match error.kind() {
            io::ErrorKind::CrossesDevices => Named::AcrossDevices,
            _ => Named::Error(FolderError::from_io(error)),
        }
    }
}

fn name_file(from: &Dir, name: &str, to: &Dir, to_name: &str, on_exists: OnExists) -> Result<(), Named> {
    match on_exists {
        OnExists::Replace => from.rename(name, to, to_name).map_err(Named::from),
        OnExists::Fail => rename_new(from, name, to, to_name),
    }
}

/// Renames only if the new name is free. Where the file system has no such rename, a second
/// name is given and the first taken away.
fn rename_new(from: &Dir, name: &str, to: &Dir, to_name: &str) -> Result<(), Named> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(from, name, to, to_name, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    from.hard_link(name, to, to_name).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => {
            Named::Error(FolderError::Unsupported)
        }
        _ => error.into(),
    })?;
    from.remove_file(name).map_err(Named::from)
}
