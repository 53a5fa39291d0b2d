//! Texts and bytes that PostgreSQL has its own ideas about: zeros, and bodies of many megabytes.

use bytes::Bytes;
use portway_model::{Answer, Attributes, DestinationId, Failure, Key, MessageId, Term};
use portway_store::{
    Action, ActionKind, Durability, ListMessages, MessageOutcome, Settled, Store as _, WriteBatch,
};

use crate::harness::{Server, batch, message, own, sent, store};

#[tokio::test]
async fn keys_and_attributes_with_a_zero_are_kept_as_they_are() {
    let server = Server::of_system();
    let opened = server.open().await;
    let mut odd = message("x");
    odd.draft.key = Key::new("a\0b");
    odd.draft.dedupe = Key::new("\0");
    odd.dedupe = Some(portway_store::DedupeWindow(std::time::Duration::from_secs(9)));
    odd.draft.attributes = Attributes::new(vec![("id".into(), "1\u{0}2".into())]).unwrap();
    odd.terms = Term::of_message(&["key".to_owned()], odd.draft.key.as_ref(), &odd.draft.attributes);
    let outcome = store(&opened, vec![odd.clone(), odd.clone()]).await.unwrap();
    assert!(matches!(outcome.messages[1], MessageOutcome::Duplicate { of: MessageId(1), .. }));
    let view = opened.get_message(MessageId(1)).await.unwrap().unwrap();
    assert_eq!((view.key.as_deref(), view.dedupe.as_deref()), (Some("a\0b"), Some("\0")));
    assert_eq!(view.attributes, odd.draft.attributes);
    assert_eq!(opened.load_messages(&[MessageId(1)]).await.unwrap()[0].key, odd.draft.key);
    for list in [
        ListMessages { key: Some("a\0b".into()), ..ListMessages::default() },
        ListMessages { text: Some("1\u{0}2".into()), ..ListMessages::default() },
    ] {
        let found = opened.list_messages(&ListMessages { limit: 9, ..list }).await.unwrap();
        assert_eq!(found.items.last().map(|item| item.id), Some(MessageId(1)));
    }
}

#[tokio::test]
async fn a_zero_in_what_people_read_is_shown_as_a_mark() {
    let server = Server::of_system();
    let opened = server.open().await;
    let epoch = own(&opened, &[1]).await.epoch;
    store(&opened, vec![message("x"), message("y")]).await.unwrap();
    let answered = Settled::Sent(Answer { code: "2\u{0}0".into(), text: String::new() });
    let failed = Settled::Quarantined(Failure::new("bad", "no\0good"));
    let results = [(1, answered), (2, failed)].map(|(id, settled)| portway_store::DeliveryResult {
        settled,
        epoch,
        ..sent(id, 1)
    });
    let action = Action {
        message: MessageId(1),
        destination: Some(DestinationId(2)),
        kind: ActionKind::Dismiss,
        author: "a\0nn".into(),
        reason: "\0".into(),
        request: Some("r\0".into()),
    };
    let write = WriteBatch { results: results.to_vec(), actions: vec![action], ..batch(Durability::Strict) };
    opened.write(write).await.unwrap();
    let reason = async |id| opened.list_deliveries(MessageId(id)).await.unwrap()[0].reason.clone().unwrap();
    assert_eq!((reason(1).await.as_str(), reason(2).await.as_str()), ("2\u{FFFD}0", "bad: no\u{FFFD}good"));
    assert_eq!(opened.list_actions(MessageId(1)).await.unwrap()[0].author, "a\u{FFFD}nn");
    assert_eq!(opened.get_state(DestinationId(1), "s\0", "k\0").await.unwrap(), None);
}

#[tokio::test]
async fn a_body_of_20_mb_reads_back_and_goes_with_its_message() {
    let server = Server::of_system();
    let opened = server.open().await;
    let body: Bytes = (0..20 << 20).map(|n: u32| (n % 249) as u8).collect();
    store(&opened, vec![message(body.clone()), message("small")]).await.unwrap();
    let loaded = opened.load_messages(&[MessageId(1), MessageId(2)]).await.unwrap();
    assert!(loaded[0].body == body && loaded[1].body == "small");
    assert_eq!(server.sql("SELECT count(*) FROM bodies"), "21");
    let results = (1..=3).map(|destination| sent(1, destination)).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Strict) }).await.unwrap();
    let later = portway_model::Timestamp(crate::harness::NOW.0 + 60 * 86_400_000);
    let expiry = portway_store::Expiry { now: later, aged_to: later, limit: 9 };
    assert_eq!(opened.expire(&expiry).await.unwrap().messages, 1);
    assert_eq!(server.sql("SELECT count(*) FROM bodies"), "1");
}
