//! A standby that confirms each commit, and takes the place of its primary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portway_model::{DestinationId, Lane, MessageId};
use portway_store::{Durability, ErrorKind, MessageOutcome, News, Store as _, StoreError, WriteBatch};
use portway_store_postgres::{OpenError, PostgresSettings, PostgresStore};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};
use tokio::time::timeout;

use crate::harness::{batch, message, own, register, store};

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A primary and a standby that confirms its commits.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn start() -> Pair {
        Pair::of(&Programs::of_system().unwrap())
    }

    fn of(programs: &Programs) -> Pair {
        let primary = Cluster::start(programs, &ClusterSettings::default()).unwrap();
        let standby = primary.start_standby().unwrap();
        Pair { primary, standby }
    }

    /// Names both servers.
    fn settings(&self) -> PostgresSettings {
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", self.primary.port(), self.standby.port());
        let url = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write");
        PostgresSettings::new(url, "one")
    }

    fn fail_over(&self) {
        self.primary.stop_hard().unwrap();
        self.standby.promote().unwrap();
    }
}

async fn open(settings: PostgresSettings) -> PostgresStore {
    let opened = PostgresStore::open(settings).await.unwrap();
    register(&opened).await;
    opened
}

fn kind<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> ErrorKind {
    answer.unwrap_err().kind()
}

async fn waiting(store: &PostgresStore) -> Vec<u64> {
    let pending = store.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 5_000).await.unwrap();
    pending.iter().map(|pending| pending.message.0).collect()
}

fn id(outcome: &MessageOutcome) -> u64 {
    let MessageOutcome::Stored { id, .. } = outcome else { panic!("{outcome:?}") };
    id.0
}

/// Stores a message and tells its number, however often that has to be tried.
async fn surely(store: &PostgresStore) -> u64 {
    let trying = async {
        loop {
            let write = WriteBatch { messages: vec![message("x")], ..batch(Durability::Strict) };
            let mark = write.mark;
            let error = match store.write(write).await {
                Ok(outcome) => break id(&outcome.messages[0]),
                Err(error) => error,
            };
            if error.kind() == ErrorKind::Unknown
                && let Some(found) = found(store, mark).await
            {
                break found;
            }
        }
    };
    timeout(PATIENCE, trying).await.unwrap()
}

