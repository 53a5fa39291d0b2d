//! The log, free pages, cancelled calls, other users of the file.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use portway_model::MessageId;
use portway_store::{Durability, ErrorKind, Store as _, WriteBatch};

use crate::harness::{Folder, LATER, batch, beside, expire, message, sent, store};

#[tokio::test]
async fn the_log_begins_anew_while_it_is_written() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let mut largest = 0;
    for n in 0..60 {
        store(&opened, (0..20).map(|_| message(vec![7; 100_000])).collect()).await.unwrap();
        opened.list_queues().await.unwrap();
        if n % 10 == 9 {
            let found = opened.maintain(Duration::from_secs(60)).await.unwrap();
            assert_eq!(found.log_bytes, 0);
        }
        let log = std::fs::metadata(folder.folder.path().join("store.db-wal")).unwrap().len();
        largest = largest.max(log);
    }
    // 120 MB went through it.
    assert!(largest < 60 << 20, "{largest}");
    opened.close().await.unwrap();
    assert!(!folder.folder.path().join("store.db-wal").exists());
}

#[tokio::test]
async fn space_of_removed_messages_is_given_back() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let mut lonely = message(vec![7; 500_000]);
    lonely.deliveries.clear();
    for _ in 0..10 {
        store(&opened, vec![lonely.clone(); 10]).await.unwrap();
        opened.maintain(Duration::from_secs(60)).await.unwrap();
    }
    let bytes = || std::fs::metadata(folder.path()).unwrap().len();
    assert!(bytes() > 50_000_000);
    assert_eq!(expire(&opened, LATER).await, 100);
    opened.maintain(Duration::from_secs(60)).await.unwrap();
    opened.maintain(Duration::from_secs(60)).await.unwrap();
    // Some is kept for the next messages.
    assert!(bytes() < 20_000_000, "{}", bytes());
}

#[tokio::test]
async fn a_cancelled_write_happens_or_does_not() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let mut cancelled = 0;
    for polls in 0..40 {
        let before = count(&opened).await;
        let write = WriteBatch {
            messages: vec![message("first"), message(vec![7; 2 << 20]), message("third")],
            ..batch(Durability::Strict)
        };
        let mark = write.mark;
        let finished = poll_some(opened.write(write), polls);
        cancelled += u64::from(!finished);
        // The database may still be at it: asking for the mark waits for it.
        let happened = opened.find_mark(mark).await.unwrap().is_some();
        assert!(happened || !finished);
        assert_eq!(count(&opened).await, before + if happened { 3 } else { 0 });
        let outcome = store(&opened, vec![message("next")]).await.unwrap();
        assert_eq!(outcome.messages.len(), 1);
    }
    assert!(cancelled > 0);
}

/// Polls a future so many times, letting others run in between; whether it finished.
fn poll_some<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).any(|_| {
        std::thread::yield_now();
        matches!(future.as_mut().poll(&mut context), Poll::Ready(_))
    })
}

async fn count(opened: &portway_store_sqlite::SqliteStore) -> u64 {
    let queues = opened.list_queues().await.unwrap();
    queues.first().map_or(0, |queue| queue.waiting)
}

#[tokio::test]
async fn a_file_another_program_writes_to_is_unavailable_until_it_ends() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let shell = beside(&folder.path());
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store(&opened, vec![message("body")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    shell.execute_batch("ROLLBACK").unwrap();
    drop(shell);
    store(&opened, vec![message("body")]).await.unwrap();
    let results = WriteBatch { results: vec![sent(1, 1)], ..batch(Durability::Relaxed) };
    opened.write(results).await.unwrap();
    assert_eq!(opened.load_messages(&[MessageId(1)]).await.unwrap().len(), 1);
}
