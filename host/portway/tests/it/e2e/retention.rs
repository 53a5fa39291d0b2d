//! A shorter retention in a real engine: it waits, is confirmed, removes what is old over a kill, and
//! gives the room back to the disk.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portway_admin::views;
use portway_model::{Attributes, Draft, GroupId, MessageId, Timestamp};
use portway_store::{Durability, Expiry, NewMessage, Registration, Topology, WriteBatch};

use super::project::StoreKind;
use super::{Project, until};

on_both_stores!(a_shorter_retention_waits_is_confirmed_and_gives_the_room_back);

/// Old messages, and young ones behind them.
const OLD: u64 = 2_000;
const YOUNG: u64 = 10;
const BODY_BYTES: usize = 32 << 10;
const DAY: Duration = Duration::from_secs(86_400);

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since.as_millis()).unwrap())
}

fn project(store: StoreKind, retention: &str) -> Project {
    let project = Project::on(
        store,
        &format!("[store]\nfree_bytes_min = \"16MB\"\n{retention}\n[limits]\nprune_every = \"1s\"\n"),
    );
    project.interface("lab", "[source]\nplugin = \"http\"\nlisten = \"127.0.0.1:0\"\npath = \"/in\"\n");
    project
}

/// Messages of a month ago and of now, as an engine that ran all the time stored them.
async fn fill(project: &Project) {
    let store = project.open_store().await;
    let interface = Registration { name: "lab".into(), ..Registration::default() };
    let registered =
        store.register(&Topology { interfaces: vec![interface], now: now() - 30 * DAY }).await.unwrap();
    let id = registered.interfaces[0].0;
    let message = || NewMessage {
        interface: id,
        group: GroupId(id.0),
        received_at: now(),
        draft: Draft {
            body: vec![7; BODY_BYTES].into(),
            key: None,
            dedupe: None,
            occurred_at: None,
            attributes: Attributes::default(),
            doubt: None,
        },
        dedupe: None,
        origin: None,
        edited: None,
        terms: Vec::new(),
        deliveries: Vec::new(),
    };
    for mark in 1..=OLD / 100 {
        let messages = (0..100).map(|_| message()).collect();
        let now = now() - 30 * DAY;
        let batch =
            WriteBatch { mark, now, durability: Durability::Relaxed, messages, ..WriteBatch::default() };
        store.write(batch).await.unwrap();
    }
    let messages = (0..YOUNG).map(|_| message()).collect();
    store.write(WriteBatch { mark: 1_000, now: now(), messages, ..WriteBatch::default() }).await.unwrap();
    store.expire(&Expiry { now: now(), aged_to: now(), limit: 1 }).await.unwrap();
    store.close().await.unwrap();
}

async fn retention(project: &Project) -> views::Retention {
    let shown = project.portway(&["retention", "--json"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let mut all: views::Retentions = serde_json::from_str(&shown.stdout).unwrap();
    all.interfaces.remove(0)
}

fn file_bytes(project: &Project) -> u64 {
    fs::metadata(project.path().join("data/portway.db")).unwrap().len()
}

async fn a_shorter_retention_waits_is_confirmed_and_gives_the_room_back(store: StoreKind) {
    let project = project(store, "retention = \"1w\"");
    fill(&project).await;
    // A database gives room back with whole periods, which its own tests show.
    let before = (store == StoreKind::Sqlite).then(|| file_bytes(&project));
    assert!(before.is_none_or(|before| before > OLD * BODY_BYTES as u64), "{before:?}");

    // It removes messages: it waits, over a restart, and says so.
    let mut engine = project.run().await;
    let waiting = retention(&project).await.waiting.unwrap();
    assert!(waiting.needs_confirmation);
    assert_eq!(waiting.removes, Some(views::Counted { count: OLD, at_least: false }));
    engine.stop().await;
    let mut engine = project.run().await;
    let again = retention(&project).await;
    assert_eq!(again.waiting.as_ref().map(|waiting| waiting.since), Some(waiting.since));
    assert_eq!((again.applied.retention.as_str(), engine.status().await.store.pruned), ("7w", 0));
    let shown = project.portway(&["retention"]).await;
    assert!(shown.stdout.contains("confirm it: portway retention confirm lab"), "{shown:?}");

    // It is confirmed, and the engine dies while it removes.
    let confirmed = project.portway(&["retention", "confirm", "lab", "--reason", "the disk"]).await;
    assert_eq!(confirmed.stdout, "lab keeps its messages for 1w now; older ones go\n", "{confirmed:?}");
    let refused = project.portway(&["retention", "confirm", "lab"]).await;
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("nothing-to-confirm"), "{refused:?}");
    until("some are removed", async || (engine.status().await.store.pruned > 0).then_some(())).await;
    engine.kill();

    // The next one finishes it, and gives the room back.
    let mut engine = project.run().await;
    let over = async || retention(&project).await.change.is_none().then_some(());
    until("the change is over", over).await;
    let done = retention(&project).await;
    assert_eq!((done.applied.retention.as_str(), done.waiting), ("1w", None));
    let record = done.confirmed.unwrap();
    assert_eq!((record.author.as_str(), record.reason.as_str()), ("tester", "the disk"));
    assert!(engine.status().await.store.pruned < OLD, "the first engine removed some of them");
    if let Some(before) = before {
        until("the file is smaller", async || (file_bytes(&project) < before / 2).then_some(())).await;
    }
    engine.stop().await;

    let store = project.open_store().await;
    assert_eq!(store.load_messages(&[MessageId(1), MessageId(OLD)]).await.unwrap(), []);
    let young: Vec<MessageId> = (OLD + 1..=OLD + YOUNG).map(MessageId).collect();
    assert_eq!(store.load_messages(&young).await.unwrap().len(), YOUNG as usize);
    store.close().await.unwrap();
}
