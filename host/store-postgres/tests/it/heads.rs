//! Heads of lanes, however many there are and however much waits in each.

use portway_model::{DestinationId, Lane};
use portway_store::{Durability, NewMessage, Store as _, WriteBatch};

use crate::harness::{Server, batch, message};

/// Stores a message in each of these lanes of destination 1, in order.
async fn with_lanes(lanes: impl Iterator<Item = u16>) -> (Server, Vec<(u16, u64)>) {
    let server = Server::of_system();
    let opened = server.open().await;
    let in_lane = |lane| {
        let mut message = message("x");
        message.deliveries.truncate(1);
        message.deliveries[0].lane = Lane::from_number(lane).unwrap();
        message
    };
    let messages: Vec<NewMessage> = lanes.map(in_lane).collect();
    for messages in messages.chunks(2_000) {
        let messages = messages.to_vec();
        opened.write(WriteBatch { messages, ..batch(Durability::Relaxed) }).await.unwrap();
    }
    let heads = opened.lane_heads(DestinationId(1)).await.unwrap();
    (server, heads.iter().map(|head| (head.lane.number(), head.message.0)).collect())
}

#[tokio::test]
async fn of_many_short_lanes_each_has_its_head() {
    let (_server, heads) = with_lanes((0..4).flat_map(|_| (0..1_025).rev())).await;
    assert_eq!(heads, (0..1_024).map(|lane| (lane, 1_025 - u64::from(lane))).collect::<Vec<_>>());
}

#[tokio::test]
async fn of_few_long_lanes_each_has_its_head() {
    let (_server, heads) =
        with_lanes((0..4_000_u16).map(|n| [7, 9, 500, 1_023, 1_024][usize::from(n % 5)])).await;
    assert_eq!(heads, [(7, 1), (9, 2), (500, 3), (1_023, 4)]);
}

#[tokio::test]
async fn a_long_lane_hides_no_short_one() {
    let lanes = (0..500).chain((0..1_100).map(|_| 500)).chain(501..1_024);
    let (_server, heads) = with_lanes(lanes).await;
    assert_eq!(heads.len(), 1_024);
    assert_eq!((heads[500], heads[501]), ((500, 501), (501, 1_601)));
}
