//! The store of a project: a file, or a database.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use portway_config::Project;
use portway_store::{Store, UpgradePlan, Upgraded};
use portway_store_postgres::{PostgresSettings, PostgresStore};
use portway_store_sqlite::{SqliteSettings, SqliteStore};
use sha2::{Digest, Sha256};

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    File(#[from] portway_store_sqlite::OpenError),
    #[error(transparent)]
    Database(#[from] portway_store_postgres::OpenError),
}

impl OpenError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            OpenError::File(error) => error.code(),
            OpenError::Database(error) => error.code(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            OpenError::File(error) => error.hint(),
            OpenError::Database(error) => error.hint(),
        }
    }
}

/// Opens the store that the project names. What an operator should know of it goes to the log.
pub async fn open(project: &Project) -> Result<Arc<dyn Store>, OpenError> {
    let settings = match StoreSettings::of(project) {
        StoreSettings::File(settings) => return Ok(Arc::new(SqliteStore::open(settings).await?)),
        StoreSettings::Database(settings) => settings,
    };
    let store = PostgresStore::open(settings).await?;
    for note in store.notes() {
        tracing::warn!("{note}");
    }
    Ok(Arc::new(store))
}

/// What an upgrade of the store to the tables of this program would do. Nothing is changed.
pub async fn check_upgrade(project: &Project) -> Result<UpgradePlan, OpenError> {
    Ok(match StoreSettings::of(project) {
        StoreSettings::File(settings) => portway_store_sqlite::check_upgrade(settings).await?,
        StoreSettings::Database(settings) => portway_store_postgres::check_upgrade(settings).await?,
    })
}

/// Brings the store to the tables of this program, while no engine uses it.
pub async fn upgrade(project: &Project) -> Result<Upgraded, OpenError> {
    Ok(match StoreSettings::of(project) {
        StoreSettings::File(settings) => portway_store_sqlite::upgrade(settings).await?,
        StoreSettings::Database(settings) => portway_store_postgres::upgrade(settings).await?,
    })
}

enum StoreSettings {
    File(SqliteSettings),
    Database(PostgresSettings),
}

impl StoreSettings {
    fn of(project: &Project) -> StoreSettings {
        let settings = &project.store;
        let Some(url) = &settings.url else {
            return StoreSettings::File(SqliteSettings {
                free_floor_bytes: settings.free_bytes_min.0,
                wal_bytes_max: settings.log_bytes_max.0,
                ..SqliteSettings::new(settings.path.as_path())
            });
        };
        let engine = settings.engine.clone().unwrap_or_else(|| engine_name(project.data_dir()));
        StoreSettings::Database(PostgresSettings::new(url.reveal(), engine))
    }
}

/// The same whenever an engine starts on this machine for this folder.
fn engine_name(folder: &Path) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(40).collect();
    let digest = Sha256::digest(folder.as_os_str().as_bytes());
    let number: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{host}-{number}")
}

/// Where it is, for people: never with a password.
pub fn place(project: &Project) -> String {
    let Some(url) = &project.store.url else { return project.store.path.as_path().display().to_string() };
    place_of(url.reveal())
}

/// The servers and the database of an address. Several servers are no URL, so they are not read as one.
fn place_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let servers = authority.rsplit_once('@').map_or(authority, |(_, servers)| servers);
    let (database, parameters) = path.split_once('?').unwrap_or((path, ""));
    let host = parameters.split('&').find(|parameter| parameter.starts_with("host="));
    let host = host.map(|host| format!("?{host}")).unwrap_or_default();
    format!("postgres://{servers}{database}{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_servers_and_database_and_no_password() {
        for (url, place) in [
            ("postgres://ann:se@cret@db:5433/x?sslmode=require", "postgres://db:5433/x"),
            ("postgres://ann:secret@h1:5433,h2/x?target_session_attrs=read-write", "postgres://h1:5433,h2/x"),
            ("postgres://%2Frun%2Fpostgresql/x", "postgres://%2Frun%2Fpostgresql/x"),
            ("postgres://ann@/x?password=secret&host=/run/p", "postgres:///x?host=/run/p"),
            ("postgres://db", "postgres://db"),
            ("nonsense", "postgres://"),
        ] {
            assert_eq!(place_of(url), place);
        }
    }
}
