//! The suite every store passes, on the in-memory store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use portway_store::Store;
use portway_store::conformance::Harness;
use portway_store::memory::MemoryStore;

/// One store, kept here as what it is.
#[derive(Default)]
struct Memory {
    store: Mutex<MemoryStore>,
}

#[async_trait]
impl Harness for Memory {
    async fn open(&self) -> Arc<dyn Store> {
        let mut store = self.store.lock().unwrap();
        *store = MemoryStore::default();
        Arc::new(store.clone())
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        let store = self.store.lock().unwrap();
        store.crash();
        Arc::new(store.clone())
    }

    async fn another(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.store.lock().unwrap().another()))
    }

    fn backup_path(&self) -> Option<PathBuf> {
        Some(PathBuf::from("backup"))
    }

    async fn open_backup(&self, _store: &Arc<dyn Store>, path: &Path) -> Arc<dyn Store> {
        Arc::new(self.store.lock().unwrap().open_backup(path).unwrap())
    }
}

portway_store::conformance_cases!(Memory::default());
