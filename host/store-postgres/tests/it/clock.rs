//! The clock of the database, by which messages get their day: it steps, and nothing is lost or dropped.
//!
//! The engine's own clock, by which they grow old, steps in the conformance suite and in the simulation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portway_model::{AttemptNo, DestinationId, Lane, MessageId, MessageStatus, Round, Timestamp};
use portway_store::{
    Action, ActionKind, ActionOutcome, Durability, Expiry, MessageOutcome, ResultOutcome, Store as _,
    WriteBatch,
};
use portway_store_postgres::{PostgresSettings, PostgresStore};

use crate::harness::{Server, batch, message, own, register, sent};

const DAY_MS: u64 = 86_400_000;
/// Days the clock is ahead, one after another: a month there and back, a month behind, and right again.
const STEPS: [i64; 5] = [0, 31, 0, -31, 0];
const EACH: usize = 4;

fn real_now() -> Timestamp {
    Timestamp(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap())
}

/// Removes what is old for an engine at that time.
async fn expire(store: &PostgresStore, now: Timestamp) -> u64 {
    let mut messages = 0;
    for _ in 0..1_000 {
        let expired = store.expire(&Expiry { now, aged_to: now, limit: 100 }).await.unwrap();
        messages += expired.messages;
        if !expired.goes_on {
            return messages;
        }
    }
    panic!("there is always more that is old")
}

async fn waiting(store: &PostgresStore) -> Vec<u64> {
    let pending = store.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 500).await.unwrap();
    pending.iter().map(|pending| pending.message.0).collect()
}

/// With [`EACH`] messages after each step. Their numbers have gaps: one is drawn before it is known that there
/// is no partition for it.
async fn filled(server: &Server, settings: &PostgresSettings) -> (PostgresStore, Vec<u64>) {
    let opened = PostgresStore::open(settings.clone()).await.unwrap();
    register(&opened).await;
    own(&opened, &[1]).await;
    let mut ids = Vec::new();
    for days in STEPS {
        server.set_clock(days);
        for n in 0..EACH {
            let messages = vec![message(format!("{days}"))];
            let write = WriteBatch { now: real_now(), messages, ..batch(Durability::Strict) };
            match opened.write(write).await.unwrap().messages[..] {
                [MessageOutcome::Stored { id, .. }] => ids.push(id.0),
                ref other => panic!("{other:?}"),
            }
            if n == EACH / 2 {
                opened.maintain(Duration::ZERO).await.unwrap();
                assert_eq!(expire(&opened, real_now()).await, 0);
            }
        }
    }
    (opened, ids)
}

/// A step that is seen by a process, and one that happens while none runs.
async fn reopen(store: PostgresStore, settings: &PostgresSettings) -> PostgresStore {
    drop(store);
    let opened = PostgresStore::open(settings.clone()).await.unwrap();
    own(&opened, &[1]).await;
    opened
}

#[tokio::test]
async fn a_clock_that_jumps_a_month_and_back_loses_no_message() {
    let server = Server::of_system();
    let settings = server.new_settings_with_clock();
    let (mut opened, ids) = filled(&server, &settings).await;
    assert!(server.sql("SELECT count(DISTINCT day) FROM messages").parse::<u32>().unwrap() >= 3);
    let loads: Vec<MessageId> = ids.iter().copied().map(MessageId).collect();
    let mut settled = 0;
    for days in STEPS {
        server.set_clock(days);
        // One is settled by the process that saw the step, the others by one that did not.
        for (fresh, count) in [(false, 1), (true, EACH - 1)] {
            if fresh {
                opened = reopen(opened, &settings).await;
            }
            assert_eq!(waiting(&opened).await, ids[settled..], "{days} days ahead");
            assert_eq!(opened.load_messages(&loads).await.unwrap().len(), ids.len(), "{days} days ahead");
            let some = &ids[settled..settled + count];
            let results = some.iter().flat_map(|n| (1..=3).map(move |to| sent(*n, to)));
            let write = WriteBatch { results: results.collect(), ..batch(Durability::Strict) };
            let outcome = opened.write(write).await.unwrap();
            let is_applied = |outcome: &ResultOutcome| matches!(outcome, ResultOutcome::Applied(_));
            assert!(outcome.results.iter().all(is_applied), "{days} days ahead: {outcome:?}");
            for n in some {
                let view = opened.get_message(MessageId(*n)).await.unwrap().unwrap();
                assert_eq!(view.status, MessageStatus::Finished, "{n}");
            }
            settled += count;
            opened.maintain(Duration::ZERO).await.unwrap();
            assert_eq!(expire(&opened, real_now()).await, 0, "nothing is old for the engine");
        }
    }
    assert_eq!(server.sql("SELECT count(*) FROM messages"), ids.len().to_string());
    for n in ids.iter().step_by(EACH) {
        send_again(&opened, *n).await;
    }
}