/// What became of an unknown commit.
async fn found(store: &PostgresStore, mark: u64) -> Option<u64> {
    loop {
        match store.find_mark(mark).await {
            Ok(found) => break found.map(|outcome| id(&outcome.messages[0])),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_after_a_failover_under_load() {
    let pair = Arc::new(Pair::start());
    let opened = open(pair.settings()).await;
    let (breaker, is_over) = (Arc::clone(&pair), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&is_over);
    let breaking = std::thread::spawn(move || {
        std::thread::park_timeout(Duration::from_millis(400));
        breaker.fail_over();
        ended.store(true, Ordering::SeqCst);
    });
    let mut acknowledged = Vec::new();
    let mut after = 0;
    while after < 20 {
        after += usize::from(is_over.load(Ordering::SeqCst));
        acknowledged.push(surely(&opened).await);
    }
    breaking.join().unwrap();
    assert!(acknowledged.len() > 40, "{}", acknowledged.len());
    let waiting = waiting(&opened).await;
    let lost: Vec<_> = acknowledged.iter().filter(|id| !waiting.contains(id)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(pair.standby.sql("SELECT count(*) FROM messages").unwrap(), acknowledged.len().to_string());
}

#[tokio::test]
async fn what_no_standby_has_is_not_answered_until_one_has_it() {
    for programs in [Programs::of_system().unwrap(), Programs::embedded().unwrap()] {
        not_answered_until_a_standby_has_it(&Pair::of(&programs)).await;
    }
}

async fn not_answered_until_a_standby_has_it(pair: &Pair) {
    let settings = PostgresSettings { statement_max: Duration::from_secs(1), ..pair.settings() };
    let opened = open(settings).await;
    store(&opened, vec![message("before")]).await.unwrap();
    pair.standby.stop_hard().unwrap();
    let write = WriteBatch { messages: vec![message("after")], ..batch(Durability::Strict) };
    let mark = write.mark;
    // The server's time-out of statements does not end its wait.
    let told = opened.write(write).await;
    assert_eq!(kind(told), ErrorKind::Unknown);
    // The primary has it: that is not enough.
    let told = opened.find_mark(mark).await;
    assert_eq!(kind(told), ErrorKind::Unavailable);
    pair.standby.start_again().unwrap();
    pair.primary.wait_until_synchronous().unwrap();
    assert_eq!(found(&opened, mark).await, Some(2));
    pair.fail_over();
    let next = surely(&opened).await;
    assert_eq!(waiting(&opened).await, [1, 2, next]);
}

#[tokio::test]
async fn a_primary_that_a_failover_left_behind_is_not_used_when_it_comes_back() {
    let pair = Pair::start();
    let opened = open(pair.settings()).await;
    own(&opened, &[1]).await;
    let before = surely(&opened).await;
    pair.fail_over();
    let after = surely(&opened).await;
    assert_eq!(timeout(PATIENCE, opened.news()).await.unwrap(), News::Lost);
    // It would take writes, and nobody has to confirm them.
    pair.primary.start_again().unwrap();
    pair.primary.stand_alone().unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'portway%'";
    pair.standby.sql(end).unwrap();
    let again = surely(&opened).await;
    assert_eq!(waiting(&opened).await, [before, after, again]);
    // Nor when it is the only one that answers.
    pair.standby.stop_hard().unwrap();
    let told = store(&opened, vec![message("nowhere")]).await;
    assert_eq!(kind(told), ErrorKind::Unavailable);
    let told = opened.list_queues().await;
    assert_eq!(kind(told), ErrorKind::Unavailable);
    assert_eq!(pair.primary.sql("SELECT count(*) FROM messages").unwrap(), "1");
    pair.standby.start_again().unwrap();
    let last = surely(&opened).await;
    assert_eq!(waiting(&opened).await, [before, after, again, last]);
    // One that starts while both take writes uses the newer.
    drop(opened);
    let opened = open(pair.settings()).await;
    assert_eq!(waiting(&opened).await, [before, after, again, last]);
}

#[tokio::test]
async fn a_primary_that_was_never_stopped_is_left_for_the_one_that_was_promoted() {
    let pair = Pair::start();
    let settings = PostgresSettings { statement_max: Duration::from_secs(1), ..pair.settings() };
    let opened = open(settings).await;
    own(&opened, &[1]).await;
    let before = surely(&opened).await;
    pair.standby.promote().unwrap();
    // The former one commits, and nobody confirms it.
    let after = surely(&opened).await;
    assert_eq!(waiting(&opened).await, [before, after]);
    assert_eq!(pair.standby.sql("SELECT count(*) FROM messages").unwrap(), "2");
    assert_eq!(timeout(PATIENCE, opened.news()).await.unwrap(), News::Lost);
}

#[tokio::test]
async fn another_database_at_the_same_address_is_not_used_by_a_store_that_is_open() {
    let programs = Programs::of_system().unwrap();
    let one = Cluster::start(&programs, &ClusterSettings::default()).unwrap();
    let distinct = ClusterSettings { is_distinct: true, ..ClusterSettings::default() };
    let other = Cluster::start(&programs, &distinct).unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", one.port(), other.port());
    let opened = open(PostgresSettings::new(url, "one")).await;
    surely(&opened).await;
    one.stop_hard().unwrap();
    let told = store(&opened, vec![message("nowhere")]).await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Unavailable, "{told}");
    assert_eq!(other.sql("SELECT to_regclass('messages') IS NULL").unwrap(), "t");
    one.start_again().unwrap();
    surely(&opened).await;
}

#[tokio::test]
async fn notes_say_whether_a_standby_has_what_is_acknowledged() {
    let pair = Pair::start();
    let note = |settings: PostgresSettings| async move { open(settings).await.notes().join("\n") };
    let notes = note(pair.settings()).await;
    assert!(!notes.contains("standby"), "{notes}");
    pair.primary.sql("ALTER SYSTEM SET synchronous_commit = local").unwrap();
    pair.primary.sql("SELECT pg_reload_conf()").unwrap();
    let notes = note(PostgresSettings { engine: "two".into(), ..pair.settings() }).await;
    assert!(notes.contains("synchronous_commit = local") && notes.contains("standby"), "{notes}");
    pair.primary.stand_alone().unwrap();
    let notes = note(PostgresSettings { engine: "three".into(), ..pair.settings() }).await;
    assert!(notes.contains("no synchronous standby"), "{notes}");
}

#[tokio::test]
async fn of_several_servers_none_of_which_accepts_writes_the_one_that_is_away_is_told() {
    let pair = Pair::start();
    pair.primary.stop_hard().unwrap();
    let Err(error) = PostgresStore::open(pair.settings()).await else { panic!("it opened") };
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&format!("127.0.0.1:{},127.0.0.1:{}", pair.primary.port(), pair.standby.port())));
}
