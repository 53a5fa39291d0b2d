//! Which calls share an instance, and when one is replaced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portway_model::TransformVerdict;
use portway_net::folder::{Access, FolderGrant};
use portway_runtime::{
    CallError, CallLimits, Grant, Grants, Isolation, Opening, Plugin, Runtime, RuntimeSettings,
};

use crate::support::{batch, bytes_batch, component, deed, deed_with, limits, settings};

/// A runtime of its own, so that instances can be counted.
async fn alone(settings: RuntimeSettings) -> (Runtime, Plugin) {
    let runtime = Runtime::new(settings).unwrap();
    let plugin = runtime.load("hostile", &component("plugins-test", "hostile-transform")).await.unwrap();
    (runtime, plugin)
}

async fn passes(plugin: &Plugin, opening: Opening) {
    let transformer = plugin.transformer(opening).unwrap();
    assert_eq!(transformer.transform(&batch(&["good"])).await.result.unwrap(), [TransformVerdict::Pass]);
}

#[tokio::test]
async fn openings_with_equal_grants_and_limits_share_an_instance() {
    let (runtime, plugin) = alone(settings()).await;
    assert_eq!(runtime.instances(), 0, "nothing runs before it is needed");
    let openings = [deed("none", "a"), deed("none", "b"), deed("trap", "bad")];
    let transformers = openings.map(|opening| plugin.transformer(opening).unwrap());
    for transformer in &transformers {
        assert!(transformer.transform(&batch(&["good"])).await.result.is_ok());
    }
    assert_eq!(plugin.counts().instances, 1);
    let other = deed_with("none", "", CallLimits { memory_bytes: 32 << 20, ..limits() });
    let other = plugin.transformer(other).unwrap();
    assert!(other.transform(&batch(&["good"])).await.result.is_ok());
    assert_eq!(plugin.counts().instances, 2, "other limits");
}

#[tokio::test]
async fn other_grants_are_another_instance() {
    let runtime = Runtime::new(settings()).unwrap();
    let plugin = runtime.load("file", &component("plugins", "file-sender")).await.unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let opening = |folder: &tempfile::TempDir| {
        let grant = Grant::Folder(FolderGrant { path: folder.path().into(), access: Access::Write });
        let settings = r#"{"mode": "append", "file": "f"}"#;
        Opening {
            grants: Grants(BTreeMap::from([("folder".to_owned(), grant)])),
            ..Opening::new("lab", "a", settings)
        }
    };
    let mut senders = Vec::new();
    for (folder, instances) in [(0, 1), (0, 1), (1, 2)] {
        let sender = plugin.sender(opening(&folders[folder])).unwrap();
        assert!(sender.send(&batch(&["one"])).await.result.is_ok());
        senders.push(sender);
        assert_eq!(plugin.counts().instances, instances);
    }
}

#[tokio::test]
async fn a_fault_of_one_opening_is_not_seen_by_another() {
    let (_runtime, plugin) = alone(settings()).await;
    let bad = plugin.transformer(deed("trap", "")).unwrap();
    let good = plugin.transformer(deed("none", "")).unwrap();
    for _ in 0..3 {
        assert!(good.transform(&batch(&["x"])).await.result.is_ok());
        assert!(matches!(bad.transform(&batch(&["x"])).await.result, Err(CallError::Fault(_))));
        assert!(good.transform(&batch(&["x"])).await.result.is_ok());
    }
}

#[tokio::test]
async fn a_call_apart_gets_a_fresh_instance() {
    let (runtime, plugin) = alone(settings()).await;
    let opening = Opening { isolation: Isolation::Call, ..deed("none", "") };
    let transformer = plugin.transformer(opening).unwrap();
    for calls in 1..=3 {
        assert!(transformer.transform(&batch(&["good"])).await.result.is_ok());
        assert_eq!(plugin.counts().instances, calls);
    }
    assert_eq!(runtime.instances(), 0);
}

#[tokio::test]
async fn more_openings_than_an_instance_holds_still_work() {
    let (_runtime, plugin) = alone(settings()).await;
    let transformers: Vec<_> =
        (0..300).map(|n| plugin.transformer(deed("none", &format!("{n}"))).unwrap()).collect();
    for _ in 0..2 {
        for transformer in &transformers {
            assert!(transformer.transform(&batch(&["good"])).await.result.is_ok());
        }
    }
    assert_eq!(plugin.counts().instances, 1);
}

