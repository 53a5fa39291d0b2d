//! What goes wrong on demand: failed calls, lost answers, lost power.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use portway_model::{GroupId, Timestamp};
use portway_store::memory::{Answered, Call, Faults, MemoryStore, Step};
use portway_store::{Claimed, Durability, ErrorKind, Registration, Store, Tenure, Topology, WriteBatch};

/// What becomes of the next writes, in order; then everything goes well.
#[derive(Default)]
struct Script {
    writes: Mutex<VecDeque<(Step, Answered)>>,
}

#[async_trait]
impl Faults for Script {
    async fn before(&self, call: Call) -> Step {
        match self.writes.lock().unwrap().front() {
            Some((step @ Step::Fail(_), _)) if call == Call::Write => *step,
            _ => Step::Go,
        }
    }

    async fn after(&self, call: Call) -> Answered {
        if call != Call::Write {
            return Answered::Given;
        }
        self.writes.lock().unwrap().pop_front().map_or(Answered::Given, |(_, answered)| answered)
    }
}

fn topology() -> Topology {
    let interface =
        Registration { name: "a".into(), destinations: vec!["x".into()], ..Registration::default() };
    Topology { interfaces: vec![interface], ..Topology::default() }
}

async fn claim(store: &MemoryStore) -> Tenure {
    match store.claim(&[GroupId(1)], Timestamp(1)).await.unwrap() {
        Claimed::Owned(tenure) => tenure,
        Claimed::Refused(owners) => panic!("{owners:?}"),
    }
}

fn batch(mark: u64, durability: Durability) -> WriteBatch {
    WriteBatch { mark, now: Timestamp(1), durability, ..WriteBatch::default() }
}

#[tokio::test]
async fn a_call_that_fails_before_it_runs_changes_nothing() {
    let script = Arc::new(Script::default());
    let store = MemoryStore::new(script.clone());
    store.register(&topology()).await.unwrap();
    script.writes.lock().unwrap().push_back((Step::Fail(ErrorKind::Full), Answered::Given));
    let error = store.write(batch(7, Durability::Strict)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(store.find_mark(7).await.unwrap().is_none());
}

#[tokio::test]
async fn a_lost_answer_leaves_the_write() {
    let script = Arc::new(Script::default());
    let store = MemoryStore::new(script.clone());
    script.writes.lock().unwrap().push_back((Step::Go, Answered::Lost));
    let error = store.write(batch(7, Durability::Relaxed)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert!(store.find_mark(7).await.unwrap().is_some());
}

#[tokio::test]
async fn power_loss_takes_what_was_not_flushed() {
    let store = MemoryStore::default();
    store.register(&topology()).await.unwrap();
    assert!(!claim(&store).await.unclean);
    store.write(batch(1, Durability::Relaxed)).await.unwrap();
    store.write(batch(2, Durability::Strict)).await.unwrap();
    store.write(batch(3, Durability::Relaxed)).await.unwrap();
    store.write(batch(4, Durability::Relaxed)).await.unwrap();
    assert_eq!(store.unflushed(), 2);
    store.lose_power(1);
    assert!(store.find_mark(3).await.unwrap().is_some(), "the first of the two was kept");
    store.lose_power(0);
    assert!(store.find_mark(3).await.unwrap().is_some(), "what was kept stays");
    store.crash();
    assert!(claim(&store).await.unclean);
}

#[tokio::test]
async fn a_crash_takes_nothing_that_was_written() {
    let store = MemoryStore::default();
    store.register(&topology()).await.unwrap();
    assert!(!claim(&store).await.unclean);
    store.write(batch(1, Durability::Relaxed)).await.unwrap();
    store.crash();
    assert!(store.find_mark(1).await.unwrap().is_some());
    assert!(claim(&store).await.unclean);
}

#[tokio::test]
async fn an_engine_that_lost_its_lock_and_lives_has_no_unclean_end() {
    let store = MemoryStore::default();
    store.register(&topology()).await.unwrap();
    claim(&store).await;
    for _ in 0..2 {
        store.lose_lock();
        store.mend();
        assert!(!claim(&store).await.unclean, "it lives");
    }
    store.lose_lock();
    store.mend();
    store.crash();
    assert!(claim(&store).await.unclean, "it lost its lock, and then its process ended");
    store.lose_lock();
    store.mend();
    store.close().await.unwrap();
    assert!(claim(&store).await.unclean, "another process knows nothing of what the one before had in hand");
    store.lose_lock();
    let other = store.another();
    other.register(&topology()).await.unwrap();
    let tenure = claim(&other).await;
    assert!(tenure.unclean && tenure.overlaps, "another cannot know");
    // It lost its lock as well, perhaps before it heard that it had it.
    other.lose_lock();
    other.mend();
    let tenure = claim(&other).await;
    assert!(tenure.unclean && tenure.overlaps, "nothing is over because it had it for a moment");
    other.close().await.unwrap();
    let tenure = claim(&other).await;
    assert!(!tenure.unclean && !tenure.overlaps, "it ended in order");
}
