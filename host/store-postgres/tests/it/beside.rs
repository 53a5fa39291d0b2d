//! Steps with old messages beside the writer: nothing waits for them, and a server that lost some gets them again.

use std::sync::Arc;

use portway_model::InterfaceId;
use portway_store::{Durability, MoveRetention, Store as _, WriteBatch};
use portway_store_postgres::PostgresStore;

use crate::harness::{NOW, Server, batch, blocked, message, own, sent, store};
use crate::outage::Holder;
use crate::retention::{expire, expire_once, filled, set_back, set_back_over, shorten};

const STEP: MoveRetention = MoveRetention { interface: InterfaceId(1), age_now: NOW, now: NOW, limit: 20 };

async fn move_all(store: &PostgresStore, step: MoveRetention) {
    while store.move_retention(&step).await.unwrap().state.change.is_some() {}
}

#[tokio::test]
async fn what_arrives_does_not_wait_for_a_step_that_waits() {
    let server = Server::of_system();
    let opened = Arc::new(server.open().await);
    filled(&opened).await;
    shorten(&opened).await;
    // As whoever settles a delivery does, and takes long to commit.
    let mut holder = Holder::new(&server, "SELECT 1 FROM deliveries WHERE message_id = 8 FOR UPDATE");
    let moving = Arc::clone(&opened);
    let moving = tokio::spawn(async move { moving.move_retention(&STEP).await });
    blocked(&server, 1, || moving.is_finished()).await;
    store(&opened, vec![message("meanwhile")]).await.unwrap();
    let results = vec![sent(301, 1)];
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert!(!moving.is_finished(), "it waits still");
    holder.let_go();
    assert_eq!(moving.await.unwrap().unwrap().moved, 20);
}

#[tokio::test]
async fn who_settles_what_is_being_moved_waits_for_one_step_and_no_more() {
    let server = Server::of_system();
    let opened = Arc::new(server.open().await);
    store(&opened, (0..600).map(|_| message("x")).collect()).await.unwrap();
    own(&opened, &[1]).await;
    shorten(&opened).await;
    let moving = Arc::clone(&opened);
    let step = MoveRetention { limit: 1, ..STEP };
    let moving = tokio::spawn(async move { move_all(&moving, step).await });
    // All of them at once, again and again: every step meets one of these.
    for to in 1..=3 {
        let results = (1..=600).map(|n| sent(n, to)).collect();
        opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    }
    moving.await.unwrap();
    assert_eq!(server.sql("SELECT DISTINCT tier || ' ' || state FROM deliveries"), "7 1");
}

#[tokio::test]
async fn a_change_is_gone_through_again_after_the_server_may_have_lost_steps() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    shorten(&opened).await;
    for _ in 0..14 {
        assert_eq!(opened.move_retention(&STEP).await.unwrap().moved, 20);
    }
    server.cluster.stop_hard().unwrap();
    server.cluster.start_again().unwrap();
    // As if the last of them had not been flushed.
    let lost: String = ["messages", "bodies", "deliveries", "attempts"]
        .map(|table| {
            let id = if table == "messages" { "id" } else { "message_id" };
            format!("UPDATE {table} SET tier = 49 WHERE {id} BETWEEN 200 AND 250;")
        })
        .concat();
    server.sql(&lost);
    move_all(&opened, STEP).await;
    assert_eq!(server.sql("SELECT DISTINCT tier FROM messages"), "7");
}

#[tokio::test]
async fn a_change_does_not_end_with_the_session_on_which_its_steps_were_made() {
    let server = Server::of_system();
    let opened = Arc::new(server.open().await);
    filled(&opened).await;
    shorten(&opened).await;
    for _ in 0..14 {
        assert_eq!(opened.move_retention(&STEP).await.unwrap().moved, 20);
    }
    // The last step moves what is left, and ends the change once nobody writes.
    let writes =
        "SELECT pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ': retention', 0))";
    let mut writer = Holder::new(&server, writes);
    let ending = Arc::clone(&opened);
    let ending = tokio::spawn(async move { ending.move_retention(&STEP).await });
    blocked(&server, 1, || ending.is_finished()).await;
    // As if the server had begun anew, and the move had not been flushed.
    let ended = "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
        WHERE application_name LIKE 'portway%' AND wait_event_type = 'Lock'";
    assert_eq!(server.sql(ended), "1");
    server.sql("UPDATE messages SET tier = 49 WHERE id = 290");
    writer.let_go();
    let moved = ending.await.unwrap().unwrap();
    assert!(moved.state.change.is_some() && moved.goes_on, "{moved:?}");
    move_all(&opened, STEP).await;
    assert_eq!(server.sql("SELECT DISTINCT tier FROM messages"), "7");
}

#[tokio::test]
async fn a_step_that_was_given_up_leaves_nothing_behind() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    set_back(&server);
    let mut holder = Holder::new(&server, "SELECT 1 FROM messages WHERE id = 7 FOR UPDATE");
    let mut steps = 0;
    // The engine went away in the middle of one.
    loop {
        tokio::select! {
            expired = expire_once(&opened) => {
                assert!(expired.goes_on);
                steps += 1;
            }
            () = blocked(&server, 1, || false) => break,
        }
    }
    assert!(steps > 0);
    holder.let_go();
    while expire_once(&opened).await.goes_on {}
    assert_eq!(server.sql("SELECT string_agg(id || ' ' || tier, ',' ORDER BY id) FROM messages"), "7 0,8 0");
    assert_eq!(server.sql("SELECT count(*) FROM sealed_periods"), "0");
}

#[tokio::test]
async fn what_is_needed_of_all_periods_is_held_though_none_can_be_removed_yet() {
    let server = Server::of_system();
    let opened = server.open().await;
    filled(&opened).await;
    set_back_over(&server, 5);
    let mut report = Holder::new(&server, "SELECT count(*) FROM messages; SELECT count(*) FROM bodies");
    expire(&opened).await;
    let held = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM messages WHERE tier = 0";
    assert_eq!(server.sql(held), "7 8", "they are of different weeks");
    assert_eq!(server.sql("SELECT count(*) FROM sealed_periods WHERE NOT going"), "0");
    report.let_go();
    expire(&opened).await;
    assert_eq!(server.sql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM messages"), "7 8");
    assert_eq!(server.sql("SELECT count(*) FROM sealed_periods"), "0");
}

#[tokio::test]
async fn a_month_that_another_removed_between_two_steps_is_made_again() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, (0..60).map(|_| message("x")).collect()).await.unwrap();
    set_back(&server);
    let held = "SELECT count(*) FROM messages WHERE tier = 0";
    while server.sql(held) == "0" {
        assert!(expire_once(&opened).await.goes_on);
    }
    let first: u32 = server.sql(held).parse().unwrap();
    assert!(first < 60, "there are more steps");
    // All that was in it was delivered, and then it was empty.
    server.sql(
        "DO $$ DECLARE t text; BEGIN
        FOREACH t IN ARRAY ARRAY['bodies', 'attempts', 'outputs', 'deliveries', 'messages'] LOOP
            EXECUTE (SELECT format('DROP TABLE %s', string_agg(inhrelid::regclass::text, ', '))
                FROM pg_inherits WHERE inhparent = (t || '_t0')::regclass);
        END LOOP; END $$",
    );
    expire(&opened).await;
    assert_eq!(server.sql(held), (60 - first).to_string());
    assert_eq!(server.sql("SELECT count(*) FROM messages"), (60 - first).to_string());
}