/// What was stored on any of the days can be sent once more, and that counts.
async fn send_again(store: &PostgresStore, n: u64) {
    let action = Action {
        message: MessageId(n),
        destination: Some(DestinationId(1)),
        kind: ActionKind::Resend { keep_lane: false },
        author: "ann".into(),
        reason: String::new(),
        request: None,
    };
    let outcome =
        store.write(WriteBatch { actions: vec![action], ..batch(Durability::Strict) }).await.unwrap();
    assert!(
        matches!(&outcome.actions[..], [ActionOutcome::Done(changed)] if changed.len() == 1),
        "{outcome:?}"
    );
    let again = portway_store::DeliveryResult { round: Round(1), attempts: AttemptNo(1), ..sent(n, 1) };
    let outcome =
        store.write(WriteBatch { results: vec![again], ..batch(Durability::Strict) }).await.unwrap();
    assert!(matches!(outcome.results[..], [ResultOutcome::Applied(_)]), "{outcome:?}");
}

#[tokio::test]
async fn a_clock_of_the_database_that_is_ahead_removes_no_period_by_itself() {
    let server = Server::of_system();
    let settings = server.new_settings_with_clock();
    let (opened, ids) = filled(&server, &settings).await;
    let waits = ids[1];
    let done = ids.iter().copied().filter(|n| *n != waits);
    let results = done.flat_map(|n| (1..=3).map(move |to| sent(n, to)));
    let write = WriteBatch { results: results.collect(), ..batch(Durability::Strict) };
    opened.write(write).await.unwrap();
    // Wrong by years, in the database alone.
    server.set_clock(1_000);
    opened.maintain(Duration::ZERO).await.unwrap();
    assert_eq!(expire(&opened, real_now()).await, 0);
    let opened = reopen(opened, &settings).await;
    opened.maintain(Duration::ZERO).await.unwrap();
    assert_eq!(expire(&opened, real_now()).await, 0);
    assert_eq!(server.sql("SELECT count(*) FROM messages"), ids.len().to_string());
    // It is right again: what waits is there, what comes is stored.
    server.set_clock(0);
    let opened = reopen(opened, &settings).await;
    assert_eq!(waiting(&opened).await, [waits]);
    let messages = vec![message("after")];
    opened.write(WriteBatch { now: real_now(), messages, ..batch(Durability::Strict) }).await.unwrap();
    let both = waiting(&opened).await;
    assert!(both.len() == 2 && both[0] == waits && both[1] > ids[ids.len() - 1], "{both:?}");
    // Time has passed for both: what is done goes, whatever day it came on; what waits does not.
    server.set_clock(200);
    let later = Timestamp(real_now().0 + 200 * DAY_MS);
    expire(&opened, later).await;
    expire(&opened, later).await;
    assert_eq!(server.sql("SELECT count(*) FROM messages"), "2");
    assert_eq!(waiting(&opened).await, both);
    let both: Vec<MessageId> = both.into_iter().map(MessageId).collect();
    assert_eq!(opened.load_messages(&both).await.unwrap().len(), 2);
}
