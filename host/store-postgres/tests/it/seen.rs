//! Engines that are gone for long are forgotten, and none whose mark could still be asked for.

use std::time::Duration;

use portway_store::{ErrorKind, Store as _};
use portway_store_postgres::PostgresStore;

use crate::engines::engine;
use crate::harness::{Server, batch, message, own, store};

const TODAY: &str = "floor(extract(epoch FROM clock_timestamp()) / 86400)::int4";

/// The first pass of a process over the names.
async fn pass(server: &Server) -> PostgresStore {
    let opened = PostgresStore::open(server.settings()).await.unwrap();
    opened.maintain(Duration::ZERO).await.unwrap();
    opened
}

fn set_seen(server: &Server, engine: &str, days_ago: u32) {
    server.sql(&format!("UPDATE last_write SET seen_day = {TODAY} - {days_ago} WHERE engine = '{engine}'"));
}

fn names(server: &Server, table: &str) -> String {
    server.sql(&format!("SELECT string_agg(engine, ',' ORDER BY engine) FROM {table}"))
}

#[tokio::test]
async fn who_was_not_there_for_long_is_forgotten_and_nobody_else() {
    let server = Server::of_system();
    drop(server.open().await);
    for (number, name) in ["four", "long gone", "lately", "two"].into_iter().enumerate() {
        let other = engine(&server, name).await;
        own(&other, &[number as u32 + 2]).await;
        other.close().await.unwrap();
    }
    // The time of those that nobody looked at before begins now.
    drop(pass(&server).await);
    assert_eq!(server.sql(&format!("SELECT count(*) FROM last_write WHERE seen_day = {TODAY}")), "5");
    set_seen(&server, "long gone", 51);
    set_seen(&server, "lately", 50);
    set_seen(&server, "two", 51);
    drop(pass(&server).await);
    assert_eq!(names(&server, "last_write"), "four,lately,one");
    // The newest epoch is that of the last claim: epochs go on from there.
    assert_eq!(names(&server, "engines"), "four,lately,two");
    let epoch: u64 = server.sql("SELECT max(epoch) FROM engines").parse().unwrap();
    let opened = pass(&server).await;
    assert!(own(&opened, &[3, 5]).await.epoch.0 > epoch);
    drop(opened);
    drop(pass(&server).await);
    assert_eq!(names(&server, "engines"), "four,lately,one", "its epoch is not the newest any more");
}

#[tokio::test]
async fn who_is_alive_is_seen_and_stays_however_long_nobody_looked() {
    let server = Server::of_system();
    drop(server.open().await);
    let other = engine(&server, "two").await;
    let tenure = own(&other, &[1]).await;
    store(&other, vec![message("a")]).await.unwrap();
    set_seen(&server, "two", 500);
    drop(pass(&server).await);
    let seen = server.sql(&format!("SELECT {TODAY} - seen_day FROM last_write WHERE engine = 'two'"));
    assert_eq!(seen, "0");
    assert_eq!(names(&server, "engines"), "two");
    let result = crate::harness::sent(1, 1);
    let result = portway_store::DeliveryResult { epoch: tenure.epoch, ..result };
    let write =
        portway_store::WriteBatch { results: vec![result], ..batch(portway_store::Durability::Strict) };
    let outcome = other.write(write).await.unwrap();
    assert!(matches!(outcome.results[..], [portway_store::ResultOutcome::Applied(_)]));
}

#[tokio::test]
async fn an_engine_that_was_forgotten_while_it_was_away_does_not_take_its_mark_for_not_stored() {
    let server = Server::of_system();
    drop(server.open().await);
    let other = engine(&server, "two").await;
    let write = batch(portway_store::Durability::Strict);
    let mark = write.mark;
    other.write(portway_store::WriteBatch { messages: vec![message("a")], ..write }).await.unwrap();
    assert!(other.find_mark(mark).await.unwrap().is_some());
    // Its session is gone, and the network with it, for longer than anybody waits.
    server.sql(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'portway two'",
    );
    set_seen(&server, "two", 51);
    drop(pass(&server).await);
    assert_eq!(names(&server, "last_write"), "one");
    let error = other.find_mark(mark).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fatal, "{error}");
    // What it stores from now on is known again.
    store(&other, vec![message("b")]).await.unwrap();
    assert!(other.find_mark(mark).await.unwrap().is_none());
}
