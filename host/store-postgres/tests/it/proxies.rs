//! A real proxy that lends sessions: for good it is as good as the server, by transaction it is refused.

use portway_model::{DestinationId, GroupId, Lane, MessageId};
use portway_store::{Durability, Store as _, WriteBatch};
use portway_store_postgres::{OpenError, PostgresSettings, PostgresStore};
use portway_testkit_postgres::{Lending, Pooler};

use crate::harness::{Server, batch, message, own, register, sent, store};

#[tokio::test]
async fn a_real_proxy_that_lends_sessions_by_transaction_is_refused() {
    let server = Server::of_system();
    for lending in [Lending::Transaction, Lending::Statement] {
        let proxy = Pooler::start(&server.cluster, lending).unwrap();
        let Err(error) = PostgresStore::open(PostgresSettings::new(proxy.url(), "one")).await else {
            panic!("it opened")
        };
        assert!(matches!(error, OpenError::Proxy { .. }), "{lending:?}: {error:?}");
        assert!(error.to_string().contains("is a proxy that gives each transaction another session"));
        assert!(error.hint().contains("pool by session"), "{}", error.hint());
    }
    assert_eq!(server.cluster.sql("SELECT to_regclass('messages') IS NULL").unwrap(), "t");
}

#[tokio::test]
async fn a_proxy_that_lends_sessions_for_good_is_as_good_as_the_server() {
    let server = Server::of_system();
    let proxy = Pooler::start(&server.cluster, Lending::Session).unwrap();
    let open = |name: &str| PostgresStore::open(PostgresSettings::new(proxy.url(), name));
    let opened = open("one").await.unwrap();
    register(&opened).await;
    own(&opened, &[1]).await;
    store(&opened, vec![message("a"), message("b")]).await.unwrap();
    let write = WriteBatch { results: vec![sent(1, 1)], ..batch(Durability::Strict) };
    let mark = write.mark;
    opened.write(write).await.unwrap();
    assert!(opened.find_mark(mark).await.unwrap().is_some());
    // The name and what is owned belong to the session behind the proxy.
    let other = open("two").await.unwrap();
    let refused = other.claim(&[GroupId(1)], crate::harness::NOW).await.unwrap();
    assert!(matches!(refused, portway_store::Claimed::Refused(_)), "{refused:?}");
    other.close().await.unwrap();
    server.cluster.stop_hard().unwrap();
    server.cluster.start_again().unwrap();
    let stored = async {
        while store(&opened, vec![message("c")]).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), stored).await.unwrap();
    let pending = opened.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 10).await.unwrap();
    assert_eq!(pending.len(), 2);
    drop(opened);
    // What a client leaves behind when it is gone is not lent to the next one.
    let again = open("one").await.unwrap();
    own(&again, &[1]).await;
    again.close().await.unwrap();
}
