//! Why a folder did not do what was asked, and what the system's errors mean for it.

use std::io;

/// The error of a granted folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    /// Not granted, a path that is not plain, or forbidden to this process.
    #[error("denied")]
    Denied,
    #[error("not found")]
    NotFound,
    #[error("the name is taken")]
    Exists,
    /// A folder, a link, a pipe, a socket or a device.
    #[error("not a regular file")]
    NotAFile,
    /// No room or no quota left.
    #[error("the disk is full")]
    Full,
    #[error("not supported by this folder")]
    Unsupported,
    /// The folder or its disk is away.
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Other(String),
}

impl FolderError {
    /// What an error on a file means.
    pub(crate) fn from_io(error: io::Error) -> FolderError {
        use rustix::io::Errno;
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // A link where none is followed; a pipe nobody reads.
            Some(Errno::LOOP | Errno::NXIO) => return FolderError::NotAFile,
            Some(Errno::IO | Errno::STALE | Errno::NODEV | Errno::NOTCONN | Errno::HOSTDOWN) => {
                return FolderError::Unavailable(error.to_string());
            }
            _ => {}
        }
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FolderError::NotFound,
            io::ErrorKind::AlreadyExists => FolderError::Exists,
            io::ErrorKind::IsADirectory => FolderError::NotAFile,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                FolderError::Full
            }
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::InvalidFilename => FolderError::Denied,
            io::ErrorKind::Unsupported => FolderError::Unsupported,
            io::ErrorKind::TimedOut
            | io::ErrorKind::StaleNetworkFileHandle
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable => FolderError::Unavailable(error.to_string()),
            _ => FolderError::Other(error.to_string()),
        }
    }

    /// What an error on the way to a file means: a link in between is a way out.
    pub(crate) fn from_parent(error: io::Error) -> FolderError {
        match FolderError::from_io(error) {
            FolderError::NotAFile => FolderError::Denied,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_the_system_says_is_what_a_plugin_hears() {
        for (errno, expected) in [
            (Errno::NOSPC, FolderError::Full),
            (Errno::DQUOT, FolderError::Full),
            (Errno::FBIG, FolderError::Full),
            (Errno::NOENT, FolderError::NotFound),
            (Errno::NOTDIR, FolderError::NotFound),
            (Errno::EXIST, FolderError::Exists),
            (Errno::ISDIR, FolderError::NotAFile),
            (Errno::LOOP, FolderError::NotAFile),
            (Errno::NXIO, FolderError::NotAFile),
            (Errno::ACCESS, FolderError::Denied),
            (Errno::ROFS, FolderError::Denied),
            (Errno::NAMETOOLONG, FolderError::Denied),
        ] {
            assert_eq!(FolderError::from_io(errno.into()), expected, "{errno:?}");
        }
        for errno in [Errno::IO, Errno::STALE, Errno::TIMEDOUT] {
            assert!(matches!(FolderError::from_io(errno.into()), FolderError::Unavailable(_)), "{errno:?}");
        }
        assert_eq!(FolderError::from_parent(Errno::LOOP.into()), FolderError::Denied);
    }
}
