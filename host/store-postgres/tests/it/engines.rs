//! Several engines on one database: what they store at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portway_model::{DestinationId, Key, Lane, MessageId};
use portway_store::{
    Action, ActionKind, DedupeWindow, Durability, MessageOutcome, NewMessage, ResultOutcome, Store as _,
    WriteBatch,
};
use portway_store_postgres::{PostgresSettings, PostgresStore};

use crate::harness::{Server, batch, message, own, register, sent};

pub(crate) async fn engine(server: &Server, name: &str) -> Arc<PostgresStore> {
    let settings = PostgresSettings { engine: name.into(), ..server.settings() };
    let store = PostgresStore::open(settings).await.unwrap();
    register(&store).await;
    Arc::new(store)
}

fn keyed(key: u64, body: &str) -> NewMessage {
    let mut message = message(body.to_owned());
    message.draft.dedupe = Key::new(&format!("key {key}"));
    message.dedupe = Some(DedupeWindow(Duration::from_secs(60)));
    message
}

#[tokio::test]
async fn marks_and_ends_belong_to_their_engine() {
    let server = Server::of_system();
    server.new_settings();
    let (one, two) = (engine(&server, "one").await, engine(&server, "two").await);
    let write = |mark| WriteBatch { mark, messages: vec![message("x")], ..batch(Durability::Strict) };
    one.write(write(71)).await.unwrap();
    two.write(write(72)).await.unwrap();
    assert!(one.find_mark(71).await.unwrap().is_some(), "the other one's write does not hide it");
    assert!(one.find_mark(72).await.unwrap().is_none());
    assert!(!own(&one, &[1]).await.unclean && !own(&two, &[2]).await.unclean);
    two.close().await.unwrap();
    drop((one, two));
    let (one, two) = (engine(&server, "one").await, engine(&server, "two").await);
    assert!(own(&one, &[1]).await.unclean, "it was killed");
    assert!(!own(&two, &[2]).await.unclean, "it ended in order");
}

#[tokio::test]
async fn what_one_registers_the_other_may_store_for() {
    let server = Server::of_system();
    server.new_settings();
    let (one, two) = (engine(&server, "one").await, engine(&server, "two").await);
    let topology = portway_store::Topology {
        now: crate::harness::NOW,
        interfaces: vec![portway_store::Registration {
            name: "new".into(),
            destinations: vec!["w".into()],
            ..Default::default()
        }],
    };
    let (interface, destinations) = two.register(&topology).await.unwrap().interfaces.remove(0);
    let mut message = message("x");
    message.interface = interface;
    message.deliveries.truncate(1);
    message.deliveries[0].destination = destinations[0];
    one.write(WriteBatch { messages: vec![message], ..batch(Durability::Strict) }).await.unwrap();
    assert_eq!(two.destinations_with_work().await.unwrap(), destinations);
}

#[tokio::test]
async fn of_two_engines_with_the_same_keys_one_stores_and_the_other_finds_duplicates() {
    let server = Server::of_system();
    server.new_settings();
    let (one, two) = (engine(&server, "one").await, engine(&server, "two").await);
    for round in 0..20 {
        let keys = || (0..50).map(move |n| round * 50 + n);
        let forth = keys().map(|key| keyed(key, "same")).collect();
        let back = keys().rev().map(|key| keyed(key, "same")).collect();
        let write = |messages| WriteBatch { messages, ..batch(Durability::Relaxed) };
        let (forth, back) = tokio::join!(one.write(write(forth)), two.write(write(back)));
        let all = [forth.unwrap().messages, back.unwrap().messages].concat();
        let stored =
            all.iter().filter(|outcome| matches!(outcome, MessageOutcome::Stored { conflict: None, .. }));
        assert_eq!(stored.count(), 50, "round {round}");
    }
}

/// Everything at once: keys that collide, results, operators, partitions, floors, a long report.
#[tokio::test]
async fn everything_at_once_without_an_error() {
    let server = Server::of_system();
    server.new_settings();
    let engines =
        [engine(&server, "one").await, engine(&server, "two").await, engine(&server, "three").await];
    let done = Arc::new(AtomicBool::new(false));
    let mut workers = tokio::task::JoinSet::new();
    for (number, store) in engines.iter().cloned().enumerate() {
        let done = Arc::clone(&done);
        workers.spawn(async move {
            let mut stored = 0;
            for round in 0..40_u64 {
                let messages =
                    (0..30).map(|n| keyed((round * 7 + n * (number as u64 + 1)) % 200, "body")).collect();
                // The results of everybody's messages, at one destination each, and some of the same ones.
                let newest = store
                    .read_lane(DestinationId(number as u32 + 1), Lane::FIRST, MessageId::ZERO, 40)
                    .await
                    .unwrap();
                let results =
                    newest.iter().map(|pending| sent(pending.message.0, number as u32 + 1)).collect();
                let actions = newest.iter().rev().take(3).map(|pending| Action {
                    message: pending.message,
                    destination: None,
                    kind: ActionKind::Resend { keep_lane: false },
                    author: "ann".into(),
                    reason: String::new(),
                    request: None,
                });
                let write = WriteBatch {
                    messages,
                    results,
                    actions: actions.collect(),
                    ..batch(Durability::Relaxed)
                };
                let outcome = store.write(write).await.unwrap();
                stored += outcome.messages.len();
                assert!(outcome.results.iter().all(|result| matches!(result, ResultOutcome::Applied(_))));
                if round % 8 == 0 {
                    store.maintain(Duration::ZERO).await.unwrap();
                }
            }
            done.store(true, Ordering::SeqCst);
            stored
        });
    }
    let reader = Arc::clone(&engines[0]);
    let report = tokio::spawn(async move {
        while !done.load(Ordering::SeqCst) {
            reader.list_queues().await.unwrap();
            reader
                .list_messages(&portway_store::ListMessages { limit: 500, ..Default::default() })
                .await
                .unwrap();
        }
    });
    let stored: usize = workers.join_all().await.into_iter().sum();
    report.await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM messages"), stored.to_string());
    // The status of a message is what its deliveries say.
    let wrong = "SELECT count(*) FROM messages m WHERE m.status <> 3 AND m.status <> CASE
        WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 0) THEN 0
        WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 3) THEN 2 ELSE 1 END";
    assert_eq!(server.sql(wrong), "0");
}
