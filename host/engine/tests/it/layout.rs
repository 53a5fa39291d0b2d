//! The layout changes while the engine runs.

use portway_engine::status::DestinationState;
use portway_engine::{Fate, LayoutChange, Unit};
use portway_model::{DeliveryState, OnQuarantine, Order, Timestamp};
use portway_store::{Action, ActionKind, DestinationActionKind, Registration, Store, Topology};

use crate::house::{House, Plan, draft};

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

fn dismiss(message: portway_model::MessageId, destination: portway_model::DestinationId) -> Action {
    let (author, reason) = ("a test".into(), "to see".into());
    Action {
        message,
        destination: Some(destination),
        kind: ActionKind::Dismiss,
        author,
        reason,
        request: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_begins_anew_waits_for_its_run_and_repeats_nothing() {
    let plan = Plan { orders: vec![Order::Strict, Order::Strict], ..Plan::default() };
    let house = House::build(plan).await;
    house.store("slow 0", "a").await;
    house.until_in_hand(0).await;
    for n in 1..50 {
        house.store(&n.to_string(), "a").await;
    }
    house.change(house.renew(&[0])).await;
    assert!(house.receiver.arrived(house.destination(0)).contains(&"slow 0".to_owned()), "it ended first");
    for n in 50..60 {
        house.store(&n.to_string(), "a").await;
    }
    let expected: Vec<String> = ["slow 0".to_owned()].into_iter().chain(numbers(1..60)).collect();
    for number in 0..2 {
        assert_eq!(house.arrived(house.destination(number), 60).await, expected);
    }
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_stopped_goes_on_when_it_begins_anew_and_a_paused_one_stays_paused() {
    let house = House::build(Plan { orders: vec![Order::Strict, Order::Strict], ..Plan::default() }).await;
    house.order(1, DestinationActionKind::Pause).await;
    let stopped = house.store("wrong once", "a").await;
    let state = async |number: usize| house.engine.status().await.unwrap().destinations[number].state.clone();
    house.wait_for(async || matches!(state(0).await, DestinationState::Stopped { .. }).then_some(())).await;
    house.receiver.mend();
    house.change(house.renew(&[0, 1])).await;
    house.until(stopped, 0, DeliveryState::Sent).await;
    assert!(matches!(state(1).await, DestinationState::Paused(_)));
    house.order(1, DestinationActionKind::Resume).await;
    house.until(stopped, 1, DeliveryState::Sent).await;
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_destination_that_is_gone_is_delivered_when_it_comes_back() {
    let house = House::build(Plan { orders: vec![Order::Strict, Order::Strict], ..Plan::default() }).await;
    house.order(1, DestinationActionKind::Pause).await;
    for n in 0..40 {
        house.store(&n.to_string(), "a").await;
    }
    house.change(house.without(1)).await;
    let while_gone = house.store("40", "a").await;
    house.until(while_gone, 0, DeliveryState::Sent).await;
    assert_eq!(house.store.list_deliveries(while_gone).await.unwrap().len(), 1);
    assert_eq!(house.store.count_pending(&[house.destination(1)], 1_000).await.unwrap(), 40);
    assert_eq!(house.engine.status().await.unwrap().destinations.len(), 2, "`to-0` and `end`");
    house.change(house.renew(&[])).await;
    house.order(1, DestinationActionKind::Resume).await;
    house.store("41", "a").await;
    let mut expected = numbers(0..40);
    expected.push("41".into());
    assert_eq!(house.arrived(house.destination(1), 41).await, expected);
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_destination_that_is_gone_can_be_dismissed() {
    let house = House::build(Plan { orders: vec![Order::Strict, Order::Strict], ..Plan::default() }).await;
    house.order(1, DestinationActionKind::Pause).await;
    let one = house.store("one", "a").await;
    let two = house.store("two", "a").await;
    house.change(house.without(1)).await;
    house.engine.act(dismiss(one, house.destination(1))).await.unwrap();
    house.until(one, 1, DeliveryState::Dismissed).await;
    let kept = Action { kind: ActionKind::Retry, ..dismiss(two, house.destination(1)) };
    assert!(house.engine.act(kept).await.is_err(), "nothing can be sent there");
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_interface_comes_and_goes_while_others_go_on() {
    let house = House::build(Plan::default()).await;
    let topology = Topology {
        interfaces: vec![Registration {
            name: "new".into(),
            destinations: vec!["to-new".into()],
            ..Registration::default()
        }],
        ..Topology::default()
    };
    let registered = house.engine.register(topology).await.unwrap();
    let (new, destinations) = registered.interfaces[0].clone();
    let submit = async || {
        let fates = house.engine.submit(new, Timestamp(0), vec![draft("hello", "a")], Unit::Each).await;
        matches!(fates.as_slice(), [Fate::Stored { .. }])
    };
    assert!(!submit().await, "it is registered and does not run");
    let template = house.renew(&[]).interfaces[0].clone();
    let mut interface = portway_engine::InterfaceSettings { id: new, name: "new".into(), ..template };
    interface.destinations.iter_mut().zip(&destinations).for_each(|(own, id)| own.id = *id);
    house.change(LayoutChange { interfaces: vec![interface], ..LayoutChange::default() }).await;
    assert!(submit().await);
    house.arrived(destinations[0], 1).await;
    house.store("1", "a").await;
    house.change(LayoutChange { removed: vec![new], ..LayoutChange::default() }).await;
    assert!(!submit().await);
    house.store("2", "a").await;
    assert_eq!(house.arrived(house.destination(0), 2).await, ["1", "2"]);
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_begins_to_hold_holds_for_what_was_quarantined_before() {
    let house = House::build(Plan { orders: vec![Order::Strict], ..Plan::default() }).await;
    let refused = house.store("refuse", "a").await;
    house.until(refused, 0, DeliveryState::Quarantined).await;
    let mut change = house.renew(&[]);
    change.interfaces[0].destinations[0].on_quarantine = OnQuarantine::Hold;
    house.change(change).await;
    let behind = house.store("1", "a").await;
    let lanes = async || house.engine.status().await.unwrap().destinations[0].lanes_blocked;
    house.wait_for(async || (lanes().await == 1).then_some(())).await;
    house.change(house.renew(&[])).await;
    house.until(behind, 0, DeliveryState::Sent).await;
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_while_the_engine_stops_is_refused() {
    let house = House::build(Plan::default()).await;
    let (engine, change) = (house.engine.clone(), house.renew(&[0]));
    house.stop().await.unwrap();
    assert!(engine.change_layout(change).await.is_err());
    assert!(engine.register(Topology::default()).await.is_err());
}
