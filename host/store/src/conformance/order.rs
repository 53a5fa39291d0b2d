//! What the dispatcher reads: lanes, heads, what is due.

use portway_model::{AttemptNo, DestinationId, MessageId, Round, Timestamp};

use super::Harness;
use super::fixture::{Fixture, RESEND, lane, quarantined, retry, sent};
use crate::{ActionKind, DeliveryResult, LaneHead};

fn heads(heads: &[(u16, u64)]) -> Vec<LaneHead> {
    heads
        .iter()
        .map(|(number, message)| LaneHead { lane: lane(*number), message: MessageId(*message) })
        .collect()
}

pub async fn destinations_with_work_are_those_with_pending_deliveries(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let with_work = async || fixture.store.destinations_with_work().await.unwrap();
    assert_eq!(with_work().await, []);
    fixture.store(vec![fixture.message_to(&[(fixture.y, 9), (fixture.x, 1024)])]).await;
    fixture.store(vec![fixture.message_to(&[(fixture.z, 0)])]).await;
    assert_eq!(with_work().await, [fixture.x, fixture.y, fixture.z]);
    fixture.settle_one(MessageId(1), quarantined()).await;
    fixture.settle(vec![fixture.result(MessageId(1), fixture.y, sent())]).await;
    assert_eq!(with_work().await, [fixture.z]);
    // What waits for its time is work as well, wherever it waits.
    fixture.settle(vec![fixture.result(MessageId(2), fixture.z, retry(Timestamp(9)))]).await;
    fixture.act(MessageId(1), Some(fixture.x), RESEND).await;
    assert_eq!(with_work().await, [fixture.x, fixture.z]);
}

pub async fn lane_heads_are_the_first_of_each_lane(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    assert_eq!(fixture.store.lane_heads(fixture.x).await.unwrap(), []);
    let lanes = [1023, 0, 5, 1023, 0, 1024, 5, 7];
    fixture
        .store(lanes.iter().map(|lane| fixture.message_to(&[(fixture.x, *lane), (fixture.y, 1)])).collect())
        .await;
    let lane_heads = async |destination| fixture.store.lane_heads(destination).await.unwrap();
    assert_eq!(lane_heads(fixture.x).await, heads(&[(0, 2), (5, 3), (7, 8), (1023, 1)]));
    assert_eq!(lane_heads(fixture.y).await, heads(&[(1, 1)]));
    fixture.settle_one(MessageId(2), sent()).await;
    fixture.settle_one(MessageId(8), sent()).await;
    fixture.settle_one(MessageId(1), retry(Timestamp(9))).await;
    fixture.settle_one(MessageId(3), quarantined()).await;
    assert_eq!(lane_heads(fixture.x).await, heads(&[(0, 5), (5, 7), (1023, 1)]));
    assert_eq!(lane_heads(DestinationId(999)).await, []);
}

pub async fn held_heads_are_the_first_quarantined_of_each_lane(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let lanes = [3, 3, 8, 1024, 3];
    fixture.store(lanes.iter().map(|lane| fixture.message_to(&[(fixture.x, *lane)])).collect()).await;
    assert_eq!(fixture.store.held_heads(fixture.x).await.unwrap(), []);
    fixture
        .settle([2, 3, 4, 5].map(|n| fixture.result(MessageId(n), fixture.x, quarantined())).to_vec())
        .await;
    assert_eq!(fixture.store.held_heads(fixture.x).await.unwrap(), heads(&[(3, 2), (8, 3)]));
    assert_eq!(fixture.store.held_heads(fixture.y).await.unwrap(), []);
    fixture.act(MessageId(2), None, ActionKind::Resend { keep_lane: true }).await;
    fixture.act(MessageId(3), None, ActionKind::Dismiss).await;
    assert_eq!(fixture.store.held_heads(fixture.x).await.unwrap(), heads(&[(3, 5)]));
}

