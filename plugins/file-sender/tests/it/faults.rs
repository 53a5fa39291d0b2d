//! Nothing is sent before it is on the disk, whatever fails.

use std::time::Duration;

use file_sender::{FileSender, Settings};
use portway_sdk::testing::{self, Event, describe_sends};
use portway_sdk::{Body, Call, Context, Message, Sender, blobs::Blob, files, parse_settings};

fn sender(settings: &str) -> FileSender {
    testing::reset();
    testing::grant_folder("folder");
    let settings: Settings = parse_settings(settings).unwrap();
    FileSender::open(settings, &Context::default()).unwrap()
}

fn send(sender: &mut FileSender, ordered: bool, bodies: &[&str]) -> String {
    let call = Call::new("store", ordered, Duration::from_secs(600));
    let messages = bodies.iter().zip(1..).map(|(body, id)| Message::new(*body).with_id(id)).collect();
    describe_sends(&sender.send_batch(&call, messages))
}

/// What happened, a letter an event: begin, append, sync, sent, put.
fn course() -> String {
    let letter = |event| match event {
        Event::Begin(_) => 'b',
        Event::Append { .. } => 'A',
        Event::Sync { .. } => 'S',
        Event::Sent(_) => 's',
        Event::Put { .. } => 'P',
        _ => '?',
    };
    testing::take_events().into_iter().map(letter).collect()
}

fn content() -> String {
    String::from_utf8(testing::file("folder", "messages").unwrap_or_default()).unwrap()
}

#[test]
fn a_run_is_one_append_and_one_sync_before_anything_is_sent() {
    let mut sender = sender("{}");
    send(&mut sender, true, &["one", "two", "three"]);
    assert_eq!(course(), "bbbASsss");
    assert_eq!(content(), "one\ntwo\nthree\n");
}

#[test]
fn a_failed_sync_sends_nothing_and_the_whole_run_comes_again() {
    let mut sender = sender("{}");
    testing::fail_file("sync", files::Error::Unavailable("stale handle".into()));
    let verdicts = send(&mut sender, true, &["one", "two"]);
    assert_eq!(verdicts, "unavailable folder-unavailable: cannot write `messages`: stale handle\n");
    assert_eq!(course(), "bbA");
}

#[test]
fn a_full_disk_is_trouble_and_says_so() {
    let mut sender = sender("{}");
    testing::fail_file("append", files::Error::Full);
    let verdicts = send(&mut sender, false, &["one"]);
    assert_eq!(verdicts, "unavailable disk-full: there is no room left in the folder to write `messages`\n");
    assert_eq!(course(), "b");
    assert_eq!(send(&mut sender, false, &["one"]), "sent appended: messages\n");
}

#[test]
fn half_a_record_of_a_crash_is_closed_before_the_next() {
    let mut sender = sender("{}");
    testing::put_file("folder", "messages", b"whole\nhal");
    send(&mut sender, true, &["next"]);
    assert_eq!(content(), "whole\nhal\nnext\n");
    assert_eq!(testing::logs().len(), 1);
    send(&mut sender, true, &["more"]);
    assert_eq!(content(), "whole\nhal\nnext\nmore\n");
}

#[test]
fn a_quarantined_message_in_an_ordered_run_does_not_hide_a_failed_sync() {
    let mut sender = sender("{}");
    testing::fail_file("sync", files::Error::Full);
    assert!(send(&mut sender, true, &["one", "t\nwo"]).starts_with("unavailable disk-full"));
    testing::fail_file("sync", files::Error::Full);
    let unordered = send(&mut sender, false, &["one", "t\nwo"]);
    assert!(unordered.starts_with("untried\nquarantine separator-in-message"), "{unordered}");
}

#[test]
fn what_is_synced_stays_sent_when_the_next_file_fails() {
    let mut sender = sender(r#"{"file": "{id}"}"#);
    testing::fail_file("append", files::Error::Full);
    assert!(send(&mut sender, true, &["one", "two"]).starts_with("unavailable"));
    // The first file goes well, the second does not.
    course();
    let call = Call::new("store", true, Duration::from_secs(600));
    let messages = vec![Message::new("one").with_id(1), Message::new("two").with_id(2).with_key("k")];
    testing::put_file("folder", "1", b"");
    testing::fail_file("open", files::Error::NotFound);
    testing::fail_file("open", files::Error::NotAFile);
    let result = sender.send_batch(&call, messages);
    assert_eq!(describe_sends(&result), "sent appended: 1\nuntried\n");
    assert_eq!(course(), "bbASs");
}

#[test]
fn a_large_message_goes_through_in_chunks() {
    let mut sender = sender("{}");
    let body = vec![b'x'; 5 << 20];
    let call = Call::new("store", true, Duration::from_secs(600));
    let message = Message::new(Body::from(Blob::from_bytes(&body).unwrap()));
    let result = sender.send_batch(&call, vec![message]);
    assert_eq!(describe_sends(&result), "sent appended: messages\n");
    assert!(course().ends_with("AAASs"));
    assert_eq!(content().len(), body.len() + 1);
}

#[test]
fn without_a_grant_a_person_must_act() {
    let mut sender = sender("{}");
    testing::reset();
    assert!(send(&mut sender, true, &["one"]).starts_with("misconfigured denied: "));
}

#[test]
fn in_files_mode_each_message_is_put_and_sent_by_itself() {
    let mut sender = sender(r#"{"mode": "files"}"#);
    testing::fail_file("put", files::Error::Other("odd".into()));
    let verdicts = send(&mut sender, false, &["one", "two"]);
    assert_eq!(verdicts, "retry write-failed: cannot write `1`: odd\nsent written: 2\n");
    assert_eq!(course(), "bbPs");
}
