//! What an upgrade would do to a file, without touching it; and doing it while no engine runs.
//!
//! What each migration is for, it says itself; here its tables are measured.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portway_store::{Migration, TableWork, UpgradePlan, UpgradeStep, Upgraded, Work};
use rusqlite::{Connection, OpenFlags};

use crate::disk::free_bytes;
use crate::open::{self, OpenError, SqliteSettings, folder_of, log_of};
use crate::schema::{self, MIGRATIONS, VERSION};
use crate::thread::start_apart;

/// How long all tables of a plan are counted; what is not counted by then is told as more.
const COUNTING_MAX: Duration = Duration::from_secs(10);

/// What an upgrade of the file to the tables of this program would do. Neither the file nor an engine that has
/// it is disturbed.
pub async fn check_upgrade(settings: SqliteSettings) -> Result<UpgradePlan, OpenError> {
    let path = settings.path.clone();
    apart(path.clone(), move || check_now(&path)).await
}

/// Brings the file to the tables of this program. Refused while an engine has it.
pub async fn upgrade(settings: SqliteSettings) -> Result<Upgraded, OpenError> {
    let path = settings.path.clone();
    apart(path, move || {
        if !settings.path.exists() {
            return Err(OpenError::Missing { path: settings.path });
        }
        let begun = Instant::now();
        let from = check_now(&settings.path)?.present;
        drop(open::open(&settings)?);
        let to = u32::try_from(VERSION).unwrap_or_default().max(from.unwrap_or_default());
        Ok(Upgraded { from, to, took: begun.elapsed() })
    })
    .await
}

async fn apart<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    let ended = |_| OpenError::Io { path, source: std::io::Error::other("the thread that opens it ended") };
    start_apart("store-upgrade", work).await.map_err(ended)?
}

fn check_now(path: &Path) -> Result<UpgradePlan, OpenError> {
    let was_quiet = !log_of(path).exists();
    match plan(path) {
        // An engine began while it was read, and may have changed it.
        Err(OpenError::Damaged { .. }) if was_quiet && log_of(path).exists() => plan(path),
        plan => plan,
    }
}

fn plan(path: &Path) -> Result<UpgradePlan, OpenError> {
    let known = u32::try_from(VERSION).unwrap_or_default();
    let free_bytes = free_bytes(folder_of(path)).ok();
    let mut plan = UpgradePlan { present: None, known, steps: Vec::new(), newer: Vec::new(), free_bytes };
    if !path.exists() {
        return Ok(plan);
    }
    let database = |source| OpenError::database(path, source);
    let probe = look_into(path).map_err(database)?;
    let version = open::version(path, &probe)?;
    if version == 0 {
        return Ok(plan);
    }
    plan.present = u32::try_from(version).ok();
    plan.newer = schema::newer(&probe).map_err(database)?;
    let until = Instant::now() + COUNTING_MAX;
    for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        plan.steps.push(step(path, &probe, migration, until)?);
    }
    Ok(plan)
}

/// A connection that changes nothing. Where there is no log nobody has the file open, and it is read without
/// any of the files that SQLite would put beside it.
fn look_into(path: &Path) -> rusqlite::Result<Connection> {
    if log_of(path).exists() {
        return open::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let path: String = url_of(&absolute);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open::connect(Path::new(&format!("file:{path}?immutable=1")), flags)
}

/// A path as SQLite reads it in an address: all but the plainest characters by their numbers.
fn url_of(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;

    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes
        .map(|byte| if is_plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

fn step(
    path: &Path,
    probe: &Connection,
    migration: &Migration,
    until: Instant,
) -> Result<UpgradeStep, OpenError> {
    let wrong =
        |what: String| OpenError::Io { path: path.to_path_buf(), source: std::io::Error::other(what) };
    let head = migration.head().map_err(|error| wrong(error.to_string()))?;
    let measured = head.works_through.into_iter().map(|(table, work)| measure(probe, table, work, until));
    let tables = measured.collect::<rusqlite::Result<_>>();
    Ok(UpgradeStep {
        number: migration.number(),
        name: migration.name.to_owned(),
        does: head.does,
        others: head.others,
        tables: tables.map_err(|source| OpenError::database(path, source))?,
    })
}

const TREES: &str = "SELECT name, type = 'table' FROM sqlite_schema WHERE tbl_name = ?
    AND type IN ('table', 'index') ORDER BY type DESC";
const PAGES: &str = "SELECT pgsize, ncell, pagetype FROM dbstat WHERE name = ?";

/// Counts a table page by page, until it is time to stop.
fn measure(probe: &Connection, table: String, work: Work, until: Instant) -> rusqlite::Result<TableWork> {
    let mut found = TableWork { table, work, rows: 0, bytes: 0, at_least: false };
    let mut trees = probe.prepare(TREES)?;
    let trees =
        trees.query_map([&found.table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))?;
    let trees: Vec<(String, bool)> = trees.collect::<rusqlite::Result<_>>()?;
    let mut pages = probe.prepare(PAGES)?;
    for (tree, holds_rows) in trees {
        let mut pages = pages.query([tree])?;
        while let Some(page) = pages.next()? {
            if Instant::now() >= until {
                found.at_least = true;
                return Ok(found);
            }
            found.bytes = found.bytes.saturating_add(page.get::<_, i64>(0)?.unsigned_abs());
            if holds_rows && page.get_ref(2)?.as_str().is_ok_and(|kind| kind == "leaf") {
                found.rows = found.rows.saturating_add(page.get::<_, i64>(1)?.unsigned_abs());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_characters_is_an_address() {
        assert_eq!(url_of(Path::new("/a b/ü?#%.db")), "/a%20b/%c3%bc%3f%23%25.db");
    }
}
