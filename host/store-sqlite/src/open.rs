//! Opening a store: what is refused, and the order of the checks.
//!
//! The lock comes first, so that nobody else has the file open while it is looked at; then the
//! identity of the file, before any setting of it is changed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portway_model::code;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::disk::network_file_system;
use crate::error::is_damage;
use crate::lock::{Lock, LockError};
use crate::schema::{self, APPLICATION_ID, VERSION};

/// Up to this size the whole file is checked when it is opened; it takes some 30 ms.
const CHECKED_BYTES_MAX: u64 = 16 << 20;

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct SqliteSettings {
    /// The database file; made if it is not there, with its folder.
    pub path: PathBuf,
    /// With less free on the disk, the store says that it is full.
    pub free_floor_bytes: u64,
    /// With more log that cannot be moved into the main file, the store says that it is full.
    pub wal_bytes_max: u64,
    /// Connections for reading, opened as they are needed.
    pub readers: usize,
}

impl SqliteSettings {
    /// The usual settings for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SqliteSettings { path: path.into(), free_floor_bytes: 256 << 20, wal_bytes_max: 1 << 30, readers: 4 }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the store `{path}` is in use by another engine{}", process(*.pid))]
    InUse { path: PathBuf, pid: Option<u32> },
    #[error("the store `{path}` is on a network file system ({kind}), where nothing can be stored safely")]
    Network { path: PathBuf, kind: String },
    #[error("`{path}` is not a store of this program: it belongs to another one")]
    Foreign { path: PathBuf },
    #[error(
        "the store `{path}` has version {found}, this program knows up to {VERSION} and cannot work on it"
    )]
    Newer { path: PathBuf, found: i32 },
    #[error("there is no store `{path}` yet")]
    Missing { path: PathBuf },
    #[error("`{path}` is damaged, or no store: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error("`{path}` is not a file")]
    NotAFile { path: PathBuf },
    #[error("cannot open the store `{path}`")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot open the store `{path}`")]
    Database {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            OpenError::InUse { .. } => "stop the other engine, or give this project a store of its own",
            OpenError::Network { .. } => "put the store on a disk of this machine",
            OpenError::Foreign { .. } | OpenError::NotAFile { .. } => "name another file under `store.path`",
            OpenError::Newer { .. } => "use the newer program that made it, or a backup",
            OpenError::Missing { .. } => "`portway run` makes it",
            OpenError::Damaged { .. } => "keep the file for recovery and start from a backup",
            OpenError::Io { .. } | OpenError::Database { .. } => {
                "check the path, its permissions and the disk"
            }
        }
    }

    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            OpenError::InUse { .. } => code::STORE_IN_USE,
            OpenError::Network { .. } => code::STORE_ON_NETWORK,
            OpenError::Foreign { .. } => code::STORE_FOREIGN,
            OpenError::Newer { .. } => code::STORE_NEWER,
            OpenError::Damaged { .. } => code::STORE_DAMAGED,
            OpenError::NotAFile { .. } => code::STORE_NOT_A_FILE,
            OpenError::Missing { .. } | OpenError::Io { .. } | OpenError::Database { .. } => {
                code::STORE_NOT_OPENED
            }
        }
    }

    pub(crate) fn database(path: &Path, source: rusqlite::Error) -> OpenError {
        let path = path.to_path_buf();
        if is_damage(&source) {
            return OpenError::Damaged { path, what: source.to_string() };
        }
        OpenError::Database { path, source }
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// A file that is ours and sound, its lock, and the connection that writes.
pub(crate) struct Opened {
    pub(crate) lock: Lock,
    pub(crate) writer: Connection,
    /// What is in the log from before.
    pub(crate) log_bytes: u64,
}

pub(crate) fn open(settings: &SqliteSettings) -> Result<Opened, OpenError> {
    let path = settings.path.as_path();
    let lock = prepare_file(path)?;
    let log_bytes = file_bytes(&log_of(path));
    let (version, probe) = identify(path)?;
    if version > 0 {
        // Before anything could change a file that is to be recovered.
        check(path, &probe)?;
    }
    let database = |source| OpenError::database(path, source);
    let mut writer = writer(path).map_err(database)?;
    // Not before: the last connection that closes moves the log, which can be large.
    probe.close().map_err(|(_, error)| database(error))?;
    schema::migrate(&mut writer, version).map_err(database)?;
    Ok(Opened { lock, writer, log_bytes })
}

/// What needs no database: folder, lock, the file itself and who may read it.
fn prepare_file(path: &Path) -> Result<Lock, OpenError> {
    let io = |source| OpenError::Io { path: path.to_path_buf(), source };
    let folder = folder_of(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    if let Some(kind) = network_file_system(folder).map_err(io)? {
        return Err(OpenError::Network { path: path.to_path_buf(), kind });
    }
    let lock = Lock::take(path).map_err(|error| match error {
        LockError::Held(pid) => OpenError::InUse { path: path.to_path_buf(), pid },
        LockError::Io(source) => io(source),
    })?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_new) => {
            // So that a power loss does not take the name of a file whose messages were flushed.
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
            Ok(lock)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::metadata(path).map_err(io)?;
            if !metadata.is_file() {
                return Err(OpenError::NotAFile { path: path.to_path_buf() });
            }
            if metadata.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(io)?;
            }
            Ok(lock)
        }
        Err(error) => Err(io(error)),
    }
}

