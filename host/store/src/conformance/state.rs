//! What plugins keep, and that it is never ahead of or behind the outcome it came with.

use bytes::Bytes;
use portway_model::{Answer, DestinationId, Failure, Round, StateWrite};

use super::Harness;
use super::fixture::{Fixture, retry, sent, topology};
use crate::{
    ActionKind, DeliveryResult, DestinationAction, DestinationActionKind, DestinationActionView, ErrorKind,
    ListStateKeys, Settled, StateKey, Store, WriteBatch,
};

const SPACE: &str = "puppet";

fn write(key: &str, value: Option<&str>) -> StateWrite {
    let value = value.map(|value| Bytes::copy_from_slice(value.as_bytes()));
    StateWrite { space: SPACE.into(), key: key.into(), value }
}

fn with(result: DeliveryResult, state: Vec<StateWrite>) -> DeliveryResult {
    DeliveryResult { state, ..result }
}

async fn get(store: &dyn Store, destination: DestinationId, key: &str) -> Option<String> {
    let value = store.get_state(destination, SPACE, key).await.unwrap()?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

async fn keys(fixture: &Fixture, prefix: &str, after: Option<&str>, limit: u32) -> Vec<String> {
    let list = ListStateKeys {
        destination: fixture.x,
        space: SPACE.into(),
        prefix: prefix.into(),
        after: after.map(str::to_owned),
        limit,
    };
    fixture.store.list_state_keys(&list).await.unwrap()
}

pub async fn state_is_stored_with_the_result_it_came_with(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let (x, y) = (fixture.x, fixture.y);
    let id = fixture.store_one(fixture.message_to(&[(x, 0), (y, 0)])).await;
    assert_eq!(get(&*fixture.store, x, "a").await, None);
    let state = vec![write("a", Some("1")), write("b", Some("")), write("c", Some("3"))];
    fixture.settle(vec![with(fixture.result(id, x, sent()), state)]).await;
    let store = &*fixture.store;
    assert_eq!(get(store, x, "a").await.as_deref(), Some("1"));
    assert_eq!(get(store, x, "b").await.as_deref(), Some(""), "an empty value is one");
    assert_eq!(get(store, y, "a").await, None, "it belongs to its destination");
    assert_eq!(store.get_state(x, "other", "a").await.unwrap(), None, "and to its use there");
    let filtered = Settled::Filtered("not ours".into());
    fixture.settle(vec![with(fixture.result(id, y, filtered), vec![write("a", Some("y"))])]).await;
    assert_eq!(get(store, y, "a").await.as_deref(), Some("y"));
    assert_eq!(get(store, x, "a").await.as_deref(), Some("1"));
}

pub async fn a_later_write_of_a_key_replaces_or_removes_it(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let x = fixture.x;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(fixture.store_one(fixture.message_to(&[(x, 0)])).await);
    }
    let first = vec![write("a", Some("1")), write("b", Some("1"))];
    let second = vec![write("a", Some("2")), write("b", None), write("none", None)];
    let results = [first, second].into_iter().zip(&ids);
    let results = results.map(|(state, id)| with(fixture.result(*id, x, sent()), state)).collect();
    fixture.settle(results).await;
    assert_eq!(get(&*fixture.store, x, "a").await.as_deref(), Some("2"), "in the order of the batch");
    assert_eq!(get(&*fixture.store, x, "b").await, None);
    assert_eq!(fixture.store.count_state(x, SPACE, 10).await.unwrap(), 1);
}

pub async fn state_of_a_stale_result_is_not_stored(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let x = fixture.x;
    let id = fixture.store_one(fixture.message_to(&[(x, 0)])).await;
    let other_round = DeliveryResult { round: Round(1), ..fixture.result(id, x, sent()) };
    fixture.settle(vec![with(other_round, vec![write("a", Some("early"))])]).await;
    assert_eq!(get(&*fixture.store, x, "a").await, None);
    let once = with(fixture.result(id, x, sent()), vec![write("a", Some("1"))]);
    let twice = with(fixture.result(id, x, sent()), vec![write("a", Some("2"))]);
    fixture.settle(vec![once, twice]).await;
    assert_eq!(get(&*fixture.store, x, "a").await.as_deref(), Some("1"));
    fixture.act(id, None, ActionKind::Resend { keep_lane: false }).await;
    fixture.settle(vec![with(fixture.result(id, x, sent()), vec![write("a", Some("late"))])]).await;
    assert_eq!(get(&*fixture.store, x, "a").await.as_deref(), Some("1"));
}

