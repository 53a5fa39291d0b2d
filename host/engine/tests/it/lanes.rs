//! Order: what blocks a lane, what does not, and what operators can do.

use std::time::Duration;

use portway_engine::Limits;
use portway_engine::status::DestinationState;
use portway_model::{DeliveryState, OnQuarantine, Order, RetryPolicy};
use portway_store::{Action, ActionKind, ActionOutcome, DestinationActionKind, Store};

use crate::house::{House, Plan};

fn action(message: portway_model::MessageId, kind: ActionKind) -> Action {
    Action { message, destination: None, kind, author: "test".into(), reason: "to see".into(), request: None }
}

const RESEND: ActionKind = ActionKind::Resend { keep_lane: false };

#[tokio::test(start_paused = true)]
async fn a_failing_message_blocks_only_its_lane() {
    let house = House::build(Plan::default()).await;
    let failing = house.store("fail 1", "a").await;
    house.store("2", "a").await;
    house.store("3", "b").await;
    assert_eq!(house.arrived(house.destination(0), 1).await, ["3"]);
    let blocked = &house.engine.status().await.unwrap().destinations[0].blocked;
    assert_eq!((blocked.len(), blocked[0].message), (1, failing));
    assert!(blocked[0].reason.contains("not now"), "{blocked:?}");
    assert_eq!(house.arrived(house.destination(0), 3).await, ["3", "fail 1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_message_lets_its_lane_go_on() {
    let house = House::build(Plan { attempts_max: 1, ..Plan::default() }).await;
    let refused = house.store("refuse", "a").await;
    let failed = house.store("fail", "a").await;
    house.store("2", "a").await;
    assert_eq!(house.arrived(house.destination(0), 1).await, ["2"]);
    house.until(refused, 0, DeliveryState::Quarantined).await;
    house.until(failed, 0, DeliveryState::Quarantined).await;
}

#[tokio::test(start_paused = true)]
async fn a_held_lane_waits_for_an_operator_and_keeps_its_order() {
    let plan = Plan { on_quarantine: OnQuarantine::Hold, attempts_max: 1, ..Plan::default() };
    let house = House::build(plan).await;
    let held = house.store("fail 1", "a").await;
    house.store("2", "a").await;
    house.until(held, 0, DeliveryState::Quarantined).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), Vec::<String>::new());
    let blocked = house.engine.status().await.unwrap().destinations[0].blocked.clone();
    assert_eq!((blocked[0].message, blocked[0].due_at), (held, None));
    // Whatever the caller says, it stays in the lane that waits for it.
    house.engine.act(action(held, RESEND)).await.unwrap();
    assert_eq!(house.arrived(house.destination(0), 2).await, ["fail 1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_lane_goes_on_when_what_holds_it_is_dismissed() {
    let house = House::build(Plan { on_quarantine: OnQuarantine::Hold, ..Plan::default() }).await;
    let held = house.store("refuse", "a").await;
    house.store("2", "a").await;
    house.until(held, 0, DeliveryState::Quarantined).await;
    house.engine.act(action(held, ActionKind::Dismiss)).await.unwrap();
    assert_eq!(house.arrived(house.destination(0), 1).await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn a_resent_message_goes_at_once_to_each_destination() {
    let house = House::build(Plan { orders: vec![Order::Strict, Order::None], ..Plan::default() }).await;
    let sent = house.store("1", "a").await;
    house.until(sent, 0, DeliveryState::Sent).await;
    house.until(sent, 1, DeliveryState::Sent).await;
    let done = house.engine.act(action(sent, RESEND)).await.unwrap();
    assert!(matches!(&done, ActionOutcome::Done(changed) if changed.len() == 2), "{done:?}");
    assert_eq!(house.arrived(house.destination(0), 2).await, ["1", "1"]);
    assert_eq!(house.arrived(house.destination(1), 2).await, ["1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_that_cannot_go_costs_no_more_than_its_head() {
    for (first, waiting_max) in [("wrong", 1), ("fail", 33)] {
        let limits = Limits { waiting_max: 64, ..Limits::default() };
        let house = House::build(Plan { orders: vec![Order::Strict], limits, ..Plan::default() }).await;
        house.store(first, "a").await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        for n in 0..500 {
            house.store(&n.to_string(), "a").await;
        }
        let memory = house.engine.status().await.unwrap().memory;
        assert!(memory.waiting <= waiting_max, "behind `{first}`: {memory:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn deliveries_without_order_go_round_one_that_fails() {
    let house = House::build(Plan { orders: vec![Order::None], ..Plan::default() }).await;
    let failing = house.store("fail 1", "a").await;
    house.store("2", "a").await;
    assert_eq!(house.arrived(house.destination(0), 2).await, ["2", "fail 1"]);
    house.until(failing, 0, DeliveryState::Sent).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_destination_sends_nothing_new_also_after_a_restart_and_intake_goes_on() {
    let house = House::build(Plan { orders: vec![Order::Key, Order::Key], ..Plan::default() }).await;
    house.order(0, DestinationActionKind::Pause).await;
    house.store("1", "a").await;
    assert_eq!(house.arrived(house.destination(1), 1).await, ["1"], "its neighbour goes on");
    let plan = Plan { orders: vec![Order::Key, Order::Key], ..Plan::default() };
    let house = House::on(house.kill().await, plan).await;
    house.store("2", "a").await;
    // Ten minutes of paused time, in which everything runs that is due.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), Vec::<String>::new());
    let state = house.engine.status().await.unwrap().destinations[0].state.clone();
    let DestinationState::Paused(pause) = state else { panic!("{state:?}") };
    assert_eq!((pause.author.as_str(), pause.reason.as_str()), ("a test", "to see"));
    house.order(0, DestinationActionKind::Resume).await;
    assert_eq!(house.arrived(house.destination(0), 2).await, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_blocked_lane_is_tried_when_an_operator_says_so() {
    for order in [Order::Key, Order::None] {
        let retry = RetryPolicy { first_wait: Duration::from_secs(3_600), ..RetryPolicy::default() };
        let retry = RetryPolicy { longest_wait: Duration::from_secs(7_200), ..retry };
        let house = House::build(Plan { orders: vec![order], retry, ..Plan::default() }).await;
        let failing = house.store("fail 1", "a").await;
        if order == Order::Key {
            house.store("2", "a").await;
        }
        let began = tokio::time::Instant::now();
        house.attempted(failing).await;
        let done = house.engine.act(action(failing, ActionKind::Retry)).await.unwrap();
        assert!(matches!(&done, ActionOutcome::Done(changed) if changed.len() == 1), "{done:?}");
        let expected: &[&str] = if order == Order::Key { &["fail 1", "2"] } else { &["fail 1"] };
        assert_eq!(house.arrived(house.destination(0), expected.len()).await, expected);
        assert!(began.elapsed() < Duration::from_secs(60), "it did not wait for its time");
        house.until(failing, 0, DeliveryState::Sent).await;
        let delivery = house.store.list_deliveries(failing).await.unwrap().remove(0);
        assert_eq!((delivery.round.0, delivery.attempts.0), (0, 2), "in its round, with its attempts");
    }
}
