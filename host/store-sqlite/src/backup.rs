//! A consistent copy while the store is in use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use portway_store::{ErrorKind, StoreError};

use crate::error::failed;
use crate::open::{self, folder_of};

/// Copies the store `from` into a new file. The copy is one read: what is stored while it runs is
/// not in it, and the log is not begun anew until it ends.
pub(crate) fn backup(from: &Path, target: &Path) -> Result<(), StoreError> {
    let shown = target.display();
    let io = |error: io::Error| {
        StoreError::new(ErrorKind::Refused, format!("cannot write `{shown}`")).caused_by(error)
    };
    let target = std::path::absolute(target).map_err(io)?;
    let Some(name) = target.to_str() else {
        return Err(StoreError::new(ErrorKind::Refused, format!("the path `{shown}` is not UTF-8")));
    };
    // Made here, so that nobody else can read it at any time; SQLite accepts an empty file.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target) {
        Ok(_new) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(StoreError::new(ErrorKind::Refused, format!("`{shown}` exists already")));
        }
        Err(error) => return Err(io(error)),
    }
    let copied = match copy(from, name) {
        Ok(()) => flush(&target).map_err(io),
        Err(error) => Err(failed("copy the store", error)),
    };
    if copied.is_err() {
        // Half a copy must not be taken for one.
        let _ = fs::remove_file(&target);
    }
    copied
}

fn copy(from: &Path, target: &str) -> rusqlite::Result<()> {
    let connection = open::copier(from)?;
    connection.execute("VACUUM INTO ?", [target])?;
    connection.close().map_err(|(_, error)| error)
}

fn flush(target: &Path) -> io::Result<()> {
    File::open(target)?.sync_all()?;
    File::open(folder_of(target))?.sync_all()
}