pub async fn state_outside_its_limits_or_of_what_failed_is_refused(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let x = fixture.x;
    let id = fixture.store_one(fixture.message_to(&[(x, 0)])).await;
    let large = "v".repeat(StateWrite::VALUE_BYTES_MAX + 1);
    let long = "k".repeat(StateWrite::KEY_BYTES_MAX + 1);
    let quarantined = Settled::Quarantined(Failure::new("bad", "no good"));
    let refused = [
        (sent(), write(&long, Some("1"))),
        (sent(), write("", Some("1"))),
        (sent(), write("a\0b", Some("1"))),
        (sent(), write("a", Some(&large))),
        (quarantined, write("a", Some("1"))),
        (retry(fixture.now()), write("a", Some("1"))),
    ];
    for (settled, state) in refused {
        let result = with(fixture.result(id, x, settled), vec![state]);
        let batch = WriteBatch { results: vec![result], ..fixture.batch() };
        let error = fixture.store.write(batch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    let largest = write(&long[1..], Some(&large[1..]));
    let answer = Settled::Sent(Answer::default());
    fixture.settle(vec![with(fixture.result(id, x, answer), vec![largest])]).await;
    assert_eq!(get(&*fixture.store, x, &long[1..]).await.as_deref(), Some(&large[1..]));
}

pub async fn keys_of_state_are_listed_in_byte_order(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let x = fixture.x;
    let id = fixture.store_one(fixture.message_to(&[(x, 0)])).await;
    let all = ["b", "a%", "a", "a_b", "aB", "é", "A", "a\u{10FFFF}", "b\u{7f}"];
    let state = all.iter().map(|key| write(key, Some("1"))).collect();
    fixture.settle(vec![with(fixture.result(id, x, sent()), state)]).await;
    let mut sorted = all;
    sorted.sort_unstable();
    assert_eq!(keys(&fixture, "", None, 100).await, sorted);
    assert_eq!(keys(&fixture, "a", None, 100).await, ["a", "a%", "aB", "a_b", "a\u{10FFFF}"]);
    assert_eq!(keys(&fixture, "a", Some("aB"), 1).await, ["a_b"]);
    assert_eq!(keys(&fixture, "a%", None, 100).await, ["a%"]);
    assert_eq!(keys(&fixture, "", Some("b"), 100).await, ["b\u{7f}", "é"]);
    assert_eq!(keys(&fixture, "none", None, 100).await, [""; 0]);
    assert_eq!(keys(&fixture, "", None, 0).await, [""; 0]);
    let count = async |limit| fixture.store.count_state(x, SPACE, limit).await.unwrap();
    assert_eq!((count(100).await, count(4).await, count(0).await), (9, 4, 0));
}

pub async fn state_outlives_the_process_and_the_messages_it_came_with(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let x = fixture.x;
    let id = fixture.store_one(fixture.message_to(&[(x, 0)])).await;
    fixture.settle(vec![with(fixture.result(id, x, sent()), vec![write("a", Some("1"))])]).await;
    fixture.outlive().await;
    assert_eq!(fixture.status(id).await, None);
    let store = harness.reopen(fixture.store).await;
    assert_eq!(get(&*store, x, "a").await.as_deref(), Some("1"));
}

pub async fn an_operator_removes_one_value_and_a_pause_stays(harness: &dyn Harness) {
    let mut fixture = Fixture::open(harness).await;
    let (x, y) = (fixture.x, fixture.y);
    let id = fixture.store_one(fixture.message_to(&[(x, 0), (y, 0)])).await;
    let state = || vec![write("a", Some("1")), write("b", Some("2"))];
    fixture.settle(vec![with(fixture.result(id, x, sent()), state())]).await;
    fixture.settle(vec![with(fixture.result(id, y, sent()), state())]).await;
    let act = async |fixture: &Fixture, kind: DestinationActionKind, reason: &str| {
        let action = DestinationAction { destination: x, kind, author: "ann".into(), reason: reason.into() };
        fixture.write(WriteBatch { destination_actions: vec![action], ..fixture.batch() }).await;
    };
    let remove = |space: &str, key: &str| {
        DestinationActionKind::RemoveState(StateKey { space: space.into(), key: key.into() })
    };
    act(&fixture, DestinationActionKind::Pause, "they rebuild").await;
    act(&fixture, remove("other", "b"), "of another use").await;
    act(&fixture, remove(SPACE, "none"), "is not there").await;
    act(&fixture, remove(SPACE, "a"), "counted wrong").await;
    let store = &*fixture.store;
    assert_eq!((get(store, x, "a").await, get(store, x, "b").await.as_deref()), (None, Some("2")));
    assert_eq!(get(store, y, "a").await.as_deref(), Some("1"), "of its destination alone");
    let newest = store.list_destination_actions(x).await.unwrap().remove(0);
    assert_eq!((newest.action, newest.reason.as_str()), ("remove-state", "counted wrong"));
    // However many follow, the word on the pause is not forgotten.
    for _ in 0..=DestinationActionView::KEPT_MAX {
        act(&fixture, remove(SPACE, "b"), "again").await;
    }
    let listed = fixture.store.list_destination_actions(x).await.unwrap();
    assert_eq!(listed.len(), DestinationActionView::KEPT_MAX as usize);
    fixture = fixture.reopen(harness).await;
    let pauses = fixture.store.register(&topology()).await.unwrap().pauses;
    let told: Vec<_> = pauses.iter().map(|(of, pause)| (*of, pause.reason.as_str())).collect();
    assert_eq!(told, [(x, "they rebuild")]);
    assert_eq!(get(&*fixture.store, x, "a").await, None);
}
