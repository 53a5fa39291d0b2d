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
