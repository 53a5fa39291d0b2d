//! Partitions and floors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portway_model::{DestinationId, InterfaceId, Lane, MessageId, Retention, Tier};
use portway_store::{
    ActionKind, Durability, MessageOutcome, NewMessage, Registration, Settled, Store as _, Topology,
    WriteBatch,
};
use portway_store_postgres::PostgresStore;

use crate::harness::{NOW, Server, batch, blocked, message, own, register, sent, store};
use crate::outage::Holder;

async fn waiting(store: &PostgresStore) -> Vec<u64> {
    let pending = store.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 5_000).await.unwrap();
    pending.iter().map(|pending| pending.message.0).collect()
}

/// Interfaces 2 to 4 have a tier each, the shortest first; interface 1 has the longest.
async fn with_tiers(store: &PostgresStore) {
    let registration = |(name, tier): (&str, Tier)| Registration {
        name: name.into(),
        destinations: Vec::new(),
        retention: Retention { tier, ..Retention::default() },
    };
    let interfaces = ["b", "c", "d"].into_iter().zip(Tier::ALL).map(registration).collect();
    store.register(&Topology { interfaces, now: NOW }).await.unwrap();
}

/// A message of an interface.
fn of(interface: u32) -> NewMessage {
    NewMessage { interface: InterfaceId(interface), ..message("x") }
}

const TODAY: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4";

#[tokio::test]
async fn messages_are_stored_by_tier_and_day_of_the_database() {
    let server = Server::of_system();
    let opened = server.open().await;
    with_tiers(&opened).await;
    store(&opened, vec![of(2), of(3), of(4), message("x")]).await.unwrap();
    let today = server.sql(TODAY);
    for table in ["messages", "deliveries", "bodies"] {
        let tiers = server.sql(&format!("SELECT string_agg(DISTINCT tier || ' ' || day, ',') FROM {table}"));
        assert_eq!(tiers, format!("21 {today},49 {today},7 {today}"));
    }
    let in_leaf = "SELECT count(*) FROM messages WHERE tableoid::regclass::text ~ '_t49_\\d{8}$'";
    assert_eq!(server.sql(in_leaf), "2");
}

#[tokio::test]
async fn there_are_partitions_for_the_next_three_days_and_each_says_what_it_is() {
    let server = Server::of_system();
    drop(server.open().await);
    let daily = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'messages_t7'::regclass";
    assert_eq!(server.sql(daily), "4");
    let undocumented = "SELECT count(*) FROM pg_class WHERE relname ~ '_t7_\\d+$' AND relkind = 'r'
        AND obj_description(oid, 'pg_class') IS NULL AND relnamespace = current_schema()::regnamespace";
    assert_eq!(server.sql(undocumented), "0");
}

#[tokio::test]
async fn a_missing_partition_is_made_while_a_message_is_stored() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("x")]).await.unwrap();
    let drop_all = "DO $$ DECLARE leaf text; BEGIN
        FOR leaf IN SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class c ON c.oid = inhparent
            WHERE c.relname ~ '_t49$' AND c.relnamespace = current_schema()::regnamespace LOOP
            EXECUTE 'DROP TABLE ' || leaf; END LOOP; END $$";
    server.sql(drop_all);
    let outcome = store(&opened, vec![message("y")]).await.unwrap();
    assert!(matches!(outcome.messages[..], [MessageOutcome::Stored { .. }]));
    assert_eq!(waiting(&opened).await.len(), 1);
}

#[tokio::test]
async fn making_partitions_waits_for_nobody_and_nobody_for_it() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("x")]).await.unwrap();
    server.sql(
        "DROP TABLE messages_t7_probe, deliveries_t7_probe".replace("_probe", &suffix(&server)).as_str(),
    );
    drop(opened);
    // A long report reads all partitions of messages and deliveries.
    let mut report = Holder::new(&server, "SELECT count(*) FROM messages JOIN deliveries ON true");
    let begun = Instant::now();
    let opened = PostgresStore::open(server.settings()).await.unwrap();
    register(&opened).await;
    opened.maintain(Duration::ZERO).await.unwrap();
    with_tiers(&opened).await;
    store(&opened, vec![of(2)]).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    report.let_go();
}

