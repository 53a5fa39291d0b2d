//! The suite every store passes, on the PostgreSQL of this machine and on version 18.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use portway_store::Store;
use portway_store::conformance::Harness;
use portway_store_postgres::PostgresStore;

use crate::harness::Server;

mod of_system {
    portway_store::conformance_cases!(crate::harness::Server::of_system());
}

mod embedded {
    portway_store::conformance_cases!(crate::harness::Server::embedded());
}

/// On tables that a newer program added to: a column each, with and without a value, a table, an index.
struct Later(Server);

const ADD: &str = "DO $$ DECLARE t text; BEGIN
    FOR t IN SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND c.relnamespace = current_schema()::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN later_text text,
            ADD COLUMN later_number bigint NOT NULL DEFAULT 7', t);
    END LOOP; END $$;
    CREATE TABLE later (id bigint PRIMARY KEY, text text);
    CREATE INDEX later_messages ON messages (later_number, id)";

#[async_trait]
impl Harness for Later {
    async fn open(&self) -> Arc<dyn Store> {
        Harness::open(&self.0).await.close().await.unwrap();
        self.0.sql(ADD);
        let known = portway_store_postgres::migrations().len();
        self.0.sql(&format!(
            "INSERT INTO schema_migrations (number, name, digest, oldest_binary)
            VALUES ({known} + 1, 'later', '', {known})"
        ));
        Arc::new(PostgresStore::open(self.0.settings()).await.unwrap())
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        self.0.reopen(store).await
    }

    async fn another(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        self.0.another(store).await
    }

    fn backup_path(&self) -> Option<PathBuf> {
        self.0.backup_path()
    }

    async fn open_backup(&self, store: &Arc<dyn Store>, path: &Path) -> Arc<dyn Store> {
        self.0.open_backup(store, path).await
    }
}

mod on_later_tables {
    portway_store::conformance_cases!(super::Later(crate::harness::Server::of_system()));
}

#[tokio::test]
async fn a_closed_store_says_so_and_lets_go() {
    let server = Server::of_system();
    let store = server.open().await;
    store.close().await.unwrap();
    assert!(crate::harness::store(&store, vec![]).await.is_err());
    assert!(store.list_queues().await.is_err());
    let again = PostgresStore::open(server.settings()).await;
    assert!(again.is_ok());
}
