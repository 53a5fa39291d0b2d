//! A plugin at fault costs the connection whose bytes were in hand, and nothing else.

use std::time::Instant;

use crate::fakes::frame;
use crate::house::{house, until};

#[tokio::test]
async fn a_fault_closes_its_connection_after_earlier_items_were_answered() {
    let house = house(|_| {});
    let (mut client, mut neighbour) = (house.client().await, house.client().await);
    neighbour.send(&["neighbour"]).await;
    neighbour.answers(1).await;
    house.intake.hold();
    client.send(&["one"]).await;
    until("the submission", || house.intake.submissions() == 2).await;
    client.send(&["fault"]).await;
    until("the fault", || house.handle.status().faults == 1).await;
    house.intake.release();
    assert_eq!(client.answers(1).await, ["AA one"]);
    assert_eq!(client.answer().await, None);
    house.until_closed("fault").await;
    neighbour.send(&["still here"]).await;
    assert_eq!(neighbour.answers(1).await, ["AA still here"]);
    let refusal = house.handle.refusals().remove(0);
    assert_eq!(
        (refusal.failure.code.as_str(), refusal.failure.text.as_str()),
        ("fault", "wasm trap: as asked")
    );
    assert_eq!(refusal.bytes, frame("fault"));
    assert_eq!(refusal.shown(), r"\x0bfault\x1c\r");
}

#[tokio::test]
async fn items_before_a_fault_in_the_same_read_are_stored_and_answered() {
    let house = house(|_| {});
    let mut client = house.client().await;
    client.send(&["one", "two", "fault", "three"]).await;
    assert_eq!(client.answers(2).await, ["AA one", "AA two"]);
    assert_eq!(client.answer().await, None);
    house.until_closed("fault").await;
    assert_eq!(house.intake.stored(), ["one", "two"]);
}

#[tokio::test]
async fn the_refused_bytes_begin_with_their_frame_also_if_it_came_in_pieces() {
    let house = house(|_| {});
    let mut client = house.client().await;
    client.send_bytes(&[frame("one"), b"\x0bfau".to_vec()].concat()).await;
    client.answers(1).await;
    client.send_bytes(b"lt\x1c\r").await;
    assert_eq!(client.answer().await, None);
    assert_eq!(house.handle.refusals().remove(0).bytes, frame("fault"));
}

#[tokio::test]
async fn an_address_at_fault_waits_longer_each_time_and_others_do_not() {
    let house = house(|_| {});
    let start = Instant::now();
    for _ in 0..3 {
        let mut client = house.client().await;
        client.send(&["fault"]).await;
        assert_eq!(client.answer().await, None);
    }
    // Waited before the second and the third.
    assert!(start.elapsed().as_millis() >= 250 + 500, "{:?}", start.elapsed());
    assert_eq!(house.handle.status().addresses_slowed, 1);
    let mut slowed = house.client().await;
    slowed.send(&["slow"]).await;
    let mut other = house.client_from([127, 0, 0, 2].into()).await;
    other.send(&["one"]).await;
    assert_eq!(other.answers(1).await, ["AA one"]);
    assert!(slowed.heard_nothing());
    assert_eq!(slowed.answers(1).await, ["AA slow"]);
}

#[tokio::test]
async fn a_fault_in_settle_closes_and_what_was_stored_stays() {
    let house = house(|_| {});
    let mut client = house.client().await;
    client.send(&["one", "settle-fault", "two"]).await;
    assert_eq!(client.answer().await, None);
    until("the end", || house.handle.status().connections == 0).await;
    assert_eq!(house.intake.stored(), ["one", "settle-fault", "two"]);
    let status = house.handle.status();
    assert_eq!((status.answered, status.unanswered, status.faults), (0, 3, 1));
}

#[tokio::test]
async fn a_refused_peer_is_closed_and_counted_but_not_slowed() {
    let house = house(|_| {});
    for _ in 0..3 {
        let mut client = house.client().await;
        client.send(&["hopeless"]).await;
        assert_eq!(client.answer().await, None);
    }
    until("the ends", || house.closed("refused") == 3).await;
    let status = house.handle.status();
    assert_eq!((status.refused_by["not-mllp"], status.faults, status.addresses_slowed), (3, 0, 0));
    assert_eq!(house.handle.refusals().len(), 3);
}

#[tokio::test]
async fn without_an_instance_the_connection_is_closed_and_nobody_blamed() {
    let house = house(|_| {});
    let mut client = house.client().await;
    client.send(&["away"]).await;
    assert_eq!(client.answer().await, None);
    house.until_closed("unavailable").await;
    let status = house.handle.status();
    assert_eq!((status.faults, status.addresses_slowed), (0, 0));
}