/// The end of the names of today's daily partitions.
fn suffix(server: &Server) -> String {
    server.sql("SELECT '_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
}

/// Of 1,500 messages the first 1,200 are sent to the first destination, but 7, which is quarantined.
async fn delivered(opened: &PostgresStore) {
    let epoch = own(opened, &[1]).await.epoch;
    store(opened, (0..1_500).map(|_| message("x")).collect()).await.unwrap();
    let quarantined = |n| portway_store::DeliveryResult {
        epoch,
        settled: Settled::Quarantined(portway_model::Failure::new("bad", "no good")),
        ..sent(n, 1)
    };
    let results = (1..=1_200).map(|n| if n == 7 { quarantined(n) } else { sent(n, 1) }).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
}

/// Message 7 goes back to its place in the lane.
fn resend_7() -> WriteBatch {
    let resend = portway_store::Action {
        message: MessageId(7),
        destination: Some(DestinationId(1)),
        kind: ActionKind::Resend { keep_lane: true },
        author: "ann".into(),
        reason: String::new(),
        request: None,
    };
    WriteBatch { actions: vec![resend], ..batch(Durability::Strict) }
}

#[tokio::test]
async fn a_floor_rises_behind_what_was_delivered_and_falls_for_what_comes_back() {
    let server = Server::of_system();
    let opened = server.open().await;
    delivered(&opened).await;
    // Nobody is storing anything: one pass is enough.
    opened.maintain(Duration::ZERO).await.unwrap();
    let floor = "SELECT message_id FROM queue_floors WHERE destination_id = 1";
    assert_eq!(server.sql(floor), "1201", "what is quarantined is not in the queue");
    let results = (1_201..=1_400).map(|n| sent(n, 1)).chain((1..=1_400).map(|n| sent(n, 2))).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    opened.maintain(Duration::ZERO).await.unwrap();
    assert_eq!(server.sql("SELECT message_id FROM queue_floors WHERE destination_id = 2"), "1401");
    assert_eq!(waiting(&opened).await, (1_401..=1_500).collect::<Vec<_>>());
    let results = (1_401..=1_500).map(|n| sent(n, 1)).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    opened.write(resend_7()).await.unwrap();
    assert_eq!(waiting(&opened).await, [7]);
    assert_eq!(opened.lane_heads(DestinationId(1)).await.unwrap().len(), 1);
    assert!(opened.destinations_with_work().await.unwrap().contains(&DestinationId(1)));
    assert_eq!(opened.count_pending(&[DestinationId(1)], 9).await.unwrap(), 1);
}

#[tokio::test]
async fn a_floor_does_not_rise_beyond_what_is_just_coming_back() {
    let server = Server::of_system();
    let opened = Arc::new(server.open().await);
    delivered(&opened).await;
    server.sql("INSERT INTO queue_floors (destination_id, message_id) VALUES (1, 3)");
    // Who records what an operator did comes last, and is held up here.
    let mut holder = Holder::new(&server, "LOCK TABLE message_actions IN SHARE ROW EXCLUSIVE MODE");
    let resending = Arc::clone(&opened);
    let resending = tokio::spawn(async move { resending.write(resend_7()).await });
    blocked(&server, 1, || false).await;
    let raising = Arc::clone(&opened);
    let raising = tokio::spawn(async move { raising.maintain(Duration::ZERO).await });
    blocked(&server, 2, || raising.is_finished()).await;
    holder.let_go();
    resending.await.unwrap().unwrap();
    raising.await.unwrap().unwrap();
    assert_eq!(waiting(&opened).await.first(), Some(&7));
    assert_eq!(opened.lane_heads(DestinationId(1)).await.unwrap()[0].message, MessageId(7));
}

/// Another engine draws the next number and takes its time.
const STORING: &str = "SELECT pg_current_xact_id(); SELECT nextval('message_ids');
    CREATE TEMP TABLE held AS SELECT currval('message_ids') AS id;
    INSERT INTO messages (id, interface_id, status, stored_at, body_bytes, group_id, tier, received_at, attributes, day)
        SELECT id, 1, 0, 0, 0, 1, 49, 0, '', floor(extract(epoch FROM now()) / 86400) FROM held;
    INSERT INTO deliveries (message_id, destination_id, lane, state, round, attempts, changed_at, body_bytes, tier, day)
        SELECT id, 1, 0, 0, 0, 0, 0, 0, 49, floor(extract(epoch FROM now()) / 86400) FROM held";

#[tokio::test]
async fn a_floor_never_passes_a_message_that_is_still_being_stored() {
    let server = Server::of_system();
    let opened = server.open().await;
    let mut other = Holder::new(&server, STORING);
    store(&opened, (0..1_100).map(|_| message("x")).collect()).await.unwrap();
    let results = (2..=1_101).map(|n| sent(n, 1)).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    for _ in 0..3 {
        opened.maintain(Duration::ZERO).await.unwrap();
    }
    assert_eq!(waiting(&opened).await, [0; 0]);
    other.commit();
    assert_eq!(waiting(&opened).await, [1]);
    for _ in 0..3 {
        opened.maintain(Duration::ZERO).await.unwrap();
    }
    assert_eq!(waiting(&opened).await, [1]);
}

/// A number that was given and not committed is given again if the server had not flushed that it was given.
#[tokio::test]
async fn a_floor_trusts_no_number_of_a_server_that_began_anew() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, (0..1_100).map(|_| message("x")).collect()).await.unwrap();
    server.sql("SELECT nextval('message_ids') FROM generate_series(1, 20)");
    opened.maintain(Duration::ZERO).await.unwrap();
    server.cluster.stop_hard().unwrap();
    server.cluster.start_again().unwrap();
    server.sql("SELECT setval('message_ids', 1100)");
    let mut other = Holder::new(&server, STORING);
    let stored = store(&opened, vec![message("y")]).await.unwrap();
    let [MessageOutcome::Stored { id: last, .. }] = stored.messages[..] else { panic!("{stored:?}") };
    let results = (1..=1_100).chain([last.0]).map(|n| sent(n, 1)).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    opened.maintain(Duration::ZERO).await.unwrap();
    assert_eq!(waiting(&opened).await, [0; 0]);
    other.commit();
    assert_eq!(waiting(&opened).await, [1_101]);
}

