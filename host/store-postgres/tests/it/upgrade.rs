//! What an upgrade would do to a database, without touching it; and who may be there while it is done.

use std::time::Duration;

use portway_model::MessageId;
use portway_store::{ErrorKind, Others, Store as _, UpgradePlan, Upgraded, Work};
use portway_store_postgres::{
    OpenError, PostgresSettings, PostgresStore, check_upgrade, migrations, upgrade,
};
use tokio::time::timeout;

use crate::engines::engine;
use crate::harness::{Server, message, register, store};
use crate::outage::Holder;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn known() -> u32 {
    migrations().len() as u32
}

/// As a program would have left it that knew only the migrations below this one. What the others add is there
/// already, which they do not mind.
fn make_older(server: &Server, below: u32) {
    server.sql(&format!("DELETE FROM schema_migrations WHERE number >= {below}"));
}

async fn check(server: &Server) -> UpgradePlan {
    check_upgrade(server.settings()).await.unwrap()
}

/// Upgrades as soon as the server noticed that nobody is there any more.
pub(crate) async fn upgraded(server: &Server) -> Upgraded {
    let upgraded = async {
        loop {
            match upgrade(server.settings()).await {
                Ok(upgraded) => break upgraded,
                Err(OpenError::Busy { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    timeout(PATIENCE, upgraded).await.unwrap()
}

/// A closed store with two messages.
async fn filled() -> Server {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("one"), message("two")]).await.unwrap();
    opened.close().await.unwrap();
    server
}

/// All that there is in the schema, and how often a transaction changed something there.
fn state(server: &Server) -> String {
    server.sql(
        "SELECT md5(string_agg(c.relname::text || c.relfilenode || coalesce(c.relacl::text, ''), ',' ORDER BY c.oid))
            || (SELECT string_agg(number || name || xmin::text, ',' ORDER BY number) FROM schema_migrations)
            || (SELECT string_agg(engine || xmin::text, ',') FROM last_write)
        FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace",
    )
}

#[tokio::test]
async fn where_there_are_no_tables_there_is_nothing_to_do_and_none_are_made() {
    let server = Server::of_system();
    server.new_settings();
    let plan = check(&server).await;
    assert_eq!((plan.present, plan.known, plan.is_empty()), (None, known(), true));
    let refused = upgrade(server.settings()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused:?}");
    let count = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace";
    assert_eq!(server.sql(count), "0");
}

#[tokio::test]
async fn what_would_be_done_is_told_with_sizes_and_nothing_is_touched() {
    let server = filled().await;
    assert!(check(&server).await.is_empty());
    make_older(&server, 4);
    server.sql("ANALYZE");
    let before = state(&server);
    let plan = check(&server).await;
    assert_eq!(state(&server), before, "it was changed");
    assert_eq!((plan.present, plan.known), (Some(3), known()));
    let numbers: Vec<u32> = plan.steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, (4..=known()).collect::<Vec<_>>());
    let first = &plan.steps[0];
    assert!(first.name == "0004_index_edits" && first.others == Some(Others::Wait), "{first:?}");
    let [messages] = &first.tables[..] else { panic!("{first:?}") };
    assert_eq!((messages.table.as_str(), messages.work, messages.rows), ("messages", Work::Index, 2));
    assert!(messages.bytes > 8_192, "with its parts and indexes: {messages:?}");
    let seen = plan.steps.iter().find(|step| step.number == 12).unwrap();
    assert!(seen.tables[0].table == "last_write" && seen.tables[0].rows == 1, "{seen:?}");
    assert_eq!(plan.free_bytes, None);
}

#[tokio::test]
async fn an_engine_that_runs_is_not_disturbed_and_not_upgraded_under() {
    let server = Server::of_system();
    let opened = server.open().await;
    make_older(&server, known());
    for _ in 0..10 {
        let (plan, stored) = tokio::join!(check(&server), store(&opened, vec![message("more")]));
        stored.unwrap();
        assert_eq!(plan.steps.len(), 1);
    }
    let refused = upgrade(server.settings()).await.unwrap_err();
    assert!(refused.to_string().contains(": one"), "{refused}");
    assert!(matches!(&refused, OpenError::Busy { engines, .. } if engines == &["one"]), "{refused:?}");
    opened.close().await.unwrap();
    let upgraded = upgraded(&server).await;
    assert_eq!((upgraded.from, upgraded.to), (Some(known() - 1), known()));
    assert!(check(&server).await.is_empty());
    let opened = PostgresStore::open(server.settings()).await.unwrap();
    assert_eq!(opened.load_messages(&[MessageId(1)]).await.unwrap()[0].body, "more");
}

#[tokio::test]
async fn a_start_adds_beside_others_what_they_work_on_and_nothing_else() {
    let server = Server::of_system();
    server.new_settings();
    let one = engine(&server, "one").await;
    let two = || PostgresSettings { engine: "two".into(), ..server.settings() };
    // Whoever knows the eleventh works on the twelfth.
    make_older(&server, 12);
    drop(PostgresStore::open(two()).await.unwrap());
    // Whoever is there may know the tenth only, and the eleventh needs programs that know it.
    make_older(&server, 11);
    let refused = PostgresStore::open(two()).await.err().unwrap();
    let names_it = matches!(&refused, OpenError::Busy { engines, .. } if engines.contains(&"one".to_owned()));
    assert!(names_it && refused.code() == "store-in-use", "{refused:?}");
    store(&one, vec![message("undisturbed")]).await.unwrap();
    drop(one);
    let opened = async {
        loop {
            match PostgresStore::open(two()).await {
                Ok(opened) => break opened,
                Err(OpenError::Busy { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    register(&timeout(PATIENCE, opened).await.unwrap()).await;
}

#[tokio::test]
async fn a_newer_database_is_used_where_it_says_that_this_program_works_on_it() {
    let server = filled().await;
    let add = |oldest: &str| {
        server.sql(&format!(
            "DELETE FROM schema_migrations WHERE number = 999;
            INSERT INTO schema_migrations (number, name, digest, oldest_binary)
            VALUES (999, '0999_from_tomorrow', '', {oldest})"
        ))
    };
    for oldest in ["NULL".to_owned(), (known() + 1).to_string()] {
        add(&oldest);
        let refused = PostgresStore::open(server.settings()).await.err().unwrap();
        assert!(matches!(refused, OpenError::Newer { .. }), "{refused:?}");
        assert!(refused.to_string().contains("0999_from_tomorrow") && refused.code() == "store-newer");
        let refused = check_upgrade(server.settings()).await.unwrap_err();
        assert!(matches!(refused, OpenError::Newer { .. }), "{refused:?}");
    }
    add(&known().to_string());
    let plan = check(&server).await;
    assert!(plan.is_empty() && plan.newer == ["0999_from_tomorrow"], "{plan:?}");
    let opened = PostgresStore::open(server.settings()).await.unwrap();
    store(&opened, vec![message("three")]).await.unwrap();
}

/// Waits until a statement of a store has waited for so long.
async fn waits(server: &Server, state: &str) {
    let waiting = format!(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name LIKE 'portway%' AND {state}"
    );
    let seen = async {
        while server.sql(&waiting) != "t" {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, seen).await.unwrap();
}

#[tokio::test]
async fn a_migration_waits_for_a_report_without_keeping_others_from_storing() {
    let server = Server::of_system();
    server.new_settings();
    let one = engine(&server, "one").await;
    make_older(&server, 12);
    let mut report = Holder::new(&server, "SELECT count(*) FROM last_write");
    let settings = PostgresSettings { engine: "two".into(), ..server.settings() };
    let meanwhile = async {
        waits(&server, "wait_event_type = 'Lock' AND query LIKE '%seen_day%'").await;
        store(&one, vec![message("meanwhile")]).await.unwrap();
        report.let_go();
    };
    let both = async { tokio::join!(PostgresStore::open(settings), meanwhile) };
    timeout(PATIENCE, both).await.unwrap().0.unwrap();
}

#[tokio::test]
async fn a_migration_may_take_longer_than_a_statement_does_otherwise() {
    let server = filled().await;
    make_older(&server, 12);
    // As another engine that is at it.
    let lock = "SELECT pg_advisory_lock(hashtextextended(current_schema() || ': migrations', 0))";
    let mut other = Holder::new(&server, lock);
    let settings = PostgresSettings { statement_max: Duration::from_secs(1), ..server.settings() };
    let meanwhile = async {
        let longer = "wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '1500 ms'";
        waits(&server, longer).await;
        other.let_go();
    };
    let both = async { tokio::join!(PostgresStore::open(settings), meanwhile) };
    let opened = timeout(PATIENCE, both).await.unwrap().0.unwrap();
    store(&opened, vec![message("three")]).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_was_away_while_tables_were_changed_beyond_it_stores_nothing() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("before")]).await.unwrap();
    server
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'portway%'");
    // As a newer program does while nobody is there. It is about to end when the engine comes back.
    let mut newer = Holder::new(
        &server,
        "LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE;
        INSERT INTO schema_migrations (number, name, digest) VALUES (999, '0999_from_tomorrow', '')",
    );
    let ended = async {
        waits(&server, "wait_event_type = 'Lock'").await;
        newer.commit();
    };
    let both = async { tokio::join!(store(&opened, vec![message("after")]), ended) };
    let refused = timeout(PATIENCE, both).await.unwrap().0.unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Fatal && refused.to_string().contains("0999_from_tomorrow"),
        "{refused}"
    );
    assert_eq!(server.sql("SELECT count(*) FROM messages"), "1");
}

#[tokio::test]
async fn an_engine_that_comes_while_tables_are_about_to_be_changed_beyond_it_is_seen() {
    let server = filled().await;
    make_older(&server, 11);
    let mut report = Holder::new(&server, "SELECT count(*) FROM schema_migrations");
    let settings = PostgresSettings { engine: "two".into(), ..server.settings() };
    let meanwhile = async {
        waits(&server, "wait_event_type = 'Lock' AND query LIKE '%schema_migrations%'").await;
        // A program that knows the tenth only had looked at the tables before.
        let name = "SELECT pg_advisory_lock(hashtextextended(current_schema() || ': engine one', 0))";
        let older = Holder::new(&server, name);
        report.let_go();
        older
    };
    let both = async { tokio::join!(PostgresStore::open(settings), meanwhile) };
    let (opened, _older) = timeout(PATIENCE, both).await.unwrap();
    let refused = opened.err().unwrap();
    assert!(matches!(&refused, OpenError::Busy { engines, .. } if engines == &["one"]), "{refused:?}");
    assert_eq!(server.sql("SELECT max(number) FROM schema_migrations"), "10");
}
