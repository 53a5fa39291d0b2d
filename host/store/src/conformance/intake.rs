//! Storing messages: numbers, fields, duplicates, doubt, refusal.

use std::time::Duration;

use bytes::Bytes;
use portway_model::{
    Attributes, DeliveryState, DestinationId, Failure, InterfaceId, Key, MessageId, MessageStatus, Timestamp,
};

use super::Harness;
use super::fixture::{Fixture, delivery, stored};
use crate::{DedupeWindow, MessageOutcome, NewMessage, Origin, OriginKind, WriteBatch};

pub async fn ids_rise_in_batch_order(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let messages = (0..150).map(|n| fixture.message(&format!("body {n}"))).collect();
    assert_eq!(fixture.store(messages).await, (1..=150).map(stored).collect::<Vec<_>>());
    let loaded = fixture.store.load_messages(&[MessageId(1), MessageId(75), MessageId(150)]).await.unwrap();
    let bodies: Vec<_> = loaded.iter().map(|message| message.body.clone()).collect();
    assert_eq!(bodies, ["body 0", "body 74", "body 149"]);
    let fixture = fixture.reopen(harness).await;
    assert_eq!(fixture.store(vec![fixture.message("later")]).await, [stored(151)]);
}

pub async fn a_message_reads_back_as_it_was_stored(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let origin = fixture.store_one(fixture.message("origin")).await;
    fixture.wait(5);
    let mut message = fixture.message_to(&[(fixture.x, 7), (fixture.y, 1024)]);
    message.draft.body = Bytes::from_static(b"\x00\xff\r\n");
    message.draft.key = Key::new("patient 4711");
    message.draft.dedupe = Key::new("ctrl-é");
    message.draft.occurred_at = Some(Timestamp(12));
    message.draft.attributes = Attributes::new(vec![("type".into(), "ORU^R01 \"é\"".into())]).unwrap();
    message.origin = Some(Origin { message: origin, kind: OriginKind::Route });
    message.received_at = Timestamp(34);
    let id = fixture.store_one(message.clone()).await;

    let view = fixture.store.get_message(id).await.unwrap().unwrap();
    assert_eq!((view.id, view.interface, view.status), (id, fixture.a, MessageStatus::Pending));
    assert_eq!(
        (view.received_at, view.stored_at, view.occurred_at),
        (Timestamp(34), fixture.now(), Some(Timestamp(12)))
    );
    assert_eq!((view.key.as_deref(), view.dedupe.as_deref()), (Some("patient 4711"), Some("ctrl-é")));
    assert_eq!((view.body_bytes, view.attributes), (4, message.draft.attributes.clone()));
    assert_eq!((view.origin, view.origin_kind), (Some(origin), Some("route")));

    let [loaded] = fixture.store.load_messages(&[id]).await.unwrap().try_into().unwrap();
    assert_eq!((loaded.id, loaded.interface, loaded.received_at), (id, fixture.a, Timestamp(34)));
    assert_eq!((loaded.key, &*loaded.attributes), (message.draft.key, &message.draft.attributes));
    assert_eq!(loaded.body, message.draft.body);

    let deliveries = fixture.store.list_deliveries(id).await.unwrap();
    let lanes: Vec<_> =
        deliveries.iter().map(|delivery| (delivery.destination, delivery.lane.number())).collect();
    assert_eq!(lanes, [(fixture.x, 7), (fixture.y, 1024)]);
    assert!(deliveries.iter().all(|delivery| delivery.state == DeliveryState::Pending));
    assert!(deliveries.iter().all(|delivery| delivery.finished_at.is_none() && delivery.reason.is_none()));
}

pub async fn bodies_of_every_size_read_back(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let sizes = [0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20, (5 << 20) + 7];
    let body = |size: usize| (0..size).map(|n| (n % 251) as u8).collect::<Bytes>();
    let message = |size| {
        let mut message = fixture.message("");
        message.draft.body = body(size);
        message
    };
    fixture.store(sizes.into_iter().map(message).collect()).await;
    let ids: Vec<MessageId> = (1..=sizes.len() as u64).map(MessageId).collect();
    let loaded = fixture.store.load_messages(&ids).await.unwrap();
    assert_eq!(loaded.len(), sizes.len());
    for (message, size) in loaded.iter().zip(sizes) {
        assert!(message.body == body(size), "a body of {size} bytes differs");
        assert_eq!(fixture.store.get_message(message.id).await.unwrap().unwrap().body_bytes, size as u64);
    }
}

