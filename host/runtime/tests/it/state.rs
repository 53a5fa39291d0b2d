//! `state`: what a call sees, what it gives back to be stored, and its limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::TransformVerdict;
use portway_runtime::{Batch, Call, Grant, Opening, StateGrant, StateStore, Transformer, Written};

use crate::support::{batch, plugin};

/// What is stored, and whether it can be reached.
#[derive(Default)]
struct Kept {
    values: Mutex<BTreeMap<String, Bytes>>,
    is_away: bool,
    reads: Mutex<u32>,
}

impl Kept {
    fn of<const N: usize>(values: [(&str, &str); N]) -> Arc<Kept> {
        let values = values.map(|(key, value)| (key.to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        Arc::new(Kept { values: Mutex::new(values.into()), ..Kept::default() })
    }

    /// As the engine does with what counts.
    fn store(&self, written: &[Written]) {
        let mut values = self.values.lock().unwrap();
        for write in written.iter().flat_map(|one| &one.writes) {
            assert_eq!(&*write.space, "puppet");
            match &write.value {
                Some(value) => values.insert(write.key.clone(), value.clone()),
                None => values.remove(&write.key),
            };
        }
    }

    fn read<T>(&self, read: impl FnOnce(&BTreeMap<String, Bytes>) -> T) -> Result<T, String> {
        *self.reads.lock().unwrap() += 1;
        if self.is_away { Err("it is away".into()) } else { Ok(read(&self.values.lock().unwrap())) }
    }
}

#[async_trait]
impl StateStore for Kept {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        self.read(|values| values.get(key).cloned())
    }

    async fn keys(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, String> {
        self.read(|values| {
            let fitting = values.keys().filter(|key| key.starts_with(prefix));
            let behind = fitting.filter(|key| after.is_none_or(|after| key.as_str() > after));
            behind.take(limit as usize).cloned().collect()
        })
    }

    async fn count(&self, limit: u32) -> Result<u32, String> {
        self.read(|values| u32::try_from(values.len()).unwrap().min(limit))
    }
}

async fn puppet(kept: &Arc<Kept>, keys_max: u32) -> Transformer {
    let mut opening = Opening::new("lab", "archive", "{}");
    let grant = StateGrant { space: "puppet".into(), keys_max, store: kept.clone() };
    opening.grants.0.insert("memory".into(), Grant::State(grant));
    plugin("plugins-test", "puppet-transform").await.transformer(opening).unwrap()
}

fn ordered(commands: &[&str]) -> Batch {
    Batch { ordered: true, ..batch(commands) }
}

fn answers(call: &Call<Vec<TransformVerdict>>) -> Vec<String> {
    let answer = |verdict: &TransformVerdict| match verdict {
        TransformVerdict::Deliver(outputs) => String::from_utf8(outputs[0].body.to_vec()).unwrap(),
        TransformVerdict::Filter(reason) => format!("filter: {reason}"),
        other => format!("{other:?}"),
    };
    call.result.as_ref().unwrap().iter().map(answer).collect()
}

fn by_message(call: &Call<Vec<TransformVerdict>>) -> Vec<(u32, Vec<String>)> {
    let keys = |one: &Written| one.writes.iter().map(|write| write.key.clone()).collect();
    call.state.iter().map(|one| (one.index, keys(one))).collect()
}

#[tokio::test]
async fn in_order_a_message_reads_what_the_one_before_it_wrote() {
    let kept = Kept::of([("n", "7")]);
    let puppet = puppet(&kept, 100).await;
    let call = puppet.transform(&ordered(&["count n", "get other", "count n\nput a 1", "count n"])).await;
    assert_eq!(answers(&call), ["8", "nothing", "9; put", "10"]);
    assert_eq!(
        by_message(&call),
        [(0, vec!["n".into()]), (2, vec!["a".into(), "n".into()]), (3, vec!["n".into()])]
    );
    assert_eq!(kept.values.lock().unwrap()["n"], "7", "nothing is stored by the call");
    kept.store(&call.state);
    assert_eq!(answers(&puppet.transform(&ordered(&["get n"])).await), ["10"]);
}

#[tokio::test]
async fn without_order_each_message_sees_itself_and_what_is_stored() {
    let kept = Kept::of([("n", "7")]);
    let puppet = puppet(&kept, 100).await;
    let call = puppet.transform(&batch(&["count n\ncount n", "count n", "delete n\nget n", "get n"])).await;
    assert_eq!(answers(&call), ["8; 9", "8", "deleted; nothing", "7"]);
}

#[tokio::test]
async fn a_scan_shows_what_is_stored_with_the_calls_own_writes_over_it() {
    let kept = Kept::of([("a1", ""), ("a2", ""), ("b", "")]);
    let puppet = puppet(&kept, 100).await;
    let call = puppet.transform(&ordered(&["put a3 x\ndelete a1\nscan a", "scan a", "scan "])).await;
    assert_eq!(answers(&call), ["put; deleted; a2,a3", "a2,a3", "a2,a3,b"]);
}

#[tokio::test]
async fn a_call_without_writes_gives_nothing_back() {
    let kept = Kept::of([]);
    let call = puppet(&kept, 100).await.transform(&ordered(&["get n", "filter"])).await;
    assert_eq!(call.state.capacity(), 0);
    assert_eq!(answers(&call)[1], "filter: told to");
}

#[tokio::test]
async fn what_a_message_wrote_before_it_failed_comes_back_under_its_own_number() {
    let kept = Kept::of([]);
    let puppet = puppet(&kept, 100).await;
    let call = puppet.transform(&ordered(&["put a 1", "put b 1\nquarantine", "put c 1\nretry"])).await;
    assert_eq!(call.state.len(), 3, "what counts of it follows from the verdicts");
    let trapped = puppet.transform(&ordered(&["put a 1", "put b 1\ntrap"])).await;
    assert!(trapped.result.is_err());
    assert_eq!(trapped.begun, Some(1));
}

#[tokio::test]
async fn limits_are_answered_and_the_call_goes_on() {
    let kept = Kept::of([("old", "")]);
    let puppet = puppet(&kept, 3).await;
    let long = "k".repeat(257);
    let large = "v".repeat((64 << 10) + 1);
    let many: Vec<String> =
        (0..65).map(|_| "delete none".to_owned()).chain((0..65).map(|n| format!("delete {n}"))).collect();
    let commands = [
        format!("put {long} 1"),
        format!("put a {large}"),
        "put  1\nget ".to_owned(),
        "put a 1\nput b 1\nput c 1\nput old 2\nput a 2".to_owned(),
        many.join("\n"),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let answers = answers(&puppet.transform(&ordered(&commands)).await);
    assert_eq!(answers[..2], ["QuotaExceeded", "QuotaExceeded"]);
    assert_eq!(answers[2], "Other(\"a key has 1 to 256 bytes and no zero byte\"); nothing");
    assert!(answers[3].starts_with("put; put; "), "{}", answers[3]);
    assert!(answers[3].ends_with("; put; put"), "a key that is there can be written: {}", answers[3]);
    assert_eq!(answers[4].matches("QuotaExceeded").count(), 2, "64 keys for one message");
}

#[tokio::test]
async fn keys_are_limited_by_the_grant() {
    let kept = Kept::of([("1", ""), ("2", "")]);
    let puppet = puppet(&kept, 3).await;
    for _ in 0..2 {
        // Dropped by whoever called: they count no longer once it seems to be too many.
        let call = puppet.transform(&ordered(&["put 3 x"])).await;
        assert_eq!(answers(&call), ["put"]);
    }
    let call = puppet.transform(&ordered(&["put 3 x"])).await;
    kept.store(&call.state);
    assert_eq!(answers(&puppet.transform(&ordered(&["put 4 x\nput 2 x"])).await), ["QuotaExceeded; put"]);
}

#[tokio::test]
async fn without_a_grant_all_is_denied_and_without_a_store_unavailable() {
    let all = "get a\nput a 1\ndelete a\nscan a";
    let opening = Opening::new("lab", "archive", "{}");
    let nothing = plugin("plugins-test", "puppet-transform").await.transformer(opening).unwrap();
    assert!(!nothing.keeps_state());
    assert_eq!(answers(&nothing.transform(&ordered(&[all])).await), ["Denied; Denied; Denied; Denied"]);
    let away = Arc::new(Kept { is_away: true, ..Kept::default() });
    let puppet = puppet(&away, 10).await;
    assert!(puppet.keeps_state());
    let call = puppet.transform(&ordered(&["get a\nscan a"])).await;
    assert_eq!(answers(&call), ["Unavailable(\"it is away\"); Unavailable(\"it is away\")"]);
}
