//! Two engines on one store: one delivers, both store.

use std::time::Duration;

use portway_engine::ActError;
use portway_engine::status::OwnershipStatus;
use portway_model::{DeliveryState, Order};
use portway_store::{Action, ActionKind, DestinationActionKind, Store};

use crate::house::{House, Plan, claim};

fn plan(order: Order) -> Plan {
    Plan { orders: vec![order], ..Plan::default() }
}

async fn owns(house: &House) -> bool {
    matches!(house.engine.status().await.unwrap().ownership, OwnershipStatus::Owner { .. })
}

#[tokio::test(start_paused = true)]
async fn what_another_engine_stores_is_delivered_by_the_owner_in_its_place() {
    for order in [Order::Strict, Order::Key, Order::None] {
        let house = House::build(plan(order)).await;
        let other = house.beside(plan(order)).await;
        other.engine.on_ready().await.unwrap();
        // One after the other: each was acknowledged before the next came.
        for n in 0..200 {
            let to = if n % 3 == 0 { &other } else { &house };
            to.store(&n.to_string(), "a").await;
        }
        let mut arrived = house.arrived(house.destination(0), 200).await;
        if order == Order::None {
            arrived.sort_by_key(|text| text.parse::<u32>().unwrap());
        }
        assert_eq!(arrived, (0..200).map(|n| n.to_string()).collect::<Vec<_>>(), "{order:?}");
        assert!(other.receiver.arrived(house.destination(0)).is_empty(), "it owns nothing");
        house.stop().await.unwrap();
        other.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_when_the_owner_lets_go() {
    let house = House::build(plan(Order::Strict)).await;
    let other = house.beside(plan(Order::Strict)).await;
    other.engine.on_ready().await.unwrap();
    assert!(!owns(&other).await);
    house.order(0, DestinationActionKind::Pause).await;
    let waiting = other.store("waiting", "a").await;
    house.stop().await.unwrap();
    other.wait_for(async || owns(&other).await.then_some(())).await;
    let state = other.store.list_deliveries(waiting).await.unwrap()[0].state;
    assert_eq!(state, DeliveryState::Pending, "it is paused, as the owner before was told");
    other.order(0, DestinationActionKind::Resume).await;
    assert_eq!(other.arrived(other.destination(0), 1).await, ["waiting"]);
    other.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_standby_waits_for_what_a_lost_owner_may_still_send_where_order_counts() {
    for (order, wait) in [(Order::Strict, 35), (Order::None, 0)] {
        let house = House::build(plan(order)).await;
        let other = house.beside(plan(order)).await;
        let slow = house.store("slow one", "a").await;
        house.until_in_hand(0).await;
        house.store.lose_lock();
        let began = tokio::time::Instant::now();
        other.wait_for(async || owns(&other).await.then_some(())).await;
        let next = other.store("next", "a").await;
        let arrived = other.arrived(other.destination(0), 1).await;
        let waited = began.elapsed();
        let expected = Duration::from_secs(wait)..Duration::from_secs(wait + 62);
        assert!(expected.contains(&waited), "{order:?}: {waited:?}");
        assert!(arrived[0] == "slow one" || order == Order::None, "the first is sent again: {arrived:?}");
        other.until(next, 0, DeliveryState::Sent).await;
        other.until(slow, 0, DeliveryState::Sent).await;
        // The old owner's send arrives as well, late: that is what may happen.
        house.arrived(house.destination(0), 1).await;
        assert!(!owns(&house).await, "it lost its groups");
        house.stop().await.unwrap();
        other.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_lost_its_groups_sends_nothing_and_takes_messages() {
    let house = House::build(plan(Order::Strict)).await;
    house.store("before", "a").await;
    house.arrived(house.destination(0), 1).await;
    let other = house.store.another();
    house.store.lose_lock();
    claim(&other, &house.registered).await;
    house.wait_for(async || (!owns(&house).await).then_some(())).await;
    let id = house.store("meanwhile", "a").await;
    // Of paused time, which ends when everybody waits: whatever would be sent by then has been.
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), ["before"]);
    let action = Action {
        message: id,
        destination: None,
        kind: ActionKind::Dismiss,
        author: "ann".into(),
        reason: "no".into(),
        request: None,
    };
    assert_eq!(house.engine.act(action).await, Err(ActError::NotOwner));
    house.store.mend();
    other.close().await.unwrap();
    assert_eq!(house.arrived(house.destination(0), 2).await, ["before", "meanwhile"]);
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_that_nobody_took_comes_back() {
    let house = House::build(plan(Order::Key)).await;
    for n in 0..50 {
        house.store(&n.to_string(), "a").await;
        if n % 10 == 0 {
            house.store.lose_lock();
            house.store.mend();
        }
    }
    let arrived = house.arrived(house.destination(0), 50).await;
    let mut once = arrived.clone();
    once.dedup();
    let mut seen = Vec::new();
    for text in arrived.iter().rev() {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen.reverse();
    assert_eq!(seen, (0..50).map(|n| n.to_string()).collect::<Vec<_>>(), "the last of each is in order");
    assert_eq!(house.store.list_engines().await.unwrap().len(), 1);
    house.stop().await.unwrap();
}