pub async fn batches_of_every_size_are_stored(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let mut expected = 0;
    for size in [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 128, 131] {
        let message = |n: u64| {
            let mut message = fixture.keyed(&format!("{size} {n}"), &format!("{size} {n}"));
            message.deliveries = vec![delivery(fixture.x, 0), delivery(fixture.y, (n % 1025) as u16)];
            message
        };
        let outcomes = fixture.store((0..size).map(message).collect()).await;
        assert_eq!(outcomes, (expected + 1..=expected + size).map(stored).collect::<Vec<_>>());
        expected += size;
    }
    assert_eq!(fixture.all().await.len() as u64, expected);
    assert_eq!(fixture.lane(fixture.x, 0).await, (1..=expected).map(MessageId).collect::<Vec<_>>());
}

pub async fn a_repeated_body_is_a_duplicate(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let first = fixture.store_one(fixture.keyed("k", "same")).await;
    let outcome = fixture.store(vec![fixture.keyed("k", "same")]).await;
    let duplicate = MessageId(first.0 + 1);
    assert_eq!(outcome, [MessageOutcome::Duplicate { id: duplicate, of: first }]);
    let view = fixture.store.get_message(duplicate).await.unwrap().unwrap();
    assert_eq!((view.status, view.body_bytes), (MessageStatus::Duplicate, 4));
    assert_eq!((view.origin, view.origin_kind), (Some(first), Some("duplicate")));
    assert_eq!(fixture.store.list_deliveries(duplicate).await.unwrap(), []);
    assert_eq!(fixture.store.load_messages(&[duplicate]).await.unwrap(), []);
    assert_eq!(fixture.lane(fixture.x, 0).await, [first]);
    // Also in a later process.
    let fixture = fixture.reopen(harness).await;
    let outcome = fixture.store(vec![fixture.keyed("k", "same")]).await;
    assert_eq!(outcome, [MessageOutcome::Duplicate { id: MessageId(first.0 + 2), of: first }]);
}

pub async fn a_duplicate_within_a_batch_is_found(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let large = "x".repeat((1 << 20) + 1);
    let bodies = ["same", "same", "other", &large, &large];
    let keys = ["k", "k", "k", "l", "l"];
    let messages = keys.iter().zip(bodies).map(|(key, body)| fixture.keyed(key, body)).collect();
    let expected = [
        stored(1),
        MessageOutcome::Duplicate { id: MessageId(2), of: MessageId(1) },
        MessageOutcome::Stored { id: MessageId(3), conflict: Some(MessageId(1)) },
        stored(4),
        MessageOutcome::Duplicate { id: MessageId(5), of: MessageId(4) },
    ];
    assert_eq!(fixture.store(messages).await, expected);
    assert_eq!(fixture.lane(fixture.x, 0).await, [1, 3, 4].map(MessageId));
}

pub async fn another_body_is_a_conflict(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let first = fixture.store_one(fixture.keyed("k", "one")).await;
    let mut other = fixture.keyed("k", "two");
    other.origin = Some(Origin { message: MessageId(77), kind: OriginKind::Route });
    let outcome = fixture.store(vec![other]).await;
    let second = MessageId(first.0 + 1);
    assert_eq!(outcome, [MessageOutcome::Stored { id: second, conflict: Some(first) }]);
    let view = fixture.store.get_message(second).await.unwrap().unwrap();
    assert_eq!(
        (view.status, view.origin, view.origin_kind),
        (MessageStatus::Pending, Some(first), Some("conflict"))
    );
    assert_eq!(fixture.lane(fixture.x, 0).await, [first, second]);
}

pub async fn the_newest_body_of_a_key_counts(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.keyed("k", "one"), fixture.keyed("k", "two")]).await;
    let outcome = fixture.store(vec![fixture.keyed("k", "two"), fixture.keyed("k", "one")]).await;
    let expected = [
        MessageOutcome::Duplicate { id: MessageId(3), of: MessageId(2) },
        MessageOutcome::Stored { id: MessageId(4), conflict: Some(MessageId(2)) },
    ];
    assert_eq!(outcome, expected);
}

pub async fn a_dedupe_key_expires_with_its_window(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.keyed("k", "same")]).await;
    fixture.wait(59);
    let outcome = fixture.store(vec![fixture.keyed("k", "same")]).await;
    assert_eq!(outcome, [MessageOutcome::Duplicate { id: MessageId(2), of: MessageId(1) }]);
    // A duplicate does not make the window longer.
    fixture.wait(1);
    assert_eq!(fixture.store(vec![fixture.keyed("k", "same")]).await, [stored(3)]);
    // The window is that of the key that was stored.
    let mut short = fixture.keyed("s", "same");
    short.dedupe = Some(DedupeWindow(Duration::from_secs(1)));
    fixture.store(vec![short]).await;
    fixture.wait(2);
    assert_eq!(fixture.store(vec![fixture.keyed("s", "same")]).await, [stored(5)]);
}

