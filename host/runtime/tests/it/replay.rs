//! A pure call can be done again: time and chance are part of it.

use std::sync::Arc;
use std::time::Duration;

use portway_model::{Timestamp, TransformVerdict};
use portway_runtime::{Runtime, RuntimeClock, RuntimeSettings};

use crate::support::{batch, component, deed, settings};

/// A clock that stands.
struct Standing(u64);

impl RuntimeClock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp(self.0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// What a guest says of time and chance for two messages, in a runtime of its own.
async fn told_at(ms: u64) -> Vec<String> {
    let settings = RuntimeSettings { clock: Arc::new(Standing(ms)), ..settings() };
    let runtime = Runtime::new(settings).unwrap();
    let plugin = runtime.load("hostile", &component("plugins-test", "hostile-transform")).await.unwrap();
    let transformer = plugin.transformer(deed("tell-time", "")).unwrap();
    let verdicts = transformer.transform(&batch(&["one", "two"])).await.result.unwrap();
    let text = |verdict: &TransformVerdict| match verdict {
        TransformVerdict::Deliver(outputs) => String::from_utf8(outputs[0].body.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    verdicts.iter().map(text).collect()
}

#[tokio::test]
async fn a_pure_call_done_again_sees_the_same_time_and_chance() {
    let first = told_at(1_234_567).await;
    assert_eq!(first, told_at(1_234_567).await);
    assert!(first[0].starts_with("wall Ok(1234567) passed 1000 drawn true"), "{}", first[0]);
    assert_ne!(first[0], first[1], "each message has chances of its own");
    let later = told_at(7_654_321).await;
    assert_eq!(later[0], first[0].replace("1234567", "7654321"), "only the time of the attempt differs");
}
