//! One owner at a time: who wins, who is told, and what counts of an engine that lost its lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portway_model::{Answer, AttemptNo, DestinationId, Epoch, Failure, GroupId, MessageId, Timestamp};
use portway_store::{
    Claimed, DeliveryResult, DestinationAction, DestinationActionKind, Durability, ErrorKind, News,
    ResultOutcome, Settled, Store as _, WriteBatch,
};
use portway_store_postgres::{PostgresSettings, PostgresStore};
use tokio::time::timeout;

use crate::engines::engine;
use crate::harness::{NOW, Server, batch, blocked, message, own, register, sent, store};

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

async fn two(server: &Server) -> (Arc<PostgresStore>, Arc<PostgresStore>) {
    server.new_settings();
    (engine(server, "one").await, engine(server, "two").await)
}

async fn news(store: &PostgresStore) -> News {
    timeout(PATIENCE, store.news()).await.unwrap()
}

/// Ends the session that owns what an engine owns.
fn end_lock(server: &Server, engine: &str) {
    server.sql(&format!(
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN engines e
            ON (l.classid::int8 << 32 | l.objid::int8) = e.lock_key
        WHERE l.locktype = 'advisory' AND l.granted AND e.engine = '{engine}'"
    ));
}

/// Claims until nobody else owns it; the server may need a moment to notice an end.
async fn take_over(store: &PostgresStore, groups: &[GroupId]) -> portway_store::Tenure {
    let claimed = async {
        loop {
            match store.claim(groups, NOW).await {
                Ok(Claimed::Owned(tenure)) => break tenure,
                Ok(Claimed::Refused(_)) | Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    timeout(PATIENCE, claimed).await.unwrap()
}

fn retry(message: u64, epoch: Epoch) -> DeliveryResult {
    let settled = Settled::Retry { due_at: Timestamp(NOW.0 + 1), failure: Failure::new("busy", "later") };
    DeliveryResult { settled, epoch, ..sent(message, 1) }
}

#[tokio::test]
async fn of_two_that_claim_overlapping_groups_at_once_one_wins() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    for round in 0..20_u32 {
        let group = |n: u32| GroupId(round * 10 + n);
        let (forth, back) = ([group(1), group(2), group(3)], [group(4), group(3), group(2)]);
        let claims = async { tokio::join!(one.claim(&forth, NOW), two.claim(&back, NOW)) };
        let (forth, back) = timeout(PATIENCE, claims).await.unwrap();
        let (won, refused) = match (forth.unwrap(), back.unwrap()) {
            (Claimed::Owned(_), Claimed::Refused(owners)) => ("one", owners),
            (Claimed::Refused(owners), Claimed::Owned(_)) => ("two", owners),
            both => panic!("round {round}: {both:?}"),
        };
        let groups: Vec<GroupId> = refused.iter().map(|owner| owner.group).collect();
        assert_eq!(groups, [group(2), group(3)], "round {round}");
        assert!(refused.iter().all(|owner| owner.engine == won && owner.since == NOW));
    }
    let views = one.list_engines().await.unwrap();
    let names: Vec<(&str, bool)> = views.iter().map(|view| (view.engine.as_str(), view.is_self)).collect();
    assert_eq!(names, [("one", true), ("two", false)]);
    assert_eq!(views.iter().map(|view| view.groups.len()).sum::<usize>(), 60, "all or none");
}

#[tokio::test]
async fn an_engine_that_lost_its_lock_is_told_in_time_and_its_results_count_no_more() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    let first = own(&one, &[1]).await;
    store(&one, vec![message("a"), message("b")]).await.unwrap();
    let begun = Instant::now();
    end_lock(&server, "one");
    assert_eq!(news(&one).await, News::Lost);
    assert!(begun.elapsed() < News::LOST_WITHIN, "{:?}", begun.elapsed());
    let tenure = take_over(&two, &[GroupId(1)]).await;
    assert!(tenure.overlaps && tenure.epoch > first.epoch, "{tenure:?}");
    assert!(!tenure.unclean, "it is seen to run: nothing that it delivered ended it");
    let late = DeliveryResult { epoch: first.epoch, ..sent(2, 1) };
    let results = vec![retry(1, first.epoch), late];
    let outcome = one.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert_eq!(outcome.results, [ResultOutcome::Disowned, ResultOutcome::Applied(vec![])]);
    let results = vec![retry(1, tenure.epoch)];
    let outcome = two.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert_eq!(outcome.results, [ResultOutcome::Applied(vec![])]);
    let Claimed::Refused(owners) = one.claim(&[GroupId(1)], NOW).await.unwrap() else {
        panic!("it is not its")
    };
    assert_eq!(owners[0].engine, "two");
    two.close().await.unwrap();
    let again = own(&one, &[1]).await;
    assert!(!again.unclean && !again.overlaps && again.epoch > tenure.epoch);
}

#[tokio::test]
async fn what_a_displaced_owner_may_still_send_is_not_over_with_the_lock_of_the_next() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    own(&one, &[1]).await;
    end_lock(&server, "one");
    assert!(take_over(&two, &[GroupId(1)]).await.overlaps);
    let again = async || {
        end_lock(&server, "two");
        assert_eq!(news(&two).await, News::Lost);
        take_over(&two, &[GroupId(1)]).await
    };
    assert!(again().await.overlaps, "the first may still send");
    server.sql("UPDATE owners SET overlapped_at = overlapped_at - interval '2 days', unclean = true");
    let tenure = again().await;
    assert!(!tenure.overlaps, "nothing is on its way for so long");
    assert!(tenure.unclean, "what was in hand before its former tenure is perhaps not tried yet");
    two.close().await.unwrap();
    let tenure = own(&one, &[1]).await;
    assert!(!tenure.unclean && !tenure.overlaps, "in order");
}

