//! What lasts: numbers, marks, backups.

use std::time::Duration;

use portway_model::{DestinationId, InterfaceId, MessageId, MessageStatus};

use super::Harness;
use super::fixture::{Fixture, RESEND, applied, claim, sent, stored, topology};
use crate::{
    ActionOutcome, Durability, ErrorKind, MessageOutcome, NewMessage, Registration, ResultOutcome, Suspect,
    Topology, WriteBatch,
};

fn only(name: &str, destinations: &[&str]) -> Topology {
    let destinations = destinations.iter().map(|name| (*name).to_owned()).collect();
    Topology {
        interfaces: vec![Registration { name: name.into(), destinations, ..Registration::default() }],
        ..Topology::default()
    }
}

pub async fn numbers_are_never_given_twice(harness: &dyn Harness) {
    let store = harness.open().await;
    let first = store.register(&topology()).await.unwrap().interfaces;
    let numbers: Vec<DestinationId> =
        first.iter().flat_map(|(_, destinations)| destinations.clone()).collect();
    // Everything is gone, something else comes, then the first returns.
    let other = store.register(&only("c", &["x", "z"])).await.unwrap().interfaces;
    assert!(first.iter().all(|(interface, _)| *interface != other[0].0));
    assert!(other[0].1.iter().all(|destination| !numbers.contains(destination)));
    let store = harness.reopen(store).await;
    let nothing = store.register(&Topology::default()).await.unwrap();
    assert_eq!(nothing.interfaces, []);
    let mut all = topology();
    all.interfaces.reverse();
    let again = store.register(&all).await.unwrap().interfaces;
    assert_eq!(again, [first[1].clone(), first[0].clone()]);
    let grown = store.register(&only("a", &["new", "y"])).await.unwrap().interfaces;
    assert_eq!((grown[0].0, grown[0].1[1]), (first[0].0, first[0].1[1]));
    assert!(!numbers.contains(&grown[0].1[0]) && !other[0].1.contains(&grown[0].1[0]));
    // What is not in the project any more may still have messages.
    let fixture = Fixture::of(store).await;
    let removed = NewMessage { interface: other[0].0, ..fixture.message_to(&[(other[0].1[0], 0)]) };
    fixture.store_one(removed).await;
}

pub async fn registering_names_the_same_again_changes_nothing(harness: &dyn Harness) {
    let store = harness.open().await;
    let first = store.register(&topology()).await.unwrap();
    assert_eq!(store.register(&topology()).await.unwrap(), first);
    let names: Vec<InterfaceId> = first.interfaces.iter().map(|(interface, _)| *interface).collect();
    assert_eq!(names.len(), 2);
    assert_ne!(names[0], names[1]);
}

pub async fn a_store_keeps_its_name(harness: &dyn Harness) {
    let store = harness.open().await;
    let name = store.register(&topology()).await.unwrap().store;
    assert!(!name.is_empty());
    let store = harness.reopen(store).await;
    assert_eq!(store.register(&Topology::default()).await.unwrap().store, name);
}

pub async fn writes_outlive_the_process(harness: &dyn Harness) {
    let mut fixture = Fixture::open(harness).await;
    for durability in [Durability::Relaxed, Durability::Strict, Durability::Relaxed] {
        let batch = WriteBatch { durability, messages: vec![fixture.message("body")], ..fixture.batch() };
        fixture.write(batch).await;
        fixture = fixture.reopen(harness).await;
    }
    assert_eq!(fixture.all().await, [3, 2, 1].map(MessageId));
    assert_eq!(fixture.settle_one(MessageId(1), sent()).await, applied());
    let fixture = fixture.reopen(harness).await;
    assert_eq!(fixture.status(MessageId(1)).await, Some(MessageStatus::Finished));
}

