//! How far sources have come, and what they ask of their interface.

use bytes::Bytes;
use portway_model::{InterfaceId, Timestamp};

use super::Harness;
use super::fixture::{Fixture, retry, sent};
use crate::{ErrorKind, SourceCursor, Store, WriteBatch};

fn with_cursor(fixture: &Fixture, interface: InterfaceId, cursor: &[u8]) -> WriteBatch {
    let cursor = SourceCursor { interface, cursor: Bytes::copy_from_slice(cursor) };
    let messages = vec![fixture.message("body")];
    WriteBatch { messages, cursors: vec![cursor], ..fixture.batch() }
}

async fn cursor(store: &dyn Store, interface: InterfaceId) -> Option<Bytes> {
    store.source_cursor(interface).await.unwrap()
}

pub async fn a_cursor_is_kept_with_the_messages_before_it(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let (store, own) = (&fixture.store, fixture.a);
    assert_eq!(cursor(&**store, own).await, None);
    store.write(with_cursor(&fixture, own, b"one")).await.unwrap();
    assert_eq!(cursor(&**store, own).await.as_deref(), Some(&b"one"[..]));
    assert_eq!(cursor(&**store, fixture.b).await, None);
    let alone = WriteBatch { messages: Vec::new(), ..with_cursor(&fixture, own, b"") };
    store.write(alone).await.unwrap();
    assert_eq!(cursor(&**store, own).await.as_deref(), Some(&b""[..]), "an empty one is one");
    let largest = vec![0xA5; SourceCursor::BYTES_MAX];
    store.write(with_cursor(&fixture, own, &largest)).await.unwrap();
    assert_eq!(cursor(&**store, own).await.as_deref(), Some(&largest[..]));
}

pub async fn a_refused_write_leaves_the_cursor(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let (store, own) = (&fixture.store, fixture.a);
    store.write(with_cursor(&fixture, own, b"one")).await.unwrap();
    let mut unknown = with_cursor(&fixture, own, b"two");
    unknown.cursors.push(SourceCursor { interface: InterfaceId(9_999), cursor: Bytes::new() });
    let too_long = with_cursor(&fixture, own, &vec![0; SourceCursor::BYTES_MAX + 1]);
    for refused in [unknown, too_long] {
        let error = store.write(refused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    assert_eq!(cursor(&**store, own).await.as_deref(), Some(&b"one"[..]));
}

pub async fn a_cursor_outlives_the_process(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let own = fixture.a;
    let write = with_cursor(&fixture, own, b"one");
    fixture.store.write(write).await.unwrap();
    let store = harness.reopen(fixture.store).await;
    assert_eq!(cursor(&*store, own).await.as_deref(), Some(&b"one"[..]));
}

pub async fn pending_deliveries_are_counted_up_to_a_limit(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let (x, y) = (fixture.x, fixture.y);
    let mut ids = Vec::new();
    for lane in 0..3 {
        ids.push(fixture.store_one(fixture.message_to(&[(x, lane), (y, 1_024)])).await);
    }
    let store = &fixture.store;
    let count = async |destinations: &[_], limit| store.count_pending(destinations, limit).await.unwrap();
    assert_eq!((count(&[x], 10).await, count(&[x, y], 10).await, count(&[x, y], 4).await), (3, 6, 4));
    let later = Timestamp(fixture.now().0 + 60_000);
    let results = [(x, sent()), (y, retry(later))].map(|(at, settled)| fixture.result(ids[0], at, settled));
    fixture.settle(results.into()).await;
    assert_eq!((count(&[x], 10).await, count(&[y], 10).await, count(&[], 10).await), (2, 3, 0));
}
