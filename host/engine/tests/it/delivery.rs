//! From the commit to the receiver.

use std::time::Duration;

use portway_engine::status::DestinationState;
use portway_model::{DeliveryState, Guarantee, Order};
use portway_store::{Action, ActionKind, DestinationActionKind, Store, Suspect, WriteBatch};

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
    assert!(house.tenure.as_ref().is_some_and(|tenure| tenure.unclean));
    let last = house.store("50", "a").await;
    house.until(last, 0, DeliveryState::Sent).await;
    let arrived = house.receiver.arrived(house.destination(0));
    let first: usize = arrived[0].parse().unwrap();
    assert_eq!(arrived, numbers(first as u32..51), "in order, from the first that was not stored as sent");
}

#[tokio::test(start_paused = true)]
async fn after_an_unclean_end_a_backlog_goes_on_in_runs_and_what_was_recorded_by_itself() {
    for order in [Order::Strict, Order::None] {
        let plan = || Plan { orders: vec![order], ..Plan::default() };
        let house = House::build(plan()).await;
        house.order(0, DestinationActionKind::Pause).await;
        let mut ids = Vec::new();
        for n in 0..50 {
            ids.push(house.store(&n.to_string(), "a").await);
        }
        // As a process does before it tries them, and ends.
        let suspects =
            [ids[0], ids[10]].map(|message| Suspect { destination: house.destination(0), message });
        house
            .store
            .write(WriteBatch { mark: 1, suspects: suspects.into(), ..WriteBatch::default() })
            .await
            .unwrap();
        let house = House::on(house.kill().await, plan()).await;
        house.order(0, DestinationActionKind::Resume).await;
        house.until(ids[49], 0, DeliveryState::Sent).await;
        assert_eq!(house.receiver.arrived(house.destination(0)), numbers(0..50));
        let runs = house.receiver.runs.lock().unwrap().clone();
        let alone: Vec<&str> = runs.iter().filter(|run| run.len() == 1).map(|run| run[0].as_str()).collect();
        assert_eq!(alone, ["0", "10"], "{order:?}: {runs:?}");
        assert!(runs.len() <= 6, "{order:?}: the others go together: {runs:?}");
        assert_eq!(house.store.list_suspects(house.destination(0)).await.unwrap(), []);
        house.stop().await.unwrap();
    }
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
            // Of paused time, until it is stopped.
            DestinationState::Running => tokio::time::sleep(Duration::from_millis(10)).await,
            state => break state,
        }
    };
    assert!(matches!(state, DestinationState::Stopped { why, .. } if why.code == "password"));
    house.store("next", "b").await;
    // Time is paused: all that would happen in ten minutes has happened.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), Vec::<String>::new());
    let dismiss = Action {
        message: wrong,
        destination: None,
        kind: ActionKind::Dismiss,
        author: "test".into(),
        reason: String::new(),
        request: None,
    };
    house.engine.act(dismiss).await.unwrap();
    house.order(0, DestinationActionKind::Resume).await;
    assert_eq!(house.arrived(house.destination(0), 1).await, ["next"]);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_arrived_is_not_sent_again_where_it_may_arrive_once_only() {
    let plan = || Plan { guarantee: Guarantee::AtMostOnce, orders: vec![Order::Strict], ..Plan::default() };
    let house = House::build(plan()).await;
    let panicked = house.store("panic", "a").await;
    house.until(panicked, 0, DeliveryState::Quarantined).await;
    let reason = house.store.list_deliveries(panicked).await.unwrap().remove(0).reason.unwrap();
    assert!(reason.starts_with("may-have-arrived: it may have arrived"), "{reason}");
    // What surely did not arrive is tried again.
    house.store("fail", "a").await;
    house.store("away", "a").await;
    assert_eq!(house.arrived(house.destination(0), 2).await, ["fail", "away"]);
    // The process dies while this one is sent.
    let in_hand = house.store("slow", "a").await;
    house.until_in_hand(0).await;
    let house = House::on(house.kill().await, plan()).await;
    house.until(in_hand, 0, DeliveryState::Quarantined).await;
    house.store("last", "a").await;
    assert_eq!(house.arrived(house.destination(0), 1).await, ["last"]);
    // A person may send it again: that is another round.
    let (author, reason) = ("test".into(), "it did not arrive".into());
    let kind = ActionKind::Resend { keep_lane: false };
    house
        .engine
        .act(Action { message: in_hand, destination: None, kind, author, reason, request: None })
        .await
        .unwrap();
    assert_eq!(house.arrived(house.destination(0), 2).await, ["last", "slow"]);
}

#[tokio::test(start_paused = true)]
async fn sources_that_are_about_to_come_back_go_before_runs() {
    let house = House::build(Plan::default()).await;
    let in_hand = async || house.engine.status().await.unwrap().destinations[0].runs;
    for (key, runs) in [("a", 1), ("b", 1), ("c", 2), ("d", 3)] {
        house.store("slow", key).await;
        // The last one waits, but for the first: then nobody was known to come back.
        assert_eq!(in_hand().await, runs, "{key}");
        tokio::time::advance(Duration::from_micros(300)).await;
    }
    // Time is paused: longer than anybody is awaited.
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(in_hand().await, 4, "nobody came");
}
