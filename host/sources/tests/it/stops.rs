//! Stopping: no new frames, answers for what was stored, and an end in time.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::house::{house, until};

#[tokio::test]
async fn between_frames_a_connection_ends_at_once_and_nobody_new_gets_in() {
    let mut house = house(|_| {});
    let mut client = house.client().await;
    client.send(&["one"]).await;
    client.answers(1).await;
    house.stop();
    assert_eq!(client.answer().await, None);
    let address = house.address;
    let (handle, _) = house.until_stopped().await;
    assert_eq!(handle.status().connections_closed["stopping"], 1);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn what_is_being_stored_is_answered_before_the_end() {
    let mut house = house(|_| {});
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["one"]).await;
    until("the submission", || house.intake.submissions() == 1).await;
    house.stop();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    house.intake.release();
    assert_eq!(client.answers(1).await, ["AA one"]);
    assert_eq!(client.answer().await, None);
    house.until_stopped().await;
}

#[tokio::test]
async fn a_frame_that_has_begun_may_end() {
    let mut house = house(|_| {});
    let mut client = house.client().await;
    client.send_bytes(b"\x0bon").await;
    until("the bytes", || house.handle.status().bytes_in == 3).await;
    house.stop();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    client.send_bytes(b"e\x1c\r").await;
    assert_eq!(client.answers(1).await, ["AA one"]);
    assert_eq!(client.answer().await, None);
    let (handle, _) = house.until_stopped().await;
    assert_eq!(handle.status().connections_closed["stopping"], 1);
}

#[tokio::test]
async fn a_frame_that_does_not_end_is_told_so() {
    let mut house = house(|options| options.limits.stop_frame_timeout = Duration::from_millis(50));
    let mut client = house.client().await;
    client.send_bytes(b"\x0bhalf").await;
    until("the bytes", || house.handle.status().bytes_in == 5).await;
    house.stop();
    assert_eq!(client.answers(1).await, ["AR stopping"]);
    house.until_stopped().await;
}

#[tokio::test]
async fn an_intake_that_never_answers_cannot_keep_the_driver_from_stopping() {
    let mut house = house(|options| options.limits.stop_timeout = Duration::from_millis(100));
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["one", "two"]).await;
    until("the submission", || house.intake.submissions() == 1).await;
    house.stop();
    let (handle, _) = house.until_stopped().await;
    assert_eq!(client.answer().await, None);
    let status = handle.status();
    assert_eq!(status.connections_closed["stop-timeout"], 1);
    assert_eq!((status.answered, status.unanswered, status.connections), (0, 2, 0));
}