pub async fn a_lane_is_read_in_order_from_a_message_on(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture
        .store((0..10_u16).map(|n| fixture.message_to(&[(fixture.x, n % 2), (fixture.y, 0)])).collect())
        .await;
    let read = async |destination, number, after, limit| {
        let read = fixture.store.read_lane(destination, lane(number), MessageId(after), limit).await.unwrap();
        read.into_iter().map(|pending| pending.message.0).collect::<Vec<_>>()
    };
    assert_eq!(read(fixture.x, 0, 0, 100).await, [1, 3, 5, 7, 9]);
    assert_eq!(read(fixture.x, 1, 0, 2).await, [2, 4]);
    assert_eq!(read(fixture.x, 1, 4, 2).await, [6, 8]);
    assert_eq!(read(fixture.x, 1, 10, 2).await, []);
    assert_eq!(read(fixture.x, 2, 0, 2).await, []);
    assert_eq!(read(fixture.y, 0, 8, 9).await, [9, 10]);
    fixture.settle([1, 5].map(|n| fixture.result(MessageId(n), fixture.x, sent())).to_vec()).await;
    assert_eq!(read(fixture.x, 0, 0, 2).await, [3, 7]);
}

pub async fn a_lane_tells_attempts_and_due_times(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.message("four"), fixture.message("")]).await;
    let waiting = DeliveryResult {
        attempts: AttemptNo(6),
        ..fixture.result(MessageId(1), fixture.x, retry(Timestamp(1234)))
    };
    fixture.settle(vec![waiting, fixture.result(MessageId(2), fixture.x, quarantined())]).await;
    fixture.act(MessageId(2), None, ActionKind::Resend { keep_lane: true }).await;
    let [first, second] =
        fixture.store.read_lane(fixture.x, lane(0), MessageId::ZERO, 9).await.unwrap().try_into().unwrap();
    assert_eq!((first.lane, first.round, first.attempts), (lane(0), Round(0), AttemptNo(6)));
    assert_eq!((first.due_at, first.body_bytes), (Some(Timestamp(1234)), 4));
    assert_eq!((second.lane, second.round, second.attempts), (lane(0), Round(1), AttemptNo(0)));
    assert_eq!((second.due_at, second.body_bytes), (None, 0));
}

pub async fn what_is_due_apart_is_not_in_the_lane(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store((0..4).map(|_| fixture.message_to(&[(fixture.x, 1024)])).collect()).await;
    fixture.settle_one(MessageId(2), retry(Timestamp(50))).await;
    assert_eq!(fixture.lane(fixture.x, 1024).await, [1, 3, 4].map(MessageId));
    let due = fixture.store.read_due(fixture.x, Timestamp(50), 9).await.unwrap();
    assert_eq!(due.iter().map(|pending| pending.message.0).collect::<Vec<_>>(), [2]);
    assert_eq!(fixture.store.lane_heads(fixture.x).await.unwrap(), []);
}

pub async fn what_is_due_is_read_by_time(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture
        .store((0..5).map(|_| fixture.message_to(&[(fixture.x, 1024), (fixture.y, 1024)])).collect())
        .await;
    fixture.store(vec![fixture.message("in a lane")]).await;
    for (n, due_at) in [(1, 30), (2, 10), (3, 20), (4, 10), (6, 5)] {
        fixture.settle_one(MessageId(n), retry(Timestamp(due_at))).await;
    }
    let due = async |until, limit| {
        let due = fixture.store.read_due(fixture.x, Timestamp(until), limit).await.unwrap();
        due.into_iter().map(|pending| (pending.message.0, pending.due_at.unwrap().0)).collect::<Vec<_>>()
    };
    assert_eq!(due(9, 9).await, []);
    assert_eq!(due(20, 9).await, [(2, 10), (4, 10), (3, 20)]);
    assert_eq!(due(u64::MAX, 3).await, [(2, 10), (4, 10), (3, 20)]);
    let next = async |after| fixture.store.next_due(fixture.x, Timestamp(after)).await.unwrap();
    assert_eq!(next(0).await, Some(Timestamp(10)));
    assert_eq!(next(10).await, Some(Timestamp(20)));
    assert_eq!(next(30).await, None);
    assert_eq!(fixture.store.next_due(fixture.y, Timestamp(0)).await.unwrap(), None);
    fixture.settle_one(MessageId(2), sent()).await;
    assert_eq!(due(10, 9).await, [(4, 10)]);
}
