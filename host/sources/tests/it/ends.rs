//! However a connection ends, what was received whole is stored and, if possible, answered.

use tokio::io::AsyncWriteExt;

use crate::fakes::frame;
use crate::house::{house, until};

#[tokio::test]
async fn a_peer_that_closes_with_items_in_flight_still_gets_them_stored() {
    let house = house(|_| {});
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["one"]).await;
    until("the first submission", || house.intake.submissions() == 1).await;
    client.send(&["two", "three"]).await;
    until("the others", || house.handle.status().messages == 3).await;
    // Closing with an answer unread, or this socket option, makes the system break off.
    #[expect(deprecated, reason = "blocks only where there is something to wait for")]
    client.stream.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(client);
    house.intake.release();
    until("the end", || house.handle.status().connections == 0).await;
    assert_eq!(house.intake.stored(), ["one", "two", "three"]);
    let status = house.handle.status();
    assert_eq!((status.stored, status.answered + status.unanswered), (3, 3));
    assert!(status.unanswered > 0);
}

#[tokio::test]
async fn a_peer_that_has_said_all_it_has_to_say_is_answered() {
    let house = house(|_| {});
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["one", "two"]).await;
    client.send_bytes(b"\x0bhalf").await;
    client.stream.shutdown().await.unwrap();
    until("the submission", || house.intake.submissions() == 1).await;
    house.intake.release();
    assert_eq!(client.answers(3).await, ["AA one", "AA two", "AR peer-closed"]);
    assert_eq!(client.answer().await, None);
    house.until_closed("peer-closed").await;
    assert_eq!(house.handle.status().refused_by["half"], 1);
}

#[tokio::test]
async fn a_plugin_that_wants_the_connection_closed_gets_its_last_answer_out() {
    let house = house(|_| {});
    let mut client = house.client().await;
    client.send_bytes(&[frame("one"), frame("close")].concat()).await;
    assert_eq!(client.answers(2).await, ["AA one", "AA close"]);
    assert_eq!(client.answer().await, None);
    house.until_closed("answered").await;
    let status = house.handle.status();
    assert_eq!((status.answered, status.unanswered), (2, 0));
}

#[tokio::test]
async fn a_connection_without_a_byte_is_no_trouble() {
    let house = house(|_| {});
    drop(house.client().await);
    house.until_closed("peer-closed").await;
    assert_eq!(house.handle.status().connections, 0);
}