#[tokio::test]
async fn calls_side_by_side_get_instances_of_their_own_up_to_the_limit() {
    let few = RuntimeSettings { instances_per_pool_max: 2, ..settings() };
    let (_runtime, plugin) = alone(few).await;
    let rich = CallLimits { fuel_per_message: 200_000_000, ..limits() };
    let transformer = Arc::new(plugin.transformer(deed_with("endless-loop", "bad", rich)).unwrap());
    let calls = (0..6).map(|_| {
        let transformer = transformer.clone();
        tokio::spawn(async move { transformer.transform(&batch(&["bad"])).await.result.is_err() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    // Each fault costs an instance; there were never more than two at once.
    assert_eq!(plugin.counts().instances, 6);
}

#[tokio::test]
async fn a_call_that_finds_no_place_in_time_is_told() {
    let one = RuntimeSettings { instances_max: 1, ..settings() };
    let (_runtime, plugin) = alone(one).await;
    let rich =
        CallLimits { fuel_per_message: u64::MAX >> 2, call_timeout: Duration::from_millis(600), ..limits() };
    let slow = plugin.transformer(deed_with("endless-loop", "", rich)).unwrap();
    let short = CallLimits { call_timeout: Duration::from_millis(100), ..limits() };
    let other = plugin.transformer(deed_with("none", "", short)).unwrap();
    let (bad, good) = (batch(&["x"]), batch(&["x"]));
    let (first, second) = tokio::join!(slow.transform(&bad), other.transform(&good));
    assert!(matches!(first.result, Err(CallError::Fault(_))));
    assert!(matches!(second.result, Err(CallError::Busy)), "{:?}", second.result);
    passes(&plugin, deed("none", "")).await;
}

#[tokio::test]
async fn idle_instances_make_room_and_are_released() {
    let settings = RuntimeSettings { instances_max: 1, instance_idle: Duration::ZERO, ..settings() };
    let (runtime, plugin) = alone(settings).await;
    let first = plugin.transformer(deed("none", "")).unwrap();
    assert!(first.transform(&batch(&["x"])).await.result.is_ok());
    let other =
        plugin.transformer(deed_with("none", "", CallLimits { memory_bytes: 32 << 20, ..limits() })).unwrap();
    assert!(other.transform(&batch(&["x"])).await.result.is_ok(), "the idle one made room");
    assert_eq!(runtime.instances(), 1);
    assert_eq!(runtime.release_idle(), 1);
    assert_eq!(runtime.instances(), 0);
    assert!(first.transform(&batch(&["x"])).await.result.is_ok());
}

#[tokio::test]
async fn only_so_many_instances_wait_for_work() {
    let (runtime, plugin) = alone(RuntimeSettings { instances_idle_max: 3, ..settings() }).await;
    let opening = |n: usize| deed_with("none", "", CallLimits { memory_bytes: (32 + n) << 20, ..limits() });
    let transformers: Vec<_> = (0..10).map(|n| plugin.transformer(opening(n)).unwrap()).collect();
    for transformer in &transformers {
        assert!(transformer.transform(&batch(&["x"])).await.result.is_ok());
    }
    assert_eq!(runtime.instances(), 3);
    drop(transformers);
    assert_eq!(runtime.instances(), 0);
    passes(&plugin, deed("none", "")).await;
}

#[tokio::test]
async fn an_instance_is_replaced_after_some_ten_thousand_calls() {
    let (_runtime, plugin) = alone(settings()).await;
    let transformer = plugin.transformer(deed("none", "")).unwrap();
    let one = batch(&["x"]);
    for calls in 0..13_000 {
        assert!(transformer.transform(&one).await.result.is_ok());
        assert!(calls > 7_000 || plugin.counts().instances == 1, "replaced after {calls}");
    }
    assert_eq!(plugin.counts().instances, 2);
}

#[tokio::test]
async fn an_instance_that_was_given_sixty_thousand_handles_is_replaced() {
    let (_runtime, plugin) = alone(settings()).await;
    let transformer = plugin.transformer(deed("hoard-handles", "")).unwrap();
    // 7,000 a call: the ninth is the first that begins with more than 60,000 given.
    for (call, instances) in (1..=10).zip([1, 1, 1, 1, 1, 1, 1, 1, 1, 2]) {
        assert_eq!(transformer.transform(&batch(&["x"])).await.result.unwrap(), [TransformVerdict::Pass]);
        assert_eq!(plugin.counts().instances, instances, "call {call}");
    }
    assert_eq!(plugin.counts().faults, 0);
}

#[tokio::test]
async fn an_instance_near_its_memory_limit_is_replaced_before_it_faults() {
    let (_runtime, plugin) = alone(settings()).await;
    let limits = CallLimits { memory_bytes: 16 << 20, ..limits() };
    let transformer = plugin.transformer(deed_with("none", "", limits)).unwrap();
    let mut kib = 256;
    while plugin.counts().instances < 2 {
        let large = bytes_batch(vec![vec![b'x'; kib << 10].into()]);
        assert!(transformer.transform(&large).await.result.is_ok(), "{kib} KiB");
        kib += 128;
    }
    assert_eq!(plugin.counts().faults, 0);
}
