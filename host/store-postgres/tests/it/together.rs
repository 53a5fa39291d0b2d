//! Two engines that look after the same old messages at once: nothing is lost, nobody is told of the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use portway_model::{InterfaceId, MessageId};
use portway_store::{Durability, MoveRetention, ResultOutcome, Store as _, WriteBatch};
use portway_store_postgres::{PostgresSettings, PostgresStore};
use tokio::task::JoinSet;

use crate::engines::engine;
use crate::harness::{NOW, Server, batch, message, sent, store};
use crate::outage::Holder;
use crate::retention::{expire_once, filled, set_back, set_back_over, shorten};

async fn another(server: &Server) -> Arc<PostgresStore> {
    let settings = PostgresSettings { engine: "two".into(), ..server.settings() };
    Arc::new(PostgresStore::open(settings).await.unwrap())
}

/// Whole passes, until nothing old is left to any of them.
async fn expire_all(store: &PostgresStore, is_done: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if !expire_once(store).await.goes_on && is_done() {
            return;
        }
    }
    panic!("there is always more that is old")
}

#[tokio::test]
async fn two_that_expire_at_once_remove_what_is_old_and_hold_what_is_needed() {
    let server = Arc::new(Server::of_system());
    for round in 0..3 {
        let one = Arc::new(server.open().await);
        filled(&one).await;
        set_back_over(&server, 5);
        let two = another(&server).await;
        let left = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
            AND relkind = 'r' AND relname ~ '_t(7|21|49)_\\d{8}$'
            AND to_date(right(relname, 8), 'YYYYMMDD') < now() - interval '54 days'";
        let mut engines = JoinSet::new();
        for (name, store) in [("one", &one), ("two", &two)] {
            let (store, server) = (Arc::clone(store), Arc::clone(&server));
            engines.spawn(async move {
                expire_all(&store, || server.sql(left) == "0").await;
                name
            });
        }
        // Meanwhile the world goes on.
        for _ in 0..20 {
            store(&one, vec![message("new")]).await.unwrap();
            store(&two, vec![message("new")]).await.unwrap();
        }
        engines.join_all().await;
        let needed =
            server.sql("SELECT string_agg(id || ' ' || tier, ',' ORDER BY id) FROM messages WHERE id <= 300");
        assert_eq!(needed, "7 0,8 0", "round {round}");
        assert_eq!(server.sql("SELECT count(*) FROM messages WHERE id > 300"), "40", "round {round}");
        assert_eq!(server.sql("SELECT count(*) FROM deliveries WHERE tier = 0"), "6", "round {round}");
        assert_eq!(server.sql("SELECT count(*) FROM bodies"), "42", "round {round}");
        assert_eq!(server.sql("SELECT count(*) FROM sealed_periods"), "0", "round {round}");
        one.close().await.unwrap();
        two.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_period_that_another_removed_and_somebody_made_again_is_left_alone() {
    let server = Server::of_system();
    let one = server.open().await;
    store(&one, (0..3).map(|_| message("x")).collect()).await.unwrap();
    set_back(&server);
    // Decided by an engine that is gone; a third one is about to remove its partitions.
    server.sql(
        "INSERT INTO sealed_periods (tier, from_day, to_day, going)
        SELECT 49, floor(extract(epoch FROM now()) / 86400)::int - 60,
            floor(extract(epoch FROM now()) / 86400)::int - 53, true;
        CREATE TABLE kept AS SELECT * FROM messages; DELETE FROM messages",
    );
    let about_to = 3;
    for _ in 0..about_to - 1 {
        assert!(expire_once(&one).await.goes_on);
    }
    assert_eq!(server.sql("SELECT count(*) FROM sealed_periods"), "1", "it is not removed yet");
    // Another did so and forgot the period; then messages that are needed came there again.
    server.sql("DELETE FROM sealed_periods; INSERT INTO messages SELECT * FROM kept");
    for _ in 0..50 {
        expire_once(&one).await;
    }
    let found = one.get_message(MessageId(1)).await.unwrap();
    assert!(found.is_some(), "it is pending");
    assert_eq!(one.load_messages(&[MessageId(3)]).await.unwrap()[0].body, "x");
}

#[tokio::test]
async fn two_that_move_messages_at_once_move_each_once_while_results_arrive() {
    let server = Server::of_system();
    server.new_settings();
    let (one, two) = (engine(&server, "one").await, engine(&server, "two").await);
    store(&one, (0..600).map(|_| message("x")).collect()).await.unwrap();
    shorten(&one).await;
    let (moved, settled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut movers = JoinSet::new();
    for store in [&one, &two] {
        let (store, moved, settled) = (Arc::clone(store), Arc::clone(&moved), Arc::clone(&settled));
        movers.spawn(async move {
            loop {
                let step = MoveRetention { interface: InterfaceId(1), age_now: NOW, now: NOW, limit: 20 };
                let step = store.move_retention(&step).await.unwrap();
                moved.fetch_add(step.moved, Ordering::SeqCst);
                let expiry = portway_store::Expiry { now: NOW, aged_to: NOW, limit: 100 };
                store.expire(&expiry).await.unwrap();
                if step.state.change.is_none() && settled.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
    }
    for n in 1..=600_u64 {
        let results = (1..=3).map(|to| sent(n, to)).collect();
        let writer = if n % 2 == 0 { &one } else { &two };
        let outcome = writer.write(WriteBatch { results, ..batch(Durability::Relaxed) }).await.unwrap();
        assert!(outcome.results.iter().all(|outcome| matches!(outcome, ResultOutcome::Applied(_))));
    }
    settled.store(true, Ordering::SeqCst);
    movers.join_all().await;
    assert_eq!(moved.load(Ordering::SeqCst), 600, "each once");
    assert_eq!(server.sql("SELECT DISTINCT tier || ' ' || status FROM messages"), "7 1");
    assert_eq!(server.sql("SELECT DISTINCT tier || ' ' || state FROM deliveries"), "7 1");
}

#[tokio::test]
async fn who_finds_another_at_old_messages_leaves_them_to_it_and_does_not_wait() {
    let server = Server::of_system();
    let one = server.open().await;
    filled(&one).await;
    shorten(&one).await;
    // As a step of another engine does, which has not ended.
    let mut holder = Holder::new(
        &server,
        "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ': old messages', 0));
        SELECT count(*) FROM (SELECT 1 FROM deliveries FOR UPDATE) AS d",
    );
    let step = MoveRetention { interface: InterfaceId(1), age_now: NOW, now: NOW, limit: 20 };
    let moved = one.move_retention(&step).await.unwrap();
    assert!(moved.moved == 0 && moved.state.change.is_some(), "{moved:?}");
    let expired = expire_once(&one).await;
    assert!(expired.messages == 0 && expired.goes_on, "{expired:?}");
    store(&one, vec![message("meanwhile")]).await.unwrap();
    holder.let_go();
    assert_eq!(one.move_retention(&step).await.unwrap().moved, 20);
}

/// The month in which what is 60 days old is held: nothing is held there, and another engine decided that it goes.
const HELD_MONTH_GOES: &str = "DO $$ DECLARE t text; a date := date_trunc('month', now() - interval '60 days'); BEGIN
    FOREACH t IN ARRAY ARRAY['bodies', 'attempts', 'outputs', 'deliveries', 'messages'] LOOP
        EXECUTE format('CREATE TABLE %1$s_t0_%2$s PARTITION OF %1$s_t0 FOR VALUES FROM (%3$s) TO (%4$s)', t,
            to_char(a, 'YYYYMMDD'), a - date '1970-01-01', (a + interval '1 month')::date - date '1970-01-01');
    END LOOP;
    INSERT INTO sealed_periods (tier, from_day, to_day, going)
        VALUES (0, a - date '1970-01-01', (a + interval '1 month')::date - date '1970-01-01', true);
    END $$";

#[tokio::test]
async fn nothing_is_held_where_another_is_removing_an_empty_month() {
    let server = Server::of_system();
    let one = server.open().await;
    filled(&one).await;
    set_back(&server);
    let sealed = "SELECT count(*) FROM sealed_periods WHERE tier = 49
        AND from_day = floor(extract(epoch FROM now()) / 86400)::int - 60";
    while server.sql(sealed) == "0" {
        assert!(expire_once(&one).await.goes_on);
    }
    server.sql(HELD_MONTH_GOES);
    let is_done = || server.sql("SELECT count(*) FROM sealed_periods") == "0";
    expire_all(&one, is_done).await;
    let needed = server.sql("SELECT string_agg(id || ' ' || tier, ',' ORDER BY id) FROM messages");
    assert_eq!(needed, "7 0,8 0");
    assert_eq!(server.sql("SELECT count(*) FROM deliveries WHERE tier = 0"), "6");
    assert_eq!(server.sql("SELECT count(*) FROM bodies"), "2");
}