#[tokio::test]
async fn a_period_is_removed_as_a_whole_beside_whoever_reads() {
    let server = Server::of_system();
    let opened = server.open().await;
    with_tiers(&opened).await;
    store(&opened, vec![of(2), message("y")]).await.unwrap();
    let periods = opened.list_periods().await.unwrap();
    let today: i32 = server.sql(TODAY).parse().unwrap();
    let period = *periods.iter().find(|period| period.tier == 7 && period.from_day == today).unwrap();
    // Somebody reads it: it is given up soon, and can be ended later.
    let mut report = Holder::new(&server, "SELECT count(*) FROM messages; SELECT count(*) FROM deliveries");
    let begun = Instant::now();
    assert!(opened.remove_period(period).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(20));
    store(&opened, vec![message("z")]).await.unwrap();
    report.let_go();
    // As after a crash between detaching and dropping.
    let name = format!("messages_t7{}", suffix(&server));
    server.sql(&format!("ALTER TABLE messages_t7 DETACH PARTITION {name}"));
    opened.remove_period(period).await.unwrap();
    assert_eq!(server.sql(&format!("SELECT to_regclass('{name}') IS NULL")), "t");
    assert_eq!(waiting(&opened).await, [2, 3]);
    assert_eq!(opened.get_message(MessageId(1)).await.unwrap(), None);
    assert!(!opened.list_periods().await.unwrap().contains(&period));
    opened.maintain(Duration::ZERO).await.unwrap();
}