/// The folder a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

const IDENTITY: &str = "SELECT (SELECT application_id FROM pragma_application_id),
    (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";

/// The version of a file that is ours or empty, and the connection it was asked on. Changes nothing
/// in the file.
fn identify(path: &Path) -> Result<(i32, Connection), OpenError> {
    let database = |source| OpenError::database(path, source);
    let probe = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(database)?;
    Ok((version(path, &probe)?, probe))
}

/// The version of a file that is ours, or empty, and that this program works on.
pub(crate) fn version(path: &Path, probe: &Connection) -> Result<i32, OpenError> {
    let database = |source| OpenError::database(path, source);
    let identity: (i32, i32, i64) =
        probe.query_row(IDENTITY, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(database)?;
    match identity {
        (0, _, 0) => Ok(0),
        (APPLICATION_ID, version, _) => {
            let works = version <= VERSION || schema::works_on(probe, version).map_err(database)?;
            let newer = OpenError::Newer { path: path.to_path_buf(), found: version };
            if works { Ok(version) } else { Err(newer) }
        }
        _ => Err(OpenError::Foreign { path: path.to_path_buf() }),
    }
}

const ENDS: &str = "SELECT (SELECT max(length(attributes)) FROM messages
        WHERE id IN ((SELECT min(id) FROM messages), (SELECT max(id) FROM messages))),
    (SELECT min(message_id) FROM bodies), (SELECT max(message_id) FROM bodies),
    (SELECT min(message_id) FROM deliveries), (SELECT max(message_id) FROM deliveries),
    (SELECT min(message_id) FROM attempts), (SELECT max(message_id) FROM attempts)";

/// Whether a file is sound, as far as can be seen quickly: a small one as a whole, of a large one
/// both ends of every table.
fn check(path: &Path, probe: &Connection) -> Result<(), OpenError> {
    let database = |source| OpenError::database(path, source);
    let bytes = file_bytes(path) + file_bytes(&log_of(path));
    if bytes > CHECKED_BYTES_MAX {
        return probe.query_row(ENDS, [], |_| Ok(())).map_err(database);
    }
    let found: String = probe.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(database)?;
    if found == "ok" { Ok(()) } else { Err(OpenError::Damaged { path: path.to_path_buf(), what: found }) }
}

/// The log SQLite keeps beside a database.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Zero if there is no such file.
fn file_bytes(path: &Path) -> u64 {
    fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0)
}

/// How long a statement waits for another program that has the file.
pub(crate) const BUSY_MAX: Duration = Duration::from_secs(2);

/// What all connections have in common.
pub(crate) fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Without SQLite's own lock: a connection is used by one thread at a time.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_MAX)?;
    // More than there are statements.
    connection.set_prepared_statement_cache_capacity(128);
    // Plans must not depend on bound values: a statement whose plan might is parsed and planned anew
    // each time a value is bound, which costs far more than running it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(
        "PRAGMA foreign_keys = OFF;
        PRAGMA trusted_schema = OFF;
        PRAGMA temp_store = MEMORY;",
    )?;
    Ok(connection)
}

fn writer(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // 4 MiB of pages: SQLite looks through the whole cache with nearly every commit that splits a
    // page. What a transaction changes stays in memory until its commit, instead of being written
    // twice.
    connection.execute_batch(
        "PRAGMA auto_vacuum = INCREMENTAL;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA wal_autocheckpoint = 0;
        PRAGMA cache_size = -4096;
        PRAGMA cache_spill = OFF;",
    )?;
    Ok(connection)
}

pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -2048;")?;
    Ok(connection)
}

/// For a copy: reads this file and writes another.
pub(crate) fn copier(path: &Path) -> rusqlite::Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// For moving the log into the main file while the writer goes on.
pub(crate) fn mover(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
        PRAGMA wal_autocheckpoint = 0;
        PRAGMA cache_size = -512;",
    )?;
    Ok(connection)
}
