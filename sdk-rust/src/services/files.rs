//! Folders by the name of a granted slot: local, SFTP or object store. Paths are
//! relative, with `/`.

use crate::blobs::Blob;
use crate::host;

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    Denied,
    NotFound,
    Exists,
    NotAFile,
    /// No room on the disk, or the quota is used up.
    Full,
    /// This kind of folder cannot.
    Unsupported,
    Unavailable(String),
    Other(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Denied => f.write_str("the folder is not granted for this"),
            Error::NotFound => f.write_str("there is no such file"),
            Error::Exists => f.write_str("the file exists already"),
            Error::NotAFile => f.write_str("it is not a regular file"),
            Error::Full => f.write_str("there is no room left"),
            Error::Unsupported => f.write_str("this kind of folder cannot do that"),
            Error::Unavailable(text) => write!(f, "the folder cannot be reached: {text}"),
            Error::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

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

/// What to do where the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExists {
    Fail,
    Replace,
}

/// An open regular file.
#[derive(Debug)]
pub struct File(host::File);

impl File {
    /// In bytes, now.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// As in [`Entry`].
    pub fn identity(&self) -> String {
        self.0.identity()
    }

    /// At most 1 MiB; shorter only at the end.
    pub fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>, Error> {
        self.0.read(offset, len)
    }

    /// A part as a body, without passing through the plugin.
    pub fn slice(&self, offset: u64, len: u64) -> Result<Blob, Error> {
        self.0.slice(offset, len).map(Blob)
    }
}

/// Names in byte order, after `after`.
pub fn scan(folder: &str, path: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, Error> {
    host::files_scan(folder, path, after, limit)
}

/// One name.
pub fn stat(folder: &str, path: &str) -> Result<Entry, Error> {
    host::files_stat(folder, path)
}

/// Regular files only; never waits for a pipe or a device.
pub fn open(folder: &str, path: &str) -> Result<File, Error> {
    host::files_open(folder, path).map(File)
}

/// Whole or not at all, and on disk when it returns.
pub fn put(folder: &str, path: &str, bytes: &[u8], on_exists: OnExists) -> Result<(), Error> {
    host::files_put(folder, path, bytes, on_exists)
}

/// The same from a blob.
pub fn put_blob(folder: &str, path: &str, blob: &Blob, on_exists: OnExists) -> Result<(), Error> {
    host::files_put_blob(folder, path, &blob.0, on_exists)
}

/// Not on disk before [`sync`].
pub fn append(folder: &str, path: &str, bytes: &[u8]) -> Result<(), Error> {
    host::files_append(folder, path, bytes)
}

/// Returns when all that was appended is on disk.
pub fn sync(folder: &str, path: &str) -> Result<(), Error> {
    host::files_sync(folder, path)
}

/// A file and where it is to go.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    pub folder: &'a str,
    pub path: &'a str,
    pub to_folder: &'a str,
    pub to_path: &'a str,
    pub on_exists: OnExists,
}

/// Also between folders; copies where a rename cannot.
pub fn rename(from_to: Move<'_>) -> Result<(), Error> {
    host::files_move(from_to)
}

/// Files only.
pub fn remove(folder: &str, path: &str) -> Result<(), Error> {
    host::files_remove(folder, path)
}
