//! Old messages in SQLite: steps within their limits, and stores from before retention.

use portway_model::{InterfaceId, Quarantined, Retention, Tier};
use portway_store::{Expiry, Registration, Store as _, Topology};

use crate::harness::{Folder, LATER, NOW, beside, expire, message, store};

#[tokio::test]
async fn a_step_removes_no_more_than_its_limit() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let mut lonely = message("body");
    lonely.deliveries.clear();
    store(&opened, vec![lonely; 600]).await.unwrap();
    let mut removed = Vec::new();
    for limit in [0, 2, 1_000, 1_000, 1_000] {
        let step = Expiry { now: LATER, aged_to: LATER, limit };
        let expired = opened.expire(&step).await.unwrap();
        removed.push((expired.messages, expired.goes_on));
    }
    assert_eq!(removed, [(0, true), (2, true), (256, true), (256, true), (86, false)]);
}

#[tokio::test]
async fn a_store_from_before_retention_keeps_everything_until_a_shorter_one_is_confirmed() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let mut lonely = message("body");
    lonely.deliveries.clear();
    store(&opened, vec![lonely]).await.unwrap();
    opened.close().await.unwrap();
    let before = "DROP TABLE retention; DROP TABLE retention_age; PRAGMA user_version = 8;";
    beside(&folder.path()).execute_batch(before).unwrap();

    let opened = portway_store_sqlite::SqliteStore::open(folder.settings()).await.unwrap();
    let retention = Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep };
    let interface = Registration { name: "a".into(), destinations: Vec::new(), retention };
    let topology = Topology { interfaces: vec![interface], now: NOW };
    let registered = opened.register(&topology).await.unwrap();
    let (id, state) = registered.retentions[0];
    assert_eq!((id, state.in_force()), (InterfaceId(1), Retention::default()));
    assert_eq!(state.unconfirmed().map(|waiting| waiting.to), Some(retention));
    assert_eq!(registered.aged_to, Some(NOW), "the oldest message tells");
    let month = NOW + std::time::Duration::from_secs(30 * 86_400);
    assert_eq!(expire(&opened, month).await, 0);
}
