//! Large bodies: in pieces, without leftovers.

use portway_model::MessageId;
use portway_store::{Durability, Store as _, WriteBatch};

use crate::harness::{Folder, LATER, batch, beside, expire, message, sent, store};

fn large(seed: usize) -> Vec<u8> {
    (0..20_usize << 20).map(|n| (n.wrapping_mul(31).wrapping_add(seed) >> 3) as u8).collect()
}

fn chunks(folder: &Folder) -> i64 {
    let count = "SELECT count(*) FROM body_chunks";
    beside(&folder.path()).query_row(count, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_body_of_20_mb_reads_back_and_goes_with_its_message() {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, vec![message(large(1)), message("small"), message(large(2))]).await.unwrap();
    let loaded = opened.load_messages(&[1, 2, 3].map(MessageId)).await.unwrap();
    assert!(loaded[0].body == large(1) && loaded[1].body == "small" && loaded[2].body == large(2));
    assert_eq!(chunks(&folder), 40);
    let results = (1..=3).map(|destination| sent(1, destination)).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Relaxed) }).await.unwrap();
    assert_eq!(expire(&opened, LATER).await, 1);
    assert_eq!(chunks(&folder), 20);
}

#[tokio::test]
async fn what_was_written_ahead_for_nothing_goes() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let mut twice = message(large(1));
    twice.deliveries.push(twice.deliveries[0]);
    assert!(store(&opened, vec![message(large(2)), twice]).await.is_err());
    assert_eq!(chunks(&folder), 0);
    // A process that died between the pieces and the commit leaves them.
    let orphan = "INSERT INTO body_chunks VALUES (77, 0, x'00'), (77, 1, x'00')";
    beside(&folder.path()).execute(orphan, []).unwrap();
    store(&opened, vec![message(large(3))]).await.unwrap();
    assert_eq!(chunks(&folder), 22);
    drop(opened);
    let opened = folder.open().await;
    assert_eq!(chunks(&folder), 20);
    assert!(opened.load_messages(&[MessageId(1)]).await.unwrap()[0].body == large(3));
}