#[tokio::test]
async fn a_claim_waits_for_results_that_are_being_stored() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    let epoch = own(&one, &[1]).await.epoch;
    store(&one, vec![message("a")]).await.unwrap();
    // As a transaction of the owner that stored results and is not committed yet.
    let storing = "SELECT epoch FROM engines WHERE engine = 'one' AND owns FOR KEY SHARE";
    let mut storing = crate::outage::Holder::new(&server, storing);
    end_lock(&server, "one");
    assert_eq!(news(&one).await, News::Lost);
    assert!(two.claim(&[GroupId(1)], NOW).await.is_err(), "it waited, and gave up in time");
    storing.let_go();
    assert!(take_over(&two, &[GroupId(1)]).await.epoch > epoch);
}

#[tokio::test]
async fn groups_are_not_given_back_while_results_are_being_stored() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    let epoch = own(&one, &[1]).await.epoch;
    store(&one, vec![message("a")]).await.unwrap();
    // As a transaction whose session was given up while it committed, and which the server still has in hand.
    let storing = "SELECT epoch FROM engines WHERE engine = 'one' AND owns FOR KEY SHARE";
    let mut storing = crate::outage::Holder::new(&server, storing);
    let given_back = one.close().await;
    let claimed = two.claim(&[GroupId(1)], NOW).await;
    assert!(claimed.is_err(), "{claimed:?}, while results of the owner before may still come to count");
    assert!(given_back.is_err(), "it waited, and gave up in time");
    storing.let_go();
    assert!(take_over(&two, &[GroupId(1)]).await.epoch > epoch);
}

/// Ends the session that writes for an engine.
fn end_writer(server: &Server, engine: &str) {
    server.sql(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
            AND (classid::int8 << 32 | objid::int8)
                = hashtextextended(current_schema() || ': engine {engine}', 0)"
    ));
}

#[tokio::test]
async fn who_gives_back_what_it_lost_unnoticed_takes_nothing_from_the_next_of_its_name() {
    let server = Server::of_system();
    server.new_settings();
    let takeover_max = Duration::from_millis(100);
    let before = PostgresSettings { takeover_max, ..server.settings() };
    let before = PostgresStore::open(before).await.unwrap();
    register(&before).await;
    let first = own(&before, &[1]).await.epoch;
    store(&before, vec![message("a")]).await.unwrap();
    end_writer(&server, "one");
    let next = engine(&server, "one").await;
    // The claim waits for the lock, which goes before who had it looks for it again.
    let claiming = Arc::clone(&next);
    let claiming = tokio::spawn(async move { own(&claiming, &[1]).await });
    blocked(&server, 1, || claiming.is_finished()).await;
    end_lock(&server, "one");
    let epoch = claiming.await.unwrap().epoch;
    assert!(epoch > first);
    assert!(before.close().await.is_err(), "its name is another's");
    let results = vec![retry(1, epoch)];
    let outcome = next.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert_eq!(outcome.results, [ResultOutcome::Applied(vec![])]);
}

fn pause() -> WriteBatch {
    let pause = DestinationAction {
        destination: DestinationId(1),
        kind: DestinationActionKind::Pause,
        author: "ann".into(),
        reason: "the peer is rebuilt".into(),
    };
    WriteBatch { destination_actions: vec![pause], ..batch(Durability::Strict) }
}

