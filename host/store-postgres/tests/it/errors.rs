//! What the engine is told when the server refuses something. A trigger refuses in its place, with the code
//! the server would use.

use std::time::Duration;

use portway_model::{DestinationId, Lane, MessageId};
use portway_store::{Durability, ErrorKind, Store as _, WriteBatch};
use portway_store_postgres::PostgresStore;

use crate::harness::{Server, batch, message, sent, store};

/// Refuses messages with a code, the first `times`.
fn refuse(server: &Server, code: &str, times: u32) {
    server.sql(&format!(
        "CREATE SEQUENCE IF NOT EXISTS refusals;
        SELECT setval('refusals', 1, false);
        CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('{}.refusals') <= {times} THEN
                RAISE EXCEPTION 'refused by a test' USING ERRCODE = '{code}';
            END IF;
            RETURN NEW; END $$;
        CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse()",
        server.schema()
    ));
}

async fn kind(opened: &PostgresStore) -> ErrorKind {
    store(opened, vec![message("x")]).await.unwrap_err().kind()
}

async fn waiting(opened: &PostgresStore) -> usize {
    opened.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 500).await.unwrap().len()
}

#[tokio::test]
async fn each_refusal_has_its_kind_and_nothing_is_stored() {
    let server = Server::of_system();
    let opened = server.open().await;
    let cases = [
        ("53100", ErrorKind::Full),
        ("22021", ErrorKind::Refused),
        ("23502", ErrorKind::Refused),
        ("54000", ErrorKind::Refused),
        ("XX001", ErrorKind::Fatal),
        ("XX002", ErrorKind::Fatal),
        ("53200", ErrorKind::Unavailable),
        ("53300", ErrorKind::Unavailable),
        ("57P01", ErrorKind::Unavailable),
        ("57P03", ErrorKind::Unavailable),
        ("58030", ErrorKind::Unavailable),
        ("25006", ErrorKind::Unavailable),
        ("42501", ErrorKind::Unavailable),
        ("08006", ErrorKind::Unavailable),
    ];
    for (code, expected) in cases {
        refuse(&server, code, 99);
        assert_eq!(kind(&opened).await, expected, "{code}");
        assert_eq!(waiting(&opened).await, 0, "{code}");
    }
    refuse(&server, "53100", 0);
    store(&opened, vec![message("x")]).await.unwrap();
    assert_eq!(waiting(&opened).await, 1);
}

#[tokio::test]
async fn what_others_caused_is_tried_again() {
    let server = Server::of_system();
    let opened = server.open().await;
    for code in ["40001", "40P01"] {
        refuse(&server, code, 3);
        store(&opened, vec![message("x")]).await.unwrap();
        refuse(&server, code, 1_000);
        assert_eq!(kind(&opened).await, ErrorKind::Unavailable, "not for ever");
    }
    assert_eq!(waiting(&opened).await, 2);
}

#[tokio::test]
async fn after_a_full_disk_housekeeping_tells_when_there_is_room_again() {
    let server = Server::of_system();
    let opened = server.open().await;
    assert!(!opened.maintain(Duration::ZERO).await.unwrap().full);
    refuse(&server, "53100", 99);
    assert_eq!(kind(&opened).await, ErrorKind::Full);
    // There is room: nothing refuses what housekeeping tries.
    assert!(!opened.maintain(Duration::ZERO).await.unwrap().full);
    assert_eq!(server.sql("SELECT to_regclass('portway_room') IS NULL"), "t");
}

#[tokio::test]
async fn a_refused_batch_leaves_its_results_pending_and_its_cursor_where_it_was() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("x")]).await.unwrap();
    refuse(&server, "22021", 99);
    let write =
        WriteBatch { messages: vec![message("bad")], results: vec![sent(1, 1)], ..batch(Durability::Strict) };
    let mark = write.mark;
    assert_eq!(opened.write(write).await.unwrap_err().kind(), ErrorKind::Refused);
    assert!(opened.find_mark(mark).await.unwrap().is_none());
    assert_eq!(waiting(&opened).await, 1);
}
