//! The lock file beside the database: one engine at a time.
//!
//! A lock on a file of our own, because nothing but SQLite may open the database file: closing
//! any other handle of it would drop SQLite's own locks.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Held for the engine's life; the kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why there is no lock.
pub(crate) enum LockError {
    /// Another engine has it; its process, where that could be read.
    Held(Option<u32>),
    Io(io::Error),
}

impl Lock {
    pub(crate) fn take(database: &Path) -> Result<Lock, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(lock_path(database)).map_err(LockError::Io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(LockError::Held(read_pid(&mut file))),
            Err(error) => return Err(LockError::Io(error.into())),
        }
        let pid = format!("{}\n", std::process::id());
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
        written.map_err(LockError::Io)?;
        Ok(Lock { _file: file })
    }
}

/// The lock file of a database: its name and `.lock`.
fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
