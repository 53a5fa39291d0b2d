//! Bounds: bytes and items in flight, message size, time, memory of all connections.

use std::time::Duration;

use portway_sources::Budget;

use crate::fakes::frame;
use crate::house::{Client, house, until};

#[tokio::test]
async fn a_connection_is_not_read_beyond_its_limits_and_loses_nothing() {
    let house = house(|options| options.limits.bytes_in_flight_max = 100 << 10);
    let Client { stream, .. } = house.client().await;
    let (reader, mut writer) = stream.into_split();
    house.intake.hold();
    let body = "x".repeat(50 << 10);
    let sending = tokio::spawn(async move {
        for number in 0..200 {
            tokio::io::AsyncWriteExt::write_all(&mut writer, &frame(&format!("{number} {body}")))
                .await
                .unwrap();
        }
        writer
    });
    until("the first submission", || house.intake.submitted() > 0).await;
    // Enough turns for a driver without a limit to read all of it.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(house.handle.status().messages <= 4, "{:?}", house.handle.status());
    house.intake.release();
    let writer = sending.await.unwrap();
    until("all messages", || house.handle.status().stored == 200).await;
    let numbers: Vec<String> =
        house.intake.stored().iter().map(|body| body.split_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(numbers, (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
    drop((reader, writer));
}

#[tokio::test]
async fn a_frame_larger_than_a_message_may_be_is_answered_and_ends_the_connection() {
    let house = house(|options| options.limits.message_bytes_max = 100 << 10);
    let mut client = house.client().await;
    client.send(&["one"]).await;
    client.send_bytes(b"\x0bMSH|").await;
    let Client { stream, .. } = client;
    let (reader, mut writer) = stream.into_split();
    let mut reader = tokio::io::BufReader::new(reader);
    // A peer that reads nothing before it has sent everything must hear of it, too.
    let noise = vec![b'x'; 1 << 20];
    tokio::io::AsyncWriteExt::write_all(&mut writer, &noise).await.ok();
    let mut heard = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut heard).await.ok();
    assert_eq!(heard, [frame("AA one"), frame("AR too-large")].concat());
    house.until_closed("too-large").await;
    assert_eq!(house.intake.stored(), ["one"]);
    let refusals = house.handle.refusals();
    let kept = refusals.iter().find(|refusal| refusal.failure.code == "too-large").unwrap();
    assert!(kept.shown().starts_with("\\x0bMSH|xxx"), "{}", kept.shown());
    assert!(kept.bytes.len() <= 4096);
}

#[tokio::test]
async fn a_whole_message_that_is_too_large_is_refused_alone() {
    let house = house(|options| options.limits.message_bytes_max = 10_000);
    let mut client = house.client().await;
    client.send(&["one", &"y".repeat(10_001), "two"]).await;
    let answers = client.answers(3).await;
    assert_eq!((answers[0].as_str(), answers[2].as_str()), ("AA one", "AA two"));
    assert!(answers[1].ends_with("too-large"), "{}", answers[1]);
    assert_eq!(house.intake.stored(), ["one", "two"]);
}

#[tokio::test]
async fn a_peer_that_never_reads_is_given_up_and_holds_up_nobody() {
    let house = house(|options| options.limits.write_timeout = Duration::from_millis(200));
    let (mut deaf, mut other) = (house.client().await, house.client().await);
    deaf.send(&vec!["big"; 64]).await;
    other.send(&["one"]).await;
    assert_eq!(other.answers(1).await, ["AA one"]);
    house.until_closed("write-timeout").await;
    other.send(&["two"]).await;
    assert_eq!(other.answers(1).await, ["AA two"]);
    let status = house.handle.status();
    assert_eq!((status.messages, status.stored), (66, 66));
    assert_eq!(status.answered + status.unanswered, 66);
    assert!(status.unanswered > 0);
}

#[tokio::test]
async fn a_silent_connection_ends_and_a_busy_one_does_not() {
    let house = house(|options| options.listen.idle_timeout = Duration::from_millis(150));
    let (_silent, mut busy) = (house.client().await, house.client().await);
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    while house.closed("idle") == 0 {
        ticks.tick().await;
        busy.send(&["one"]).await;
        assert_eq!(busy.answers(1).await, ["AA one"]);
    }
    assert_eq!(house.handle.status().connections, 1);
}

#[tokio::test]
async fn a_frame_that_drips_ends_in_time_however_busy_it_looks() {
    let house = house(|options| options.listen.frame_timeout = Duration::from_millis(150));
    let mut client = house.client().await;
    client.send(&["one"]).await;
    assert_eq!(client.answers(1).await, ["AA one"]);
    client.send_bytes(b"\x0b").await;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    while house.closed("frame-timeout") == 0 {
        ticks.tick().await;
        if tokio::io::AsyncWriteExt::write_all(&mut client.stream, b"x").await.is_err() {
            break;
        }
    }
    house.until_closed("frame-timeout").await;
    assert_eq!(client.answer().await.as_deref(), Some("AR idle"));
    assert_eq!(house.handle.refusals().last().unwrap().failure.code, "frame-timeout");
}

#[tokio::test]
async fn while_a_message_is_being_stored_its_connection_is_not_idle() {
    let house = house(|options| options.listen.idle_timeout = Duration::from_millis(20));
    let (mut client, _silent) = (house.client().await, house.client().await);
    house.intake.hold();
    client.send(&["one"]).await;
    until("the silent one's end", || house.closed("idle") == 1).await;
    house.intake.release();
    assert_eq!(client.answers(1).await, ["AA one"]);
}

#[tokio::test]
async fn frames_that_do_not_fit_together_wait_for_each_other() {
    let budget = Budget::new(1 << 20);
    let shared = budget.clone();
    let house = house(|options| options.budget = shared);
    let (mut first, mut second, mut small) =
        (house.client().await, house.client().await, house.client().await);
    let large = frame(&"x".repeat(900 << 10));
    first.send_bytes(&large[..large.len() - 1]).await;
    until("the first frame", || house.handle.status().bytes_in as usize == large.len() - 1).await;
    let sending = tokio::spawn(async move {
        second.send_bytes(&frame(&"y".repeat(900 << 10))).await;
        second.answer().await
    });
    // Small frames need no room.
    small.send(&["small"]).await;
    assert_eq!(small.answers(1).await, ["AA small"]);
    assert!((house.handle.status().bytes_in as usize) < 2 * large.len() - 100_000);
    first.send_bytes(b"\r").await;
    assert!(first.answer().await.unwrap().starts_with("AA xxx"));
    assert!(sending.await.unwrap().unwrap().starts_with("AA yyy"));
    until("all room to be free", || budget.held() == 0).await;
}

#[tokio::test]
async fn connections_above_the_limit_are_counted_where_the_rest_is() {
    let house = house(|options| options.listen.connections_max = 1);
    let mut first = house.client().await;
    first.send(&["one"]).await;
    first.answers(1).await;
    let mut second = house.client().await;
    assert_eq!(second.answer().await, None);
    let status = house.handle.status();
    assert_eq!(status.connections_refused["too-many"], 1);
    assert_eq!((status.connections, status.connections_max, status.connections_total), (1, 1, 1));
}
