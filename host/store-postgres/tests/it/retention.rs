//! Periods that go as a whole, and messages that move between tiers while they are used.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portway_model::{
    DestinationId, Failure, InterfaceId, Lane, MessageId, Quarantined, Retention, Tier, Timestamp,
};
use portway_store::{
    Action, ActionKind, ActionOutcome, ConfirmRetention, Durability, Expiry, MoveRetention, NewMessage,
    Registration, ResultOutcome, Settled, Store as _, Topology, WriteBatch,
};
use portway_store_postgres::PostgresStore;

use crate::harness::{NOW, Server, batch, blocked, message, own, sent, store};
use crate::outage::Holder;

/// Everything that was stored is older than any window by then.
const LATER: Timestamp = Timestamp(u64::MAX >> 2);

/// As if all there is was stored 60 days ago, by the clock of the database.
pub(crate) fn set_back(server: &Server) {
    set_back_over(server, 1);
}

/// The same, spread over some weeks before that.
pub(crate) fn set_back_over(server: &Server, weeks: u32) {
    server.sql(&format!(
        "DO $$ DECLARE t text; n int; w int; first int; BEGIN
        FOREACH t IN ARRAY ARRAY['bodies', 'attempts', 'outputs', 'deliveries', 'messages'] LOOP
            FOREACH n IN ARRAY ARRAY[7, 21, 49] LOOP
                FOR w IN 0..{weeks} - 1 LOOP
                    first := floor(extract(epoch FROM now()) / 86400)::int - 60 - 7 * w;
                    EXECUTE format('CREATE TABLE %1$s_t%2$s_%3$s PARTITION OF %1$s_t%2$s FOR VALUES FROM (%4$s)
                        TO (%5$s)', t, n, to_char(date '1970-01-01' + first, 'YYYYMMDD'), first, first + 7);
                END LOOP;
            END LOOP;
            EXECUTE format('UPDATE %s SET day = day - 60 - 7 * (%s %% {weeks})', t,
                CASE t WHEN 'messages' THEN 'id' ELSE 'message_id' END);
        END LOOP; END $$",
    ));
}

fn old_periods(server: &Server) -> String {
    server.sql(
        "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
        AND relname ~ ('_t49_' || to_char(now() AT TIME ZONE 'UTC' - interval '60 days', 'YYYYMMDD') || '$')",
    )
}

pub(crate) async fn expire(store: &PostgresStore) -> u64 {
    let mut messages = 0;
    for _ in 0..1_000 {
        let expired = expire_once(store).await;
        messages += expired.messages;
        if !expired.goes_on {
            return messages;
        }
    }
    panic!("there is always more that is old")
}

/// One step of an engine that finds everything old.
pub(crate) async fn expire_once(store: &PostgresStore) -> portway_store::Expired {
    store.expire(&Expiry { now: LATER, aged_to: NOW, limit: 100 }).await.unwrap()
}

/// Messages 1 to 300: all are sent but 7, which is quarantined at its first destination, and 8, which waits.
pub(crate) async fn filled(store_: &PostgresStore) {
    store(store_, (0..300).map(|_| message("x")).collect()).await.unwrap();
    let epoch = own(store_, &[1]).await.epoch;
    let quarantined = |n| portway_store::DeliveryResult {
        epoch,
        settled: Settled::Quarantined(Failure::new("bad", "no good")),
        ..sent(n, 1)
    };
    let all = (1..=300).filter(|n| *n != 8).flat_map(|n| (1..=3).map(move |to| (n, to)));
    let results = all.map(|(n, to)| if (n, to) == (7, 1) { quarantined(n) } else { sent(n, to) });
    let outcome =
        store_.write(WriteBatch { results: results.collect(), ..batch(Durability::Strict) }).await.unwrap();
    assert!(outcome.results.iter().all(|outcome| matches!(outcome, ResultOutcome::Applied(_))));
}

/// Messages of interface `a` are to be kept for one week from now on.
pub(crate) async fn shorten(store: &PostgresStore) {
    let destinations = ["x", "y", "z"].map(str::to_owned).to_vec();
    let retention = Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep };
    let interfaces = vec![Registration { name: "a".into(), destinations, retention }];
    store.register(&Topology { interfaces, now: NOW }).await.unwrap();
    let (author, reason) = ("ann".into(), "a test".into());
    let confirm = ConfirmRetention { interface: InterfaceId(1), now: NOW, author, reason };
    store.confirm_retention(&confirm).await.unwrap();
}

fn resend(message: u64) -> WriteBatch {
    let action = Action {
        message: MessageId(message),
        destination: None,
        kind: ActionKind::Resend { keep_lane: false },
        author: "ann".into(),
        reason: String::new(),
        request: None,
    };
    WriteBatch { actions: vec![action], ..batch(Durability::Strict) }
}

#[tokio::test]
async fn an_old_period_goes_as_a_whole_and_what_is_needed_is_held() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    set_back(&server);
    assert_eq!(old_periods(&server), "5");
    assert_eq!(expire(&opened).await, 298);
    assert_eq!(old_periods(&server), "0", "dropped");
    assert_eq!(server.sql("SELECT string_agg(id || ' ' || tier, ',' ORDER BY id) FROM messages"), "7 0,8 0");
    assert_eq!(server.sql("SELECT count(*) FROM deliveries WHERE tier = 0"), "6");
    assert_eq!(server.sql("SELECT count(*) FROM bodies"), "2");
    assert_eq!(server.sql("SELECT count(*) FROM sealed_periods"), "0");
    // What is held is delivered, and goes after that; so does its month once it is empty.
    let pending = opened.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 9).await.unwrap();
    assert_eq!(pending.len(), 1);
    let results = (1..=3).map(|to| sent(8, to)).collect();
    let outcome = opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert!(outcome.results.iter().all(|outcome| matches!(outcome, ResultOutcome::Applied(_))));
    assert_eq!(expire(&opened).await, 1);
    assert_eq!(opened.get_message(MessageId(8)).await.unwrap(), None);
    let outcome = opened.write(resend(7)).await.unwrap();
    assert!(matches!(&outcome.actions[..], [ActionOutcome::Done(changed)] if changed.len() == 3));
}

