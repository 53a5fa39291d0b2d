//! The suite every store passes, on SQLite.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use portway_store::Store;
use portway_store::conformance::Harness;
use portway_store_sqlite::{OpenError, SqliteSettings, SqliteStore};

use crate::harness::Folder;

#[async_trait]
impl Harness for Folder {
    async fn open(&self) -> Arc<dyn Store> {
        if self.path().exists() {
            self.remove_store();
        }
        Arc::new(SqliteStore::open(self.settings()).await.unwrap())
    }

    /// Dropped without being closed: its file is what a killed process leaves. (A process that is
    /// really killed is in `crash`.)
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        Arc::new(SqliteStore::open(self.settings()).await.unwrap())
    }

    /// One engine at a time: what happens to a second is in `opening`.
    async fn another(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }

    fn backup_path(&self) -> Option<PathBuf> {
        Some(self.folder.path().join("copy's file.db"))
    }

    async fn open_backup(&self, _store: &Arc<dyn Store>, path: &Path) -> Arc<dyn Store> {
        let settings = SqliteSettings { free_floor_bytes: 0, ..SqliteSettings::new(path) };
        Arc::new(SqliteStore::open(settings).await.unwrap())
    }
}

portway_store::conformance_cases!(Folder::new());

/// On tables that a newer program added to: a column each, with and without a value, a table, an index.
struct Later(Folder);

impl Later {
    fn add(&self) {
        let connection = crate::harness::beside(&self.0.path());
        let mut tables = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            .unwrap();
        let tables = tables.query_map([], |row| row.get(0)).unwrap();
        let tables: Vec<String> = tables.collect::<Result<_, _>>().unwrap();
        assert!(tables.len() > 15, "{tables:?}");
        for table in tables {
            let script = format!(
                "ALTER TABLE {table} ADD COLUMN later_text TEXT;
                ALTER TABLE {table} ADD COLUMN later_number INTEGER NOT NULL DEFAULT 7;"
            );
            connection.execute_batch(&script).unwrap();
        }
        let known = portway_store_sqlite::migrations().len();
        let script = format!(
            "CREATE TABLE later (id INTEGER PRIMARY KEY, text TEXT) STRICT;
            CREATE INDEX later_messages ON messages (later_number, id);
            INSERT INTO schema_migrations (number, name, oldest_binary) VALUES ({known} + 1, 'later', {known});
            PRAGMA user_version = {};",
            known + 1
        );
        connection.execute_batch(&script).unwrap();
    }
}

#[async_trait]
impl Harness for Later {
    async fn open(&self) -> Arc<dyn Store> {
        Harness::open(&self.0).await.close().await.unwrap();
        self.add();
        Arc::new(SqliteStore::open(self.0.settings()).await.unwrap())
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        self.0.reopen(store).await
    }

    async fn another(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }

    fn backup_path(&self) -> Option<PathBuf> {
        self.0.backup_path()
    }

    async fn open_backup(&self, store: &Arc<dyn Store>, path: &Path) -> Arc<dyn Store> {
        self.0.open_backup(store, path).await
    }
}

mod on_later_tables {
    portway_store::conformance_cases!(super::Later(crate::harness::Folder::new()));
}

#[tokio::test]
async fn a_closed_store_says_so_and_lets_go() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.close().await.unwrap();
    assert!(crate::harness::store(&store, vec![]).await.is_err());
    assert!(store.list_queues().await.is_err());
    let again: Result<SqliteStore, OpenError> = SqliteStore::open(folder.settings()).await;
    assert!(again.is_ok());
}