pub async fn without_a_window_a_dedupe_key_is_not_looked_up(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let without = || NewMessage { dedupe: None, ..fixture.keyed("k", "same") };
    assert_eq!(fixture.store(vec![without(), without()]).await, [stored(1), stored(2)]);
    assert_eq!(fixture.store.get_message(MessageId(2)).await.unwrap().unwrap().dedupe.as_deref(), Some("k"));
    // Nor is it remembered.
    assert_eq!(fixture.store(vec![fixture.keyed("k", "same")]).await, [stored(3)]);
}

pub async fn dedupe_keys_belong_to_their_interface(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let other = NewMessage {
        interface: fixture.b,
        deliveries: vec![delivery(fixture.z, 0)],
        ..fixture.keyed("k", "same")
    };
    let outcome = fixture.store(vec![fixture.keyed("k", "same"), other]).await;
    assert_eq!(outcome, [stored(1), stored(2)]);
}

pub async fn doubt_quarantines_at_once(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let mut doubted = fixture.message_to(&[(fixture.x, 3), (fixture.y, 1024)]);
    doubted.draft.doubt = Some(Failure::new("odd", "no \"trailer\""));
    let outcome = fixture.store(vec![fixture.message("fine"), doubted, fixture.message("fine")]).await;
    assert_eq!(outcome, [stored(1), stored(2), stored(3)]);
    assert_eq!(fixture.status(MessageId(2)).await, Some(MessageStatus::Quarantined));
    let view = fixture.delivery(MessageId(2), fixture.x).await;
    assert_eq!(
        (view.state, view.reason.as_deref()),
        (DeliveryState::Quarantined, Some("odd: no \"trailer\""))
    );
    assert_eq!((view.lane.number(), view.finished_at), (3, Some(fixture.now())));
    assert_eq!(fixture.lane(fixture.x, 0).await, [1, 3].map(MessageId));
    assert_eq!(fixture.lane(fixture.x, 3).await, []);
    let held = fixture.store.held_heads(fixture.x).await.unwrap();
    assert_eq!(held.iter().map(|head| head.message).collect::<Vec<_>>(), [MessageId(2)]);
}

pub async fn a_message_without_deliveries_is_finished(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[])).await;
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Finished));
    assert_eq!(fixture.store.load_messages(&[id]).await.unwrap().len(), 1);
}

pub async fn a_refused_row_stores_nothing(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let nowhere = fixture.message_to(&[(DestinationId(999), 0)]);
    let twice = fixture.message_to(&[(fixture.x, 0), (fixture.y, 0), (fixture.x, 1)]);
    let nobody = NewMessage { interface: InterfaceId(999), ..fixture.message("body") };
    for bad in [nowhere, twice, nobody] {
        fixture.refused(vec![fixture.keyed("k", "good"), bad.clone(), fixture.message("good")]).await;
        assert_eq!(fixture.all().await, []);
        let id = fixture.store_one(fixture.message("before")).await;
        let route = fixture.result(id, fixture.x, crate::Settled::Routed(vec![bad]));
        let batch = WriteBatch { results: vec![route], ..fixture.batch() };
        assert!(fixture.store.write(batch).await.is_err());
        assert_eq!(fixture.settle_one(id, super::fixture::sent()).await, super::fixture::applied());
        fixture.outlive().await;
        assert_eq!(fixture.all().await, []);
    }
    // The key of the refused batch was not remembered.
    assert!(matches!(
        fixture.store(vec![fixture.keyed("k", "good")]).await[..],
        [MessageOutcome::Stored { .. }]
    ));
}

pub async fn a_corrected_copy_and_its_original_know_each_other(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let original = fixture.store_one(fixture.message("wrogn")).await;
    assert_eq!(fixture.store.list_edits(original).await.unwrap(), []);
    fixture.wait(3);
    let (author, reason) = ("ann".into(), "a typing error".into());
    let copy = NewMessage {
        origin: Some(Origin { message: original, kind: OriginKind::Edit }),
        edited: Some(Box::new(crate::Edited { author, reason })),
        ..fixture.message("wrong")
    };
    let copy = fixture.store_one(copy).await;
    let view = fixture.store.get_message(copy).await.unwrap().unwrap();
    assert_eq!((view.origin, view.origin_kind), (Some(original), Some("edit")));
    assert_eq!(fixture.store.list_edits(original).await.unwrap(), [copy]);
    let [action] = fixture.store.list_actions(original).await.unwrap().try_into().unwrap();
    assert_eq!((action.action, action.at, action.destination), ("edit", fixture.now(), None));
    assert_eq!((action.author.as_str(), action.reason.as_str()), ("ann", "a typing error"));
    assert_eq!(fixture.store.list_actions(copy).await.unwrap(), []);
    let loaded = fixture.store.load_messages(&[original]).await.unwrap();
    assert_eq!(loaded[0].body, "wrogn", "the original stays as it was received");
}
