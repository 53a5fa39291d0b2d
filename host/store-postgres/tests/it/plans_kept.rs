//! Statements that other sessions prepared go on to find what is stored, also in partitions that were made since.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portway_store::Store as _;
use portway_store_postgres::PostgresStore;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use crate::harness::Server;

/// Days in which each has partitions made while plans are.
const DAYS: i64 = 12;
const COUNT: &str = "SELECT count(*) FROM messages WHERE day = ANY ($1)";

/// A message of each tier on a day so many days ahead; that day.
fn store(server: &Server, ahead: i64) -> i32 {
    let day = server.sql(&format!(
        "INSERT INTO messages (id, interface_id, status, stored_at, body_bytes, group_id, tier, received_at, attributes,
            day)
        SELECT nextval('message_ids'), 1, 1, 0, 0, 1, tier, 0, '', floor(extract(epoch FROM now()) / 86400)::int + {ahead}
        FROM unnest('{{7,21,49}}'::int[]) AS tier
        RETURNING day"
    ));
    day.lines().next().unwrap().parse().unwrap()
}

async fn count(connection: &mut PgConnection, day: i32) -> i64 {
    sqlx::query(COUNT).bind(vec![day]).fetch_one(connection).await.unwrap().get(0)
}

/// Sessions that kept a plan made before, while or after others made partitions.
async fn planned(url: String, is_over: Arc<AtomicBool>) -> Vec<PgConnection> {
    let mut planned = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("SET plan_cache_mode = force_generic_plan").execute(&mut connection).await.unwrap();
        count(&mut connection, 0).await;
        planned.push(connection);
    }
    planned
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_made_while_partitions_are_finds_what_is_stored_in_them() {
    let server = Server::of_system();
    let settings = server.new_settings_with_clock();
    let url = settings.url.clone();
    let opened = PostgresStore::open(settings).await.unwrap();
    opened.maintain(Duration::ZERO).await.unwrap();
    let mut plans = 0;
    for day in 1..=DAYS {
        server.set_clock(day);
        let is_over = Arc::new(AtomicBool::new(false));
        let planning = tokio::spawn(planned(url.clone(), Arc::clone(&is_over)));
        opened.maintain(Duration::ZERO).await.unwrap();
        is_over.store(true, Ordering::SeqCst);
        let planned = planning.await.unwrap();
        let newest = store(&server, day + 3);
        plans += planned.len();
        let mut blind = 0;
        for mut connection in planned {
            blind += usize::from(count(&mut connection, newest).await != 3);
        }
        assert_eq!(blind, 0, "on day {day} of {plans} plans");
    }
    assert!(plans > 50, "{plans}");
}