#[tokio::test]
async fn a_pause_is_known_to_the_next_owner_or_refused() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    own(&one, &[1]).await;
    store(&one, vec![message("a")]).await.unwrap();
    // The last that a transaction changes.
    let mark = "SELECT mark FROM last_write WHERE engine = 'one' FOR UPDATE";
    let mut holder = crate::outage::Holder::new(&server, mark);
    let pausing = Arc::clone(&one);
    let pausing = tokio::spawn(async move { pausing.write(pause()).await });
    blocked(&server, 1, || pausing.is_finished()).await;
    end_lock(&server, "one");
    assert_eq!(news(&one).await, News::Lost);
    let claimed = two.claim(&[GroupId(1)], NOW).await;
    assert!(claimed.is_err(), "{claimed:?}: it waited, and gave up in time");
    holder.let_go();
    pausing.await.unwrap().unwrap();
    let tenure = take_over(&two, &[GroupId(1)]).await;
    assert_eq!(tenure.pauses.iter().map(|(destination, _)| destination.0).collect::<Vec<_>>(), [1]);
    // By now the other owns it, and nobody would tell it.
    let refused = one.write(pause()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    assert_eq!(two.list_destination_actions(DestinationId(1)).await.unwrap().len(), 1);
    two.write(pause()).await.unwrap();
}

#[tokio::test]
async fn an_owner_hears_at_once_what_another_stored_for_it() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    own(&one, &[1]).await;
    own(&two, &[2]).await;
    for _ in 0..3 {
        let outcome = store(&two, vec![message("by another")]).await.unwrap();
        assert_eq!(outcome.elsewhere, [], "it is not the owner");
        assert_eq!(news(&one).await, News::Elsewhere(vec![GroupId(1)]));
        assert_eq!(store(&one, vec![]).await.unwrap().elsewhere, [], "it was told");
    }
    store(&one, vec![message("its own")]).await.unwrap();
    store(&two, vec![message("by another")]).await.unwrap();
    let told = store(&one, vec![message("its own")]).await.unwrap().elsewhere;
    let told = if told.is_empty() { news(&one).await } else { News::Elsewhere(told) };
    assert_eq!(told, News::Elsewhere(vec![GroupId(1)]));
    let owners = server.sql("SELECT engine || ' ' || strangers FROM owners WHERE group_id = 1");
    assert_eq!(owners, "one 4", "what it stores itself is not counted");
}

#[tokio::test]
async fn after_a_stop_of_the_server_the_lock_is_lost_and_a_claim_works_again() {
    let server = Server::of_system();
    let (one, _two) = two(&server).await;
    let first = own(&one, &[1]).await;
    store(&one, vec![message("a")]).await.unwrap();
    server.cluster.stop_hard().unwrap();
    assert_eq!(news(&one).await, News::Lost);
    assert!(one.claim(&[GroupId(1)], NOW).await.is_err(), "there is no server");
    server.cluster.start_again().unwrap();
    let tenure = take_over(&one, &[GroupId(1)]).await;
    assert!(!tenure.unclean && !tenure.overlaps && tenure.epoch > first.epoch, "{tenure:?}");
    assert_eq!(news(&one).await, News::Missed, "it listens again");
    let views = one.list_engines().await.unwrap();
    assert_eq!(views.len(), 1, "the other claimed nothing: {views:?}");
    assert!(views[0].is_self && views[0].groups == [GroupId(1)] && views[0].started_at == NOW);
}

#[tokio::test]
async fn what_is_owned_is_given_back_though_the_session_that_owned_it_broke() {
    let server = Server::of_system();
    let (one, two) = two(&server).await;
    own(&one, &[1]).await;
    server.cluster.stop_hard().unwrap();
    server.cluster.start_again().unwrap();
    one.close().await.unwrap();
    let tenure = take_over(&two, &[GroupId(1)]).await;
    assert!(!tenure.unclean && !tenure.overlaps, "{tenure:?}");
}

#[tokio::test]
async fn a_loss_that_a_claim_meets_is_told_and_the_claim_begins_no_tenure_by_itself() {
    let server = Server::of_system();
    let (one, _two) = two(&server).await;
    let first = own(&one, &[1]).await.epoch;
    end_lock(&server, "one");
    // Either it was told before, or the claim meets the loss.
    let claimed = one.claim(&[GroupId(5)], NOW).await;
    if claimed.is_err() {
        assert_eq!(news(&one).await, News::Lost);
    }
    let tenure = take_over(&one, &[GroupId(1), GroupId(5)]).await;
    assert!(tenure.epoch > first && !tenure.unclean, "it lives");
    let results = vec![DeliveryResult {
        settled: Settled::Sent(Answer::default()),
        attempts: AttemptNo(1),
        ..retry(MessageId(99).0, first)
    }];
    let outcome = one.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    assert_eq!(outcome.results, [ResultOutcome::Stale], "there is no such message");
}
