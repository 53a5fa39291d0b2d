//! A server that goes away: every call says so in time, nothing acknowledged is lost, all resumes unaided.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use portway_model::{DestinationId, Lane, MessageId};
use portway_store::{Durability, ErrorKind, MessageOutcome, Store, StoreError, WriteBatch};
use portway_store_postgres::{PostgresSettings, PostgresStore};

use crate::harness::{Server, batch, message, register, sent, store};

fn kind<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> ErrorKind {
    answer.unwrap_err().kind()
}

async fn waiting(store: &PostgresStore) -> Vec<u64> {
    let pending = store.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 500).await.unwrap();
    pending.iter().map(|pending| pending.message.0).collect()
}

#[tokio::test]
async fn while_the_server_is_away_every_call_says_so_and_then_all_goes_on() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("before")]).await.unwrap();
    assert_eq!(waiting(&opened).await, [1], "a session for reading is there");
    server.cluster.stop_hard().unwrap();
    let begun = Instant::now();
    assert_eq!(kind(store(&opened, vec![message("not stored")]).await), ErrorKind::Unavailable);
    assert_eq!(kind(opened.find_mark(1).await), ErrorKind::Unavailable);
    assert_eq!(kind(opened.list_queues().await), ErrorKind::Unavailable);
    assert_eq!(kind(opened.load_messages(&[MessageId(1)]).await), ErrorKind::Unavailable);
    assert_eq!(kind(opened.maintain(Duration::ZERO).await), ErrorKind::Unavailable);
    assert_eq!(
        kind(
            opened
                .expire(&portway_store::Expiry {
                    now: crate::harness::NOW,
                    aged_to: crate::harness::NOW,
                    limit: 1
                })
                .await
        ),
        ErrorKind::Unavailable
    );
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.cluster.start_again().unwrap();
    let outcome = store(&opened, vec![message("after")]).await.unwrap();
    let [MessageOutcome::Stored { id, conflict: None }] = outcome.messages[..] else { panic!("{outcome:?}") };
    assert!(id > MessageId(1), "numbers rise, with a gap perhaps");
    assert_eq!(waiting(&opened).await, [1, id.0]);
    opened.maintain(Duration::ZERO).await.unwrap();
    let results = vec![sent(1, 1)];
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert_eq!(waiting(&opened).await, [id.0]);
}

/// What was stored without a flush may be gone with the server, and is still in hand.
#[tokio::test]
async fn a_number_that_a_server_forgot_is_not_given_again() {
    let server = Server::of_system();
    let one = server.open().await;
    let outcome = store(&one, vec![message("flushed")]).await.unwrap();
    let [MessageOutcome::Stored { id: flushed, .. }] = outcome.messages[..] else { panic!("{outcome:?}") };
    let batch = WriteBatch { messages: vec![message("not flushed")], ..batch(Durability::Relaxed) };
    let outcome = one.write(batch).await.unwrap();
    let [MessageOutcome::Stored { id: in_hand, .. }] = outcome.messages[..] else { panic!("{outcome:?}") };
    server.cluster.stop_hard().unwrap();
    server.cluster.start_again().unwrap();
    // As if the server had lost it with all that it had not flushed.
    server.sql(&format!("DELETE FROM messages WHERE id > {0}", flushed.0));
    server.sql(&format!("SELECT setval('message_ids', {0})", flushed.0));
    let two = PostgresStore::open(PostgresSettings::new(server.url(), "two")).await.unwrap();
    register(&two).await;
    for (opened, text) in [(&two, "by another"), (&one, "by the same")] {
        let outcome = store(opened, vec![message(text)]).await.unwrap();
        let [MessageOutcome::Stored { id, .. }] = outcome.messages[..] else { panic!("{outcome:?}") };
        assert!(id > in_hand, "{text}: {id:?}");
    }
    let given = server.sql("SELECT last_value FROM message_ids");
    server
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'portway%'");
    store(&one, vec![message("later")]).await.unwrap();
    let after: u64 = server.sql("SELECT last_value FROM message_ids").parse().unwrap();
    assert_eq!(after, given.parse::<u64>().unwrap() + 1, "once a start of the server");
}

#[tokio::test]
async fn sessions_that_an_administrator_ends_are_begun_anew_unnoticed() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("before")]).await.unwrap();
    assert_eq!(waiting(&opened).await, [1]);
    server
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'portway%'");
    store(&opened, vec![message("after")]).await.unwrap();
    assert_eq!(waiting(&opened).await, [1, 2]);
}