#[tokio::test]
async fn a_period_that_somebody_reads_goes_later_and_nothing_in_it_comes_back() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    set_back(&server);
    let mut report = Holder::new(&server, "SELECT count(*) FROM messages; SELECT count(*) FROM bodies");
    expire(&opened).await;
    assert_ne!(old_periods(&server), "0");
    let outcome = opened.write(resend(9)).await.unwrap();
    assert_eq!(outcome.actions, [ActionOutcome::NoMessage], "it is going");
    store(&opened, vec![message("y")]).await.unwrap();
    report.let_go();
    // The next process ends it.
    drop(opened);
    let opened = PostgresStore::open(server.settings()).await.unwrap();
    expire(&opened).await;
    assert_eq!(old_periods(&server), "0");
    assert_eq!(server.sql("SELECT count(*) FROM messages"), "3");
    assert_eq!(server.sql("SELECT count(*) FROM sealed_periods"), "0");
}

#[tokio::test]
async fn a_report_holds_up_no_step_of_a_removal() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    set_back(&server);
    let snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let all = "SELECT count(*) FROM messages; SELECT count(*) FROM bodies";
    let mut report = Holder::new(&server, &format!("{snapshot}; {all}"));
    // What has to be done beside it waits for a step. The second pass meets what the first one began.
    let mut longest = Duration::ZERO;
    for _ in 0..2 {
        loop {
            let begun = Instant::now();
            let expired = opened.expire(&Expiry { now: LATER, aged_to: NOW, limit: 100 }).await.unwrap();
            longest = longest.max(begun.elapsed());
            if !expired.goes_on {
                break;
            }
        }
    }
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    report.let_go();
    expire(&opened).await;
    assert_eq!(old_periods(&server), "0");
}

#[tokio::test]
async fn a_period_with_young_messages_stays() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    set_back(&server);
    // One in the middle was stored with another clock.
    server.sql("UPDATE messages SET stored_at = 9000000000000000000 WHERE id = 100");
    expire(&opened).await;
    assert_eq!(old_periods(&server), "5");
    assert!(opened.get_message(MessageId(100)).await.unwrap().is_some());
    let outcome = opened.write(resend(100)).await.unwrap();
    assert!(matches!(&outcome.actions[..], [ActionOutcome::Done(_)]), "it is open again");
}

#[tokio::test]
async fn messages_move_while_their_results_arrive() {
    let server = Server::of_system();
    let opened = Arc::new(server.open().await);
    store(&opened, (0..600).map(|_| message("x")).collect()).await.unwrap();
    shorten(&opened).await;
    let settling = Arc::clone(&opened);
    let settling = tokio::spawn(async move {
        for n in 1..=600_u64 {
            let results = (1..=3).map(|to| sent(n, to)).collect();
            let outcome = settling.write(WriteBatch { results, ..batch(Durability::Relaxed) }).await.unwrap();
            assert!(outcome.results.iter().all(|outcome| matches!(outcome, ResultOutcome::Applied(_))));
        }
    });
    let mut steps = 0;
    loop {
        let step = MoveRetention { interface: InterfaceId(1), age_now: NOW, now: NOW, limit: 50 };
        steps += 1;
        if opened.move_retention(&step).await.unwrap().state.change.is_none() {
            break;
        }
    }
    settling.await.unwrap();
    assert!(steps > 5);
    assert_eq!(server.sql("SELECT DISTINCT tier || ' ' || status FROM messages"), "7 1");
    assert_eq!(server.sql("SELECT DISTINCT tier || ' ' || state FROM deliveries"), "7 1");
    store(&opened, vec![NewMessage { deliveries: Vec::new(), ..message("x") }]).await.unwrap();
    assert_eq!(server.sql("SELECT DISTINCT tier FROM bodies"), "7");
}

/// Whoever reads the beginning of a body waits here, and has seen by then where it is.
const GATE: &str = "CREATE FUNCTION gate(number int) RETURNS bool LANGUAGE plpgsql AS
        'BEGIN IF number = 0 THEN PERFORM pg_advisory_xact_lock_shared(42); END IF; RETURN true; END';
    ALTER TABLE bodies RENAME TO all_bodies;
    CREATE VIEW bodies AS SELECT * FROM all_bodies WHERE gate(number)";

#[tokio::test]
async fn a_large_message_that_is_moved_while_it_is_loaded_is_loaded_whole() {
    let server = Server::of_system();
    let opened = Arc::new(server.open().await);
    let body: Vec<u8> = (0..(6 << 20) + 7_u32).map(|n| n as u8).collect();
    store(&opened, vec![message(body.clone())]).await.unwrap();
    server.sql(GATE);
    let mut holder = Holder::new(&server, "SELECT pg_advisory_xact_lock(42)");
    let loading = Arc::clone(&opened);
    let loading = tokio::spawn(async move { loading.load_messages(&[MessageId(1)]).await });
    blocked(&server, 1, || loading.is_finished()).await;
    // As a step of a change of its interface's retention does.
    server.sql("BEGIN; UPDATE all_bodies SET tier = 7; UPDATE deliveries SET tier = 7; UPDATE messages SET tier = 7; COMMIT");
    holder.let_go();
    let loaded = loading.await.unwrap().unwrap();
    assert!(loaded.len() == 1 && loaded[0].body == body, "{} loaded", loaded.len());
}
