//! A consistent copy while the store is in use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use portway_store::{ErrorKind, StoreError};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::failed;
use crate::open::{backup_options, folder_of};

/// Copies the store `from` into a new file. The copy is one read: what is stored while it runs is
/// not in it, and the log is not begun anew until it ends.
pub(crate) async fn backup(from: &Path, target: &Path) -> Result<(), StoreError> {
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
    let copied = match copy(from, name).await {
        Ok(()) => flush(&target).map_err(io),
        Err(error) => Err(failed("copy the store", error)),
    };
    if copied.is_err() {
        // Half a copy must not be taken for one.
        let _ = fs::remove_file(&target);
    }
    copied
}

async fn copy(from: &Path, target: &str) -> Result<(), sqlx::Error> {
    let mut connection = backup_options(from).connect().await?;
    let copied = sqlx::query("VACUUM INTO ?").bind(target).execute(&mut connection).await;
    let closed = connection.close().await;
    copied?;
    closed
}

fn flush(target: &Path) -> io::Result<()> {
    File::open(target)?.sync_all()?;
    File::open(folder_of(target))?.sync_all()
}