#[tokio::test]
async fn a_server_that_was_stopped_hard_has_all_that_was_flushed() {
    let server = Server::of_system();
    let opened = server.open().await;
    let mut acknowledged = 0;
    for round in 0..5 {
        for _ in 0..10 {
            let outcome = store(&opened, vec![message(format!("{round}"))]).await.unwrap();
            acknowledged += outcome.messages.len();
        }
        server.cluster.stop_hard().unwrap();
        server.cluster.start_again().unwrap();
    }
    assert_eq!(waiting(&opened).await.len(), acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_hard_under_load_loses_nothing_and_doubles_nothing() {
    let server = Arc::new(Server::of_system());
    let opened = server.open().await;
    let done = Arc::new(AtomicBool::new(false));
    let (breaker, ended) = (Arc::clone(&server), Arc::clone(&done));
    let breaking = std::thread::spawn(move || {
        for round in 0..4 {
            std::thread::park_timeout(Duration::from_millis(150 + 40 * round));
            breaker.cluster.stop_hard().unwrap();
            breaker.cluster.start_again().unwrap();
        }
        ended.store(true, Ordering::SeqCst);
    });
    let (mut stored, mut broken, mut tries) = (0, 0, 0);
    while !done.load(Ordering::SeqCst) || tries < 10 {
        tries += 1;
        let write = WriteBatch { messages: vec![message("x"), message("y")], ..batch(Durability::Strict) };
        let mark = write.mark;
        match opened.write(write).await {
            Ok(outcome) => stored += outcome.messages.len(),
            Err(error) if error.kind() == ErrorKind::Unavailable => broken += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
                let found = loop {
                    match opened.find_mark(mark).await {
                        Ok(found) => break found,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
                    }
                };
                stored += found.map_or(0, |outcome| outcome.messages.len());
                broken += 1;
            }
        }
    }
    breaking.join().unwrap();
    assert!(broken > 0 && stored > 20, "{broken} of {tries} broke, {stored} stored");
    assert_eq!(server.sql("SELECT count(*) FROM messages"), stored.to_string());
    assert_eq!(server.sql("SELECT count(*) FROM deliveries"), (stored * 3).to_string());
}

/// Between a store and its server; can cut a connection when a text goes by.
struct Relay {
    port: u16,
    cut: Arc<Cut>,
}

#[derive(Default)]
struct Cut {
    server: AtomicU16,
    /// Cut before the server sees a COMMIT.
    before_commit: AtomicBool,
    /// Let it through, and cut when the answer comes back.
    after_commit: AtomicBool,
    /// What the server says next is an answer that is lost.
    lose_answer: AtomicBool,
}

impl Relay {
    fn start(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(Cut::default());
        cut.server.store(server, Ordering::SeqCst);
        let shared = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let cut = Arc::clone(&shared);
                let server = TcpStream::connect(("127.0.0.1", cut.server.load(Ordering::SeqCst)));
                let (Ok(client), Ok(server)) = (client, server) else { continue };
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let also = Arc::clone(&cut);
                std::thread::spawn(move || forward(client, server, &cut));
                std::thread::spawn(move || answer(back.0, back.1, &also));
            }
        });
        Relay { port, cut }
    }
}

