//! Messages are found by their terms wherever these are: waiting to be filed, or filed in a bucket.

use portway_model::{Key, Term};
use portway_store::{ListMessages, NewMessage, Store};

use crate::harness::{Folder, LATER, expire, message, store};

/// More than wait, and more than a bucket holds.
const MESSAGES: u64 = 9_500;
const BATCH: u64 = 500;
const KEYS: u64 = 7;

fn with_key(number: u64) -> NewMessage {
    let mut message = NewMessage { deliveries: Vec::new(), ..message("body") };
    message.draft.key = Key::new(&format!("K{}", number % KEYS));
    message.terms =
        Term::of_message(&["key".to_owned()], message.draft.key.as_ref(), &message.draft.attributes);
    message
}

/// Everything that has the key, by pages.
async fn found(opened: &impl Store, key: &str) -> Vec<u64> {
    let mut list = ListMessages { key: Some(key.to_owned()), limit: 100, ..ListMessages::default() };
    let mut ids = Vec::new();
    loop {
        let page = opened.list_messages(&list).await.unwrap();
        ids.extend(page.items.iter().map(|message| message.id.0));
        list.before = page.next;
        if list.before.is_none() {
            return ids;
        }
    }
}

/// The numbers of messages that have key `K3`, newest first.
fn expected(numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    numbers.rev().filter(|id| id % KEYS == 3).collect()
}

#[tokio::test]
async fn messages_are_found_while_their_terms_wait_and_after_they_are_filed() {
    let folder = Folder::new();
    let opened = folder.open().await;
    for first in (0..MESSAGES / BATCH).map(|batch| batch * BATCH + 1) {
        store(&opened, (first..first + BATCH).map(with_key).collect()).await.unwrap();
        let last = first + BATCH - 1;
        assert_eq!(found(&opened, "K3").await, expected(1..=last), "after {last}");
    }
    // Those of the last batches wait: an engine that starts again knows that.
    opened.close().await.unwrap();
    let opened = folder.open().await;
    assert_eq!(found(&opened, "K3").await, expected(1..=MESSAGES));
    store(&opened, (MESSAGES + 1..=MESSAGES + BATCH).map(with_key).collect()).await.unwrap();
    assert_eq!(found(&opened, "K3").await, expected(1..=MESSAGES + BATCH));
}

#[tokio::test]
async fn a_message_that_was_removed_is_found_no_more_wherever_its_terms_were() {
    let folder = Folder::new();
    let opened = folder.open().await;
    for count in [1_100, 100] {
        store(&opened, (1..=count).map(with_key).collect()).await.unwrap();
        assert_eq!(expire(&opened, LATER).await, count);
        assert_eq!(found(&opened, "K3").await, Vec::<u64>::new());
    }
    let kept = opened.list_messages(&ListMessages::default()).await.unwrap();
    assert!(kept.items.is_empty());
}
