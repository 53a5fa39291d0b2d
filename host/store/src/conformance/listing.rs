//! What people see: lists, views, queues.

use portway_model::{Attributes, DestinationId, InterfaceId, Key, MessageId, MessageStatus, Term, Timestamp};

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
        let list = ListMessages { interface, status, destination, limit: 2, ..ListMessages::default() };
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

/// A message of `a` that is found by its key and by an attribute.
fn searchable(fixture: &Fixture, key: &str, control_id: &str) -> NewMessage {
    let mut message = fixture.message("body");
    message.draft.key = Key::new(key);
    let pairs = [("id", control_id), ("ward", "north wing")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    message.draft.attributes = Attributes::new(pairs).unwrap();
    let names = ["key", "id"].map(str::to_owned);
    message.terms = Term::of_message(&names, message.draft.key.as_ref(), &message.draft.attributes);
    message
}

/// All pages of a list, and how many there were.
async fn found(fixture: &Fixture, list: ListMessages) -> Vec<u64> {
    let mut list = ListMessages { limit: 2, ..list };
    let mut ids = Vec::new();
    loop {
        let page = fixture.store.list_messages(&list).await.unwrap();
        assert!(page.items.len() <= 2);
        ids.extend(page.items.iter().map(|message| message.id.0));
        list.before = page.next;
        if list.before.is_none() {
            return ids;
        }
    }
}

pub async fn messages_are_found_by_what_their_interface_makes_searchable(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    for (key, id) in [("P1", "1"), ("P2", "2"), ("P1", "3"), ("P1", "4"), ("P3", "1")] {
        fixture.store_one(searchable(&fixture, key, id)).await;
    }
    // Its interface makes nothing searchable.
    let hidden = NewMessage { terms: Vec::new(), ..searchable(&fixture, "P1", "1") };
    fixture.store_one(hidden).await;
    let by_key = |key: &str| ListMessages { key: Some(key.into()), ..ListMessages::default() };
    let by = |name: &str, value: &str| ListMessages {
        attribute: Some((name.into(), value.into())),
        ..ListMessages::default()
    };
    assert_eq!(found(&fixture, by_key("P1")).await, [4, 3, 1]);
    assert_eq!(found(&fixture, by_key("P9")).await, []);
    assert_eq!(found(&fixture, by("id", "1")).await, [5, 1]);
    assert_eq!(found(&fixture, by("ward", "north wing")).await, [], "it is not searchable");
    let both = ListMessages { attribute: Some(("id".into(), "3".into())), ..by_key("P1") };
    assert_eq!(found(&fixture, both).await, [3]);
    let elsewhere = ListMessages { interface: Some(fixture.b), ..by_key("P1") };
    assert_eq!(found(&fixture, elsewhere).await, []);
    fixture.settle_one(MessageId(3), quarantined()).await;
    let quarantined = ListMessages { status: Some(MessageStatus::Quarantined), ..by_key("P1") };
    assert_eq!(found(&fixture, quarantined).await, [3]);
    let at = ListMessages { destination: Some(fixture.y), ..by_key("P1") };
    assert_eq!(found(&fixture, at).await, []);
}

pub async fn messages_are_found_by_time_and_by_text_of_attributes(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let mut times = Vec::new();
    for n in 0..5_u32 {
        times.push(fixture.now());
        fixture.store_one(searchable(&fixture, "P", &format!("north-{n}"))).await;
        fixture.wait(10);
    }
    let between = |from: Option<usize>, to: Option<usize>| ListMessages {
        from: from.map(|at| times[at]),
        to: to.map(|at| times[at]),
        ..ListMessages::default()
    };
    assert_eq!(found(&fixture, between(None, None)).await, [5, 4, 3, 2, 1]);
    assert_eq!(found(&fixture, between(Some(3), None)).await, [5, 4]);
    assert_eq!(found(&fixture, between(None, Some(2))).await, [2, 1]);
    assert_eq!(found(&fixture, between(Some(1), Some(4))).await, [4, 3, 2]);
    assert_eq!(found(&fixture, between(Some(2), Some(2))).await, []);
    let of_key = ListMessages { key: Some("P".into()), ..between(Some(1), Some(3)) };
    assert_eq!(found(&fixture, of_key).await, [3, 2]);
    let late = ListMessages { from: Some(fixture.now()), ..ListMessages::default() };
    assert_eq!(found(&fixture, late).await, []);
    let text = |text: &str| ListMessages { text: Some(text.into()), ..ListMessages::default() };
    assert_eq!(found(&fixture, text("rth-3")).await, [4]);
    assert_eq!(found(&fixture, text("north")).await, [5, 4, 3, 2, 1]);
    assert_eq!(found(&fixture, text("ward")).await, [], "it is a name, not a value");
    assert_eq!(found(&fixture, text("\u{0}")).await, [], "a length is no text");
}

pub async fn what_was_removed_is_not_found(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    for id in ["1", "2"] {
        let id = fixture.store_one(searchable(&fixture, "P1", id)).await;
        fixture.settle_one(id, sent()).await;
        fixture.wait(20 * 86_400);
    }
    fixture.wait(24 * 86_400);
    fixture.expire().await;
    let list = ListMessages { key: Some("P1".into()), ..ListMessages::default() };
    assert_eq!(found(&fixture, list.clone()).await, [2]);
    fixture.outlive().await;
    assert_eq!(found(&fixture, list).await, []);
}
