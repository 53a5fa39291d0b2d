//! No room: what is refused, what goes on, and that it ends by itself.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use portway_model::MessageId;
use portway_store::{Durability, ErrorKind, Store as _, WriteBatch};
use portway_store_sqlite::{SqliteSettings, SqliteStore};

use crate::harness::{Folder, batch, message, register, sent, store};

#[tokio::test]
async fn below_the_floor_messages_are_refused_and_results_are_not() {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, vec![message("body")]).await.unwrap();
    opened.close().await.unwrap();
    let starved = SqliteSettings { free_floor_bytes: u64::MAX, ..folder.settings() };
    let opened = SqliteStore::open(starved).await.unwrap();
    register(&opened).await;
    assert_eq!(store(&opened, vec![message("body")]).await.unwrap_err().kind(), ErrorKind::Full);
    let results = WriteBatch { results: vec![sent(1, 1)], ..batch(Durability::Strict) };
    opened.write(results).await.unwrap();
    let found = opened.maintain(Duration::from_secs(1)).await.unwrap();
    assert!(found.full && found.free_bytes.is_some());
}

#[tokio::test]
async fn a_log_above_its_limit_closes_intake_until_it_is_moved() {
    let folder = Folder::new();
    let small = SqliteSettings { wal_bytes_max: 2 << 20, ..folder.settings() };
    let opened = SqliteStore::open(small).await.unwrap();
    register(&opened).await;
    let mut kind = None;
    for _ in 0..30 {
        if let Err(error) = store(&opened, vec![message(vec![7; 500_000])]).await {
            kind = Some(error.kind());
            break;
        }
    }
    assert_eq!(kind, Some(ErrorKind::Full));
    assert!(!opened.maintain(Duration::from_secs(5)).await.unwrap().full);
    store(&opened, vec![message("body")]).await.unwrap();
}

/// A small disk, as long as it is held. None where mounting is not allowed.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(at);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // Lazily: files of the store may still be open.
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_costs_nothing_that_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else {
        println!("skipped: mounting a small disk is not allowed here");
        return;
    };
    // Somebody else's, who gives a little room back before the store is opened again.
    let other = folder.path().join("other");
    std::fs::write(&other, vec![7; 256 << 10]).unwrap();
    let settings =
        SqliteSettings { free_floor_bytes: 0, ..SqliteSettings::new(folder.path().join("store.db")) };
    let opened = SqliteStore::open(settings.clone()).await.unwrap();
    register(&opened).await;
    let mut stored = 0;
    let kind = loop {
        match store(&opened, vec![message(vec![7; 200_000])]).await {
            Ok(_) => stored += 1,
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(kind, ErrorKind::Full);
    assert!(stored > 3);
    // A large body, which is written ahead, meets it as well and leaves nothing.
    let error = store(&opened, vec![message(vec![7; 9 << 20])]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    let loaded = opened.load_messages(&(1..=stored).map(MessageId).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(loaded.len() as u64, stored);
    assert!(loaded.iter().all(|message| message.body.len() == 200_000));
    opened.maintain(Duration::from_secs(1)).await.unwrap();
    drop(opened);
    std::fs::remove_file(other).unwrap();
    let opened = SqliteStore::open(settings).await.unwrap();
    assert_eq!(opened.load_messages(&[MessageId(stored)]).await.unwrap().len(), 1);
}
