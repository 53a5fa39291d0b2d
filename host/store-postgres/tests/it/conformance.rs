//! The suite every store passes, on the PostgreSQL of this machine and on version 18.

mod of_system {
    portway_store::conformance_cases!(crate::harness::Server::of_system());
}

mod embedded {
    portway_store::conformance_cases!(crate::harness::Server::embedded());
}

#[tokio::test]
async fn a_closed_store_says_so_and_lets_go() {
    use portway_store::Store as _;

    let server = crate::harness::Server::of_system();
    let store = server.open().await;
    store.close().await.unwrap();
    assert!(crate::harness::store(&store, vec![]).await.is_err());
    assert!(store.list_queues().await.is_err());
    let again = portway_store_postgres::PostgresStore::open(server.settings()).await;
    assert!(again.is_ok());
}
