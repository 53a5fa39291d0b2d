//! From a source's hand to the commit.

use std::time::Duration;

use portway_engine::{AfterDrain, DrainOrder, Fate, Limits, Unit};
use portway_model::{InterfaceId, Key, Order, Timestamp, code};
use portway_store::DestinationActionKind;

use crate::house::{House, Plan, claim, draft};

fn code(fates: &[Fate]) -> &'static str {
    match fates {
        [Fate::NotStored { code, .. }, ..] => code,
        _ => "stored",
    }
}

#[tokio::test(start_paused = true)]
async fn every_draft_has_its_fate_in_order() {
    let house = House::build(Plan::default()).await;
    let mut same = draft("same", "a");
    same.dedupe = Key::new("d");
    let mut other = draft("other", "a");
    other.dedupe = Key::new("d");
    let drafts = vec![same.clone(), same, other];
    let fates = house.engine.submit(house.interface(), Timestamp(0), drafts, Unit::Each).await;
    let [Fate::Stored { id, conflict: None }, Fate::Duplicate { of, .. }, Fate::Stored { conflict, .. }] =
        &fates[..]
    else {
        panic!("{fates:?}")
    };
    assert_eq!((of, *conflict), (id, Some(*id)));
    assert_eq!(house.engine.submit(house.interface(), Timestamp(0), Vec::new(), Unit::Each).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_taken_is_told_why() {
    let limits = Limits { intake_bytes_max: 2_000, ..Limits::default() };
    let house = House::build(Plan { limits, ..Plan::default() }).await;
    let large = vec![draft(&"x".repeat(4_000), "a")];
    assert_eq!(
        code(&house.engine.submit(house.interface(), Timestamp(0), large, Unit::Each).await),
        code::TOO_LARGE
    );
    let unknown = house.engine.submit(InterfaceId(99), Timestamp(0), vec![draft("x", "a")], Unit::Each).await;
    assert_eq!(code(&unknown), code::INVALID);
    let refused = house.engine.status().await.unwrap().intake.refused;
    assert_eq!(refused, [(code::TOO_LARGE, 1)], "also what did not come to the engine is counted");
}

#[tokio::test(start_paused = true)]
async fn a_full_store_is_told_and_taken_up_again_without_help() {
    let house = House::build(Plan::default()).await;
    house.store("before", "a").await;
    house.store.set_full(true);
    let mut told = "stored";
    while told == "stored" {
        tokio::time::sleep(Duration::from_millis(500)).await;
        told = code(
            &house.engine.submit(house.interface(), Timestamp(0), vec![draft("x", "a")], Unit::Each).await,
        );
    }
    assert_eq!(told, code::FULL);
    assert_eq!(house.engine.status().await.unwrap().intake.closed.unwrap().code, code::FULL);
    house.store.set_full(false);
    tokio::time::sleep(Duration::from_secs(3)).await;
    house.store("after", "a").await;
}

#[tokio::test(start_paused = true)]
async fn sources_side_by_side_share_commits() {
    let house = House::build(Plan::default()).await;
    house.engine.on_ready().await.unwrap();
    let submits =
        (0..64).map(|n| {
            let (engine, interface) = (house.engine.clone(), house.interface());
            async move {
                engine.submit(interface, Timestamp(0), vec![draft(&format!("{n}"), "a")], Unit::Each).await
            }
        });
    let fates = futures::future::join_all(submits).await;
    assert!(fates.iter().all(|fates| code(fates) == "stored"));
    let commits = house.engine.status().await.unwrap().commits;
    assert_eq!(commits.messages, 64);
    assert!(commits.commits < 10, "{commits:?}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stops_takes_nothing_and_ends_in_order() {
    let house = House::build(Plan::default()).await;
    house.store("a", "a").await;
    let (store, engine, interface) = (house.store.clone(), house.engine.clone(), house.interface());
    let registered = house.registered.clone();
    house.stop().await.unwrap();
    assert_eq!(
        code(&engine.submit(interface, Timestamp(0), vec![draft("x", "a")], Unit::Each).await),
        code::STOPPED
    );
    assert!(engine.status().await.is_err());
    assert!(!claim(&store, &registered).await.unclean);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_together_is_stored_together_with_its_cursor() {
    let house = House::build(Plan::default()).await;
    let (engine, interface) = (&house.engine, house.interface());
    let drafts = || vec![draft("one", "a"), draft("two", "b")];
    let unit = Unit::WithCursor(bytes::Bytes::from_static(b"2"));
    let fates = engine.submit(interface, Timestamp(0), drafts(), unit).await;
    assert!(matches!(&fates[..], [Fate::Stored { .. }, Fate::Stored { .. }, Fate::Kept]), "{fates:?}");
    assert_eq!(engine.source_cursor(interface).await.unwrap(), "2");
    let alone = Unit::WithCursor(bytes::Bytes::from_static(b"3"));
    assert_eq!(engine.submit(interface, Timestamp(0), Vec::new(), alone).await, [Fate::Kept]);
    assert_eq!(engine.source_cursor(interface).await.unwrap(), "3");
    let fates = engine.submit(interface, Timestamp(0), drafts(), Unit::Whole).await;
    assert!(matches!(&fates[..], [Fate::Stored { .. }, Fate::Stored { .. }]), "{fates:?}");
}

#[tokio::test(start_paused = true)]
async fn more_than_one_transaction_takes_is_refused_where_it_belongs_together() {
    let house = House::build(Plan::default()).await;
    let (engine, interface) = (&house.engine, house.interface());
    let max = engine.unit_max();
    let drafts: Vec<_> = (0..=max.messages).map(|n| draft(&format!("{n}"), "a")).collect();
    let whole = engine.submit(interface, Timestamp(0), drafts.clone(), Unit::Whole).await;
    assert_eq!((whole.len(), code(&whole)), (max.messages + 1, code::TOO_LARGE));
    let each = engine.submit(interface, Timestamp(0), drafts, Unit::Each).await;
    assert!(each.iter().all(|fate| matches!(fate, Fate::Stored { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_draining_engine_takes_nothing_and_delivers_what_it_has_until_it_is_cancelled() {
    let house = House::build(Plan { orders: vec![Order::Key, Order::Key], ..Plan::default() }).await;
    let drain = async || house.engine.status().await.unwrap().drain;
    house.order(1, DestinationActionKind::Pause).await;
    for n in 0..50 {
        house.store(&n.to_string(), "a").await;
    }
    house.engine.drain(begin(AfterDrain::Stay)).await.unwrap();
    let refused =
        house.engine.submit(house.interface(), Timestamp(0), vec![draft("x", "a")], Unit::Each).await;
    assert_eq!(code(&refused), code::DRAINING);
    house.arrived(house.destination(0), 50).await;
    house.wait_for(async || drain().await.filter(|drain| drain.is_quiet)).await;
    assert_eq!(house.receiver.arrived(house.destination(1)).len(), 0, "what is paused is left");
    house.order(1, DestinationActionKind::Resume).await;
    house.arrived(house.destination(1), 50).await;
    house.engine.drain(DrainOrder::Cancel).await.unwrap();
    assert_eq!(drain().await, None);
    house.store("50", "a").await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_ends_the_process_waits_for_what_can_be_delivered_and_for_nothing_else() {
    let house = House::build(Plan { orders: vec![Order::Strict], ..Plan::default() }).await;
    let (engine, destination) = (house.engine.clone(), house.destination(0));
    for n in 0..100 {
        house.store(&n.to_string(), "a").await;
    }
    house.store("fail", "a").await;
    house.store("behind", "a").await;
    engine.drain(begin(AfterDrain::Stop)).await.unwrap();
    engine.on_drained().await;
    assert_eq!(house.receiver.arrived(destination).len(), 100, "what waits for its retry is left");
    house.stop().await.unwrap();
    assert!(engine.drain(DrainOrder::Cancel).await.is_err());
}

fn begin(then: AfterDrain) -> DrainOrder {
    DrainOrder::Begin { author: "a test".into(), then }
}
