//! What people see: lists, views, queues.

use portway_model::{DestinationId, InterfaceId, MessageId, MessageStatus, Timestamp};

use super::Harness;
use super::fixture::{Fixture, RESEND, delivery, quarantined, retry, sent};
use crate::{ListMessages, NewMessage, QueueView};

/// All pages of a list.
async fn pages(fixture: &Fixture, mut list: ListMessages) -> Vec<Vec<u64>> {
    let mut pages = Vec::new();
    loop {
        let page = fixture.store.list_messages(&list).await.unwrap();
        assert!(page.items.len() <= list.limit.max(1) as usize);
        pages.push(page.items.iter().map(|message| message.id.0).collect());
        list.before = page.next;
        if list.before.is_none() {
            return pages;
        }
    }
}

pub async fn messages_are_listed_newest_first_in_pages(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store((0..5).map(|_| fixture.message("body")).collect()).await;
    let list = |limit, before| ListMessages { limit, before, ..ListMessages::default() };
    assert_eq!(pages(&fixture, list(2, None)).await, [vec![5, 4], vec![3, 2], vec![1]]);
    assert_eq!(pages(&fixture, list(5, None)).await, [[5, 4, 3, 2, 1]]);
    assert_eq!(pages(&fixture, list(9, Some(MessageId(3)))).await, [[2, 1]]);
    assert_eq!(pages(&fixture, list(9, Some(MessageId(1)))).await, [[0; 0]]);
    fixture.store((0..600).map(|_| fixture.message("body")).collect()).await;
    let page = fixture.store.list_messages(&list(u32::MAX, None)).await.unwrap();
    assert_eq!((page.items.len(), page.next), (500, Some(MessageId(106))));
}

pub async fn messages_are_listed_by_what_is_asked_for(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let other =
        NewMessage { interface: fixture.b, deliveries: vec![delivery(fixture.z, 0)], ..fixture.message("") };
    let to_y = fixture.message_to(&[(fixture.y, 0)]);
    let messages = vec![fixture.keyed("k", "1"), other.clone(), to_y, fixture.keyed("k", "1"), other];
    fixture.store(messages).await;
    fixture.settle(vec![fixture.result(MessageId(2), fixture.z, sent())]).await;
    fixture.settle(vec![fixture.result(MessageId(3), fixture.y, quarantined())]).await;
    let found = async |interface: Option<InterfaceId>, status, destination: Option<DestinationId>| {
        let list = ListMessages { interface, status, destination, before: None, limit: 2 };
        pages(&fixture, list).await.concat()
    };
    assert_eq!(found(Some(fixture.a), None, None).await, [4, 3, 1]);
    assert_eq!(found(Some(fixture.b), None, None).await, [5, 2]);
    assert_eq!(found(None, Some(MessageStatus::Pending), None).await, [5, 1]);
    assert_eq!(found(None, Some(MessageStatus::Finished), None).await, [2]);
    assert_eq!(found(None, Some(MessageStatus::Quarantined), None).await, [3]);
    assert_eq!(found(None, Some(MessageStatus::Duplicate), None).await, [4]);
    assert_eq!(found(None, None, Some(fixture.x)).await, [1]);
    assert_eq!(found(Some(fixture.b), Some(MessageStatus::Pending), Some(fixture.z)).await, [5]);
    assert_eq!(found(Some(fixture.a), Some(MessageStatus::Quarantined), Some(fixture.x)).await, [0; 0]);
    assert_eq!(found(Some(InterfaceId(99)), None, None).await, [0; 0]);
}

pub async fn what_is_not_there_is_not_listed(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    assert_eq!(fixture.store.get_message(MessageId(1)).await.unwrap(), None);
    assert_eq!(fixture.store.list_deliveries(MessageId(1)).await.unwrap(), []);
    assert_eq!(fixture.store.list_attempts(MessageId(1)).await.unwrap(), []);
    assert_eq!(fixture.store.list_actions(MessageId(1)).await.unwrap(), []);
    assert_eq!(fixture.store.load_messages(&[]).await.unwrap(), []);
    assert_eq!(fixture.store.list_queues().await.unwrap(), []);
    assert_eq!(fixture.all().await, []);
}

pub async fn messages_are_loaded_by_id(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store((1..=5).map(|n| fixture.message(&format!("body {n}"))).collect()).await;
    let ids = [9, 4, 2, 4].map(MessageId);
    let loaded = fixture.store.load_messages(&ids).await.unwrap();
    let told: Vec<_> = loaded.iter().map(|message| (message.id.0, message.body.as_ref())).collect();
    assert_eq!(told, [(2, b"body 2".as_slice()), (4, b"body 4")]);
}

pub async fn queues_tell_what_waits(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.message_to(&[(fixture.x, 0), (fixture.y, 1024)])]).await;
    let oldest = fixture.now();
    fixture.wait(10);
    fixture.store((0..3).map(|_| fixture.message_to(&[(fixture.x, 0), (fixture.y, 1024)])).collect()).await;
    fixture.settle_one(MessageId(1), sent()).await;
    fixture.settle_one(MessageId(3), quarantined()).await;
    let later = fixture.result(MessageId(1), fixture.y, retry(Timestamp(9)));
    fixture.settle(vec![later]).await;
    let view =
        |destination, waiting, quarantined, oldest| QueueView { destination, waiting, quarantined, oldest };
    let expected = [view(fixture.x, 2, 1, Some(fixture.now())), view(fixture.y, 4, 0, Some(oldest))];
    assert_eq!(fixture.store.list_queues().await.unwrap(), expected);
    fixture.settle([2, 4].map(|n| fixture.result(MessageId(n), fixture.x, quarantined())).to_vec()).await;
    assert_eq!(fixture.store.list_queues().await.unwrap()[0], view(fixture.x, 0, 3, None));
    fixture.act(MessageId(2), Some(fixture.x), RESEND).await;
    assert_eq!(fixture.store.list_queues().await.unwrap()[0], view(fixture.x, 1, 2, Some(fixture.now())));
}