/// From the store to the server.
fn forward(mut client: TcpStream, mut server: TcpStream, cut: &Cut) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = client.read(&mut bytes) {
        let is_commit = bytes[..read].windows(6).any(|text| text == b"COMMIT");
        if is_commit && cut.before_commit.swap(false, Ordering::SeqCst) {
            break;
        }
        if is_commit && cut.after_commit.swap(false, Ordering::SeqCst) {
            cut.lose_answer.store(true, Ordering::SeqCst);
        }
        if server.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

/// From the server to the store.
fn answer(mut server: TcpStream, mut client: TcpStream, cut: &Cut) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = server.read(&mut bytes) {
        if cut.lose_answer.swap(false, Ordering::SeqCst) || client.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

async fn behind(relay: &Relay, server: &Server) -> PostgresStore {
    let settings = server.new_settings();
    let url = settings.url.replace(&format!(":{}/", server.cluster.port()), &format!(":{}/", relay.port));
    let store = PostgresStore::open(PostgresSettings { url, ..settings }).await.unwrap();
    register(&store).await;
    store
}

#[tokio::test]
async fn a_connection_that_dies_in_commit_leaves_a_mark_that_tells() {
    let server = Server::of_system();
    let relay = Relay::start(server.cluster.port());
    let opened = behind(&relay, &server).await;
    store(&opened, vec![message("first")]).await.unwrap();

    relay.cut.after_commit.store(true, Ordering::SeqCst);
    let write = WriteBatch { messages: vec![message("committed")], ..batch(Durability::Strict) };
    let mark = write.mark;
    assert_eq!(kind(opened.write(write).await), ErrorKind::Unknown);
    let found = opened.find_mark(mark).await.unwrap().unwrap();
    assert!(matches!(found.messages[..], [MessageOutcome::Stored { id: MessageId(2), .. }]), "{found:?}");
    assert_eq!(waiting(&opened).await, [1, 2]);

    relay.cut.before_commit.store(true, Ordering::SeqCst);
    let write = WriteBatch { messages: vec![message("not committed")], ..batch(Durability::Strict) };
    let mark = write.mark;
    assert_eq!(kind(opened.write(write).await), ErrorKind::Unknown);
    assert!(opened.find_mark(mark).await.unwrap().is_none());
    assert_eq!(waiting(&opened).await, [1, 2]);
    store(&opened, vec![message("next")]).await.unwrap();
    assert_eq!(waiting(&opened).await.len(), 3);
}

#[tokio::test]
async fn a_write_whose_caller_went_away_leaves_nothing_half_done() {
    let server = Server::of_system();
    let opened = server.open().await;
    for wait_us in [50, 200, 500, 1_000, 2_000] {
        let write = store(&opened, (0..50).map(|_| message("perhaps")).collect());
        let _ = tokio::time::timeout(Duration::from_micros(wait_us), write).await;
        store(&opened, vec![message("surely")]).await.unwrap();
    }
    let waiting = waiting(&opened).await.len();
    assert_eq!(waiting % 50, 5, "whole batches or none: {waiting}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_in_time() {
    // It takes connections and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ann@{}/silent", listener.local_addr().unwrap());
    let settings =
        PostgresSettings { connect_max: Duration::from_millis(300), ..PostgresSettings::new(url, "one") };
    let begun = Instant::now();
    let Err(error) = PostgresStore::open(settings).await else { panic!("it opened") };
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended() {
    let server = Server::of_system();
    let settings = PostgresSettings { statement_max: Duration::from_secs(1), ..server.new_settings() };
    let opened = PostgresStore::open(settings).await.unwrap();
    register(&opened).await;
    store(&opened, vec![message("first")]).await.unwrap();
    let mut holder = Holder::new(&server, "LOCK TABLE last_write IN ACCESS EXCLUSIVE MODE");
    let begun = Instant::now();
    assert_eq!(kind(store(&opened, vec![message("blocked")]).await), ErrorKind::Unavailable);
    assert!(begun.elapsed() < Duration::from_secs(8));
    holder.let_go();
    store(&opened, vec![message("after")]).await.unwrap();
    assert_eq!(waiting(&opened).await.len(), 2);
}

#[tokio::test]
async fn a_turn_that_was_waited_for_too_long_is_no_end_of_storing() {
    let server = Server::of_system();
    let settings = PostgresSettings { statement_max: Duration::from_secs(1), ..server.new_settings() };
    let opened = PostgresStore::open(settings).await.unwrap();
    register(&opened).await;
    // As another engine that is alone, and for long.
    let alone = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ': retention', 0))";
    let mut holder = Holder::new(&server, alone);
    assert_eq!(kind(store(&opened, vec![message("waited")]).await), ErrorKind::Unavailable);
    holder.let_go();
    store(&opened, vec![message("after")]).await.unwrap();
    assert_eq!(waiting(&opened).await.len(), 1);
}

/// Somebody who holds a lock until told otherwise, in a transaction of the server's own client.
pub(crate) struct Holder {
    client: std::process::Child,
}

impl Holder {
    pub(crate) fn new(server: &Server, statement: &str) -> Holder {
        let mut client = server.cluster.client().unwrap();
        let mut client =
            client.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let schema = server.schema();
        let begin = format!("SET search_path = {schema};\nBEGIN;\n{statement};\nSELECT 'held';\n");
        client.stdin.as_mut().unwrap().write_all(begin.as_bytes()).unwrap();
        let mut said = Vec::new();
        let mut byte = [0];
        while !said.ends_with(b"held\n") {
            assert_eq!(client.stdout.as_mut().unwrap().read(&mut byte).unwrap(), 1, "it ended");
            said.extend(byte);
        }
        Holder { client }
    }

    /// Ends its transaction in order.
    pub(crate) fn commit(&mut self) {
        self.end(b"COMMIT;\n");
    }

    /// The transaction is over when this returns: a client that only went away is missed by the server later.
    pub(crate) fn let_go(&mut self) {
        self.end(b"ROLLBACK;\n");
    }

    fn end(&mut self, word: &[u8]) {
        if let Some(mut to_client) = self.client.stdin.take() {
            // If the server ended meanwhile, so did the client and the transaction.
            let _ = to_client.write_all(word);
        }
        self.client.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.let_go();
    }
}