pub async fn a_mark_tells_whether_a_write_happened(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    assert!(fixture.store.find_mark(0).await.unwrap().is_none());
    fixture.store(vec![fixture.keyed("k", "one"), fixture.message("two")]).await;
    fixture.settle_one(MessageId(2), sent()).await;
    let batch = WriteBatch {
        mark: u64::MAX - 7,
        messages: vec![fixture.keyed("k", "one"), fixture.keyed("k", "other"), fixture.message("three")],
        results: vec![
            fixture.result(MessageId(1), fixture.x, sent()),
            fixture.result(MessageId(2), fixture.x, sent()),
        ],
        actions: vec![super::fixture::action(MessageId(2), None, RESEND)],
        suspects: vec![Suspect { destination: fixture.x, message: MessageId(5) }],
        ..fixture.batch()
    };
    let outcome = fixture.write(batch).await;
    assert_eq!(outcome.messages[0], MessageOutcome::Duplicate { id: MessageId(3), of: MessageId(1) });
    assert_eq!(outcome.results, [applied(), ResultOutcome::Stale]);
    assert!(matches!(&outcome.actions[0], ActionOutcome::Done(changed) if changed.len() == 1));
    let found = fixture.store.find_mark(u64::MAX - 7).await.unwrap().unwrap();
    assert_eq!(format!("{found:?}"), format!("{outcome:?}"));
    assert!(fixture.store.find_mark(u64::MAX).await.unwrap().is_none());
    // Also if the process died over it.
    let store = harness.reopen(fixture.store).await;
    let found = store.find_mark(u64::MAX - 7).await.unwrap().unwrap();
    assert_eq!(format!("{found:?}"), format!("{outcome:?}"));
}

pub async fn a_failed_write_leaves_no_mark(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let bad = fixture.message_to(&[(DestinationId(999), 0)]);
    let batch = WriteBatch { mark: 77, messages: vec![bad], ..fixture.batch() };
    assert_eq!(fixture.store.write(batch).await.unwrap_err().kind(), ErrorKind::Refused);
    assert!(fixture.store.find_mark(77).await.unwrap().is_none());
}

pub async fn an_empty_batch_is_a_write(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let batch = WriteBatch { mark: 12, durability: Durability::Strict, ..fixture.batch() };
    let outcome = fixture.write(batch).await;
    assert!(outcome.messages.is_empty() && outcome.results.is_empty());
    assert!(fixture.store.find_mark(12).await.unwrap().is_some());
}

pub async fn numbers_of_removed_messages_are_not_reused(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store((0..3).map(|_| fixture.message_to(&[])).collect()).await;
    fixture.outlive().await;
    assert_eq!(fixture.all().await, []);
    let fixture = fixture.reopen(harness).await;
    assert_eq!(fixture.store(vec![fixture.message("body")]).await, [stored(4)]);
}

pub async fn a_backup_is_a_store(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let large = "x".repeat((1 << 20) + 1);
    fixture.store(vec![fixture.keyed("k", "same"), fixture.message(&large)]).await;
    fixture.settle_one(MessageId(1), sent()).await;
    let Some(path) = harness.backup_path() else { return without_backups(&fixture).await };
    fixture.store.backup(&path).await.unwrap();
    fixture.store(vec![fixture.message("after")]).await;
    let error = fixture.store.backup(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "it exists already");

    let copy = harness.open_backup(&fixture.store, &path).await;
    let registered = copy.register(&topology()).await.unwrap();
    assert!(claim(&*copy, &registered).await.unclean, "it was in use when it was copied");
    let copy = Fixture::of(copy).await;
    assert_eq!((copy.a, copy.x), (fixture.a, fixture.x));
    assert_eq!(copy.all().await, [2, 1].map(MessageId));
    assert_eq!(copy.status(MessageId(1)).await, Some(MessageStatus::Finished));
    assert_eq!(copy.lane(copy.x, 0).await, [MessageId(2)]);
    assert_eq!(copy.store.load_messages(&[MessageId(2)]).await.unwrap()[0].body, large);
    let outcome = copy.store(vec![copy.keyed("k", "same")]).await;
    assert_eq!(outcome, [MessageOutcome::Duplicate { id: MessageId(3), of: MessageId(1) }]);
    assert_eq!(fixture.all().await.len(), 3);
    copy.store.close().await.unwrap();
}

/// What is backed up elsewhere is refused with a sentence that says where, and nothing is written.
async fn without_backups(fixture: &Fixture) {
    let target = std::env::temp_dir().join("portway-no-backup.db");
    let error = fixture.store.backup(&target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("backups"), "{error}");
    assert!(!target.exists());
}

pub async fn a_store_can_be_maintained(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let body = "x".repeat(100_000);
    for _ in 0..3 {
        fixture.store((0..40).map(|_| fixture.message(&body)).collect()).await;
        let found = fixture.store.maintain(Duration::from_secs(5)).await.unwrap();
        assert!(!found.full);
    }
    assert_eq!(fixture.all().await.len(), 120);
    assert_eq!(fixture.settle_one(MessageId(120), sent()).await, applied());
}
