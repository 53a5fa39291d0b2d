//! From the commit to the receiver.

use portway_engine::status::DestinationState;
use portway_model::{DeliveryState, Order};
use portway_store::{DestinationActionKind, Store};

use crate::house::{House, Plan};

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_destination_gets_every_message_in_order() {
    let house = House::build(Plan { orders: vec![Order::Strict, Order::Strict], ..Plan::default() }).await;
    for n in 0..100 {
        house.store(&n.to_string(), "a").await;
    }
    for number in 0..2 {
        assert_eq!(house.arrived(house.destination(number), 100).await, numbers(0..100));
    }
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_left_is_delivered_by_the_next() {
    let plan = || Plan { orders: vec![Order::Strict], ..Plan::default() };
    let house = House::build(plan()).await;
    for n in 0..50 {
        house.store(&n.to_string(), "a").await;
    }
    let store = house.kill().await;
    let house = House::on(store, plan()).await;
    assert!(house.registered.unclean);
    let last = house.store("50", "a").await;
    house.until(last, 0, DeliveryState::Sent).await;
    let arrived = house.receiver.arrived(house.destination(0));
    let first: usize = arrived[0].parse().unwrap();
    assert_eq!(arrived, numbers(first as u32..51), "in order, from the first that was not stored as sent");
}

#[tokio::test(start_paused = true)]
async fn a_backlog_of_many_pages_drains_completely() {
    const COUNT: u32 = 1_500;
    for order in [Order::Strict, Order::Key, Order::None] {
        let house = House::build(Plan { orders: vec![order], ..Plan::default() }).await;
        house.order(0, DestinationActionKind::Pause).await;
        for n in 0..COUNT {
            house.store(&n.to_string(), &format!("key-{}", n % 3)).await;
        }
        assert_eq!(house.receiver.arrived(house.destination(0)), Vec::<String>::new());
        house.order(0, DestinationActionKind::Resume).await;
        let arrived = house.arrived(house.destination(0), COUNT as usize).await;
        let arrived: Vec<u32> = arrived.iter().map(|body| body.parse().unwrap()).collect();
        let lanes = if order == Order::Strict { 1 } else { 3 };
        for lane in (0..lanes).filter(|_| order != Order::None) {
            let of_lane = arrived.iter().filter(|n| *n % lanes == lane);
            assert!(of_lane.is_sorted(), "{order:?}");
        }
        let mut sorted = arrived;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>(), "each of them once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_stores_in_the_target_once() {
    let house = House::build(Plan::default()).await;
    let id = house.store("route", "a").await;
    house.until(id, 0, DeliveryState::Sent).await;
    assert_eq!(house.arrived(house.end(), 1).await, ["routed"]);
    let list = portway_store::ListMessages { limit: 10, ..Default::default() };
    let messages = house.store.list_messages(&list).await.unwrap().items;
    assert_eq!(messages.len(), 2);
    assert_eq!((messages[0].origin, messages[0].origin_kind), (Some(id), Some("route")));
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_delivering_does_not_end_the_engine() {
    let house = House::build(Plan::default()).await;
    let id = house.store("panic", "a").await;
    house.until(id, 0, DeliveryState::Sent).await;
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_is_away_uses_up_no_attempt() {
    let house = House::build(Plan { attempts_max: 1, ..Plan::default() }).await;
    let id = house.store("away", "a").await;
    house.until(id, 0, DeliveryState::Sent).await;
    assert_eq!(house.store.list_deliveries(id).await.unwrap()[0].attempts.0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_misconfigured_destination_stops_until_it_is_resumed() {
    let house = House::build(Plan::default()).await;
    let wrong = house.store("wrong", "a").await;
    let state = loop {
        let status = house.engine.status().await.unwrap();
        match status.destinations[0].state.clone() {
            DestinationState::Running => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            state => break state,
        }
    };
    assert!(matches!(state, DestinationState::Stopped { why, .. } if why.code == "password"));
    house.store("next", "b").await;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), Vec::<String>::new());
    let dismiss = portway_store::Action {
        message: wrong,
        destination: None,
        kind: portway_store::ActionKind::Dismiss,
        author: "test".into(),
        reason: String::new(),
    };
    house.engine.act(dismiss).await.unwrap();
    house.order(0, DestinationActionKind::Resume).await;
    assert_eq!(house.arrived(house.destination(0), 1).await, ["next"]);
}
