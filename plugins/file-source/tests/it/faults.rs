//! Folders and files that fail: a clear state each, and never a loop.

use portway_sdk::{Trouble, files, testing};

use crate::{bodies, codes, open, stage};

fn code_of(trouble: &Trouble) -> (&str, &str) {
    match trouble {
        Trouble::Unavailable(later) => ("unavailable", &later.failure.code),
        Trouble::Misconfigured(failure) => ("misconfigured", &failure.code),
    }
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone_until_it_changes() {
    stage();
    testing::put_file("inbox", "bad", b"[1,");
    testing::set_modified("inbox", "bad", 1);
    testing::put_file("inbox", "good", b"[2]");
    let mut host = open(r#"{"settle":"0ms","split":"json-array"}"#);
    for _ in 0..3 {
        host.drain().unwrap();
        host.restart().unwrap();
    }
    assert_eq!(bodies(&host), ["1", "2"]);
    assert_eq!(codes(), ["invalid-json"], "told once");
    assert_eq!((testing::paths("inbox"), testing::paths("done")), (vec!["bad".into()], vec!["good".into()]));
    testing::pass_time(1);
    testing::edit_file("inbox", "bad", |bytes| bytes.extend(b"3]"));
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["1", "2", "1", "3"]);
}

#[test]
fn with_stop_a_file_that_cannot_be_read_stops_the_source_until_it_is_gone() {
    stage();
    testing::put_file("inbox", "bad", b"[1,]");
    testing::set_modified("inbox", "bad", 1);
    testing::put_file("inbox", "good", b"[2]");
    let mut host = open(r#"{"settle":"0ms","split":"json-array","on_error":"stop"}"#);
    host.turn().unwrap();
    assert_eq!(bodies(&host), ["1"], "what was right before is stored");
    for _ in 0..2 {
        let trouble = host.poll().unwrap_err();
        assert_eq!(code_of(&trouble), ("misconfigured", "invalid-json"));
        host.restart().unwrap();
    }
    testing::remove_file("inbox", "bad");
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["1", "2"]);
}

#[test]
fn a_name_that_is_taken_gets_a_time() {
    stage();
    testing::put_file("done", "order.csv", b"old");
    testing::put_file("done", "order-20260228T120000.000Z.csv", b"old");
    testing::put_file("inbox", "order.csv", b"new");
    let mut host = open(r#"{"settle":"0ms"}"#);
    host.drain().unwrap();
    assert_eq!(testing::file("done", "order-20260228T120000.000Z-2.csv").unwrap(), b"new");
    assert_eq!(testing::file("done", "order.csv").unwrap(), b"old");
}

#[test]
fn a_folder_that_is_away_makes_the_host_ask_again() {
    for operation in ["scan", "stat", "open", "read"] {
        stage();
        testing::put_file("inbox", "a", b"one\ntwo\n");
        let mut host = open(r#"{"settle":"0ms","split":"lines"}"#);
        testing::fail_file(operation, files::Error::Unavailable("stale".into()));
        let trouble = host.poll().unwrap_err();
        assert_eq!(code_of(&trouble), ("unavailable", "inbox-unavailable"), "{operation}");
        host.drain().unwrap();
        assert_eq!(bodies(&host), ["one", "two"]);
        assert_eq!(codes(), Vec::<String>::new());
    }
}

#[test]
fn a_move_that_fails_is_asked_for_again() {
    for (error, kind) in [
        (files::Error::Unavailable("stale".into()), "unavailable"),
        (files::Error::Full, "unavailable"),
        (files::Error::Denied, "misconfigured"),
    ] {
        stage();
        testing::put_file("inbox", "a", b"one");
        let mut host = open(r#"{"settle":"0ms"}"#);
        let found = host.poll().unwrap();
        let receipts = host.commit(found);
        testing::fail_file("move", error);
        assert_eq!(code_of(&host.settle(receipts.clone()).unwrap_err()), (kind, "not-moved"));
        host.settle(receipts).unwrap();
        assert_eq!(testing::paths("done"), ["a"]);
        host.drain().unwrap();
        assert_eq!(bodies(&host), ["one"]);
    }
}

#[test]
fn a_file_that_can_never_be_moved_stays_and_is_not_read_again() {
    stage();
    testing::put_file("inbox", "a", b"one");
    let mut host = open(r#"{"settle":"0ms"}"#);
    let found = host.poll().unwrap();
    let receipts = host.commit(found);
    testing::fail_file("move", files::Error::Other("it is in use".into()));
    host.settle(receipts).unwrap();
    assert_eq!(codes(), ["not-moved"]);
    for _ in 0..3 {
        host.drain().unwrap();
        host.restart().unwrap();
    }
    testing::put_file("inbox", "b", b"two");
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["one", "two"]);
}

#[test]
fn an_unreadable_file_fails_and_the_next_one_is_read() {
    stage();
    testing::put_file("inbox", "a", b"one");
    testing::put_file("inbox", "b", b"two");
    testing::fail_file("open", files::Error::Denied);
    let mut host = open(r#"{"settle":"0ms","after_failure":"move"}"#);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["two"]);
    assert_eq!((codes(), testing::paths("failed")), (vec!["unreadable".into()], vec!["a".into()]));
}

#[test]
fn a_folder_that_is_not_granted_is_a_mistake_of_the_project() {
    testing::reset();
    let mut host = open("{}");
    assert_eq!(code_of(&host.poll().unwrap_err()), ("misconfigured", "denied"));
    testing::put_file("inbox", "a", b"one");
    let mut host = open(r#"{"settle":"0ms"}"#);
    let found = host.poll().unwrap();
    let receipts = host.commit(found);
    assert_eq!(code_of(&host.settle(receipts).unwrap_err()), ("misconfigured", "not-moved"));
}

#[test]
fn a_record_that_the_store_refuses_makes_its_file_fail() {
    stage();
    testing::put_file("inbox", "a", b"fine");
    testing::put_file("inbox", "b", b"odd");
    let mut host = open(r#"{"settle":"0ms","after_failure":"move"}"#);
    host.refuse(|stored| (stored.bytes == b"odd").then_some("too-large"));
    host.drain().unwrap();
    assert_eq!((testing::paths("done"), testing::paths("failed")), (vec!["a".into()], vec!["b".into()]));
    assert_eq!(codes(), ["record-not-stored"]);
}

#[test]
fn a_file_that_cannot_be_read_now_holds_up_no_other_and_goes_on_where_it_stopped() {
    stage();
    testing::put_file("inbox", "a", b"one\ntwo\n");
    testing::put_file("inbox", "b", b"three\n");
    let mut host = open(r#"{"settle":"0ms","split":"lines"}"#);
    host.items_max = 1;
    host.turn().unwrap();
    host.restart().unwrap();
    host.items_max = 1_000;
    testing::fail_file("open", files::Error::Unavailable("bad sector".into()));
    host.turn().unwrap();
    assert_eq!(bodies(&host), ["one", "three"], "nothing is read of it before it is shown to be the same");
    host.turn().unwrap();
    assert_eq!(bodies(&host), ["one", "three", "two"]);

    stage();
    testing::put_file("inbox", "a", b"one\n");
    testing::put_file("inbox", "b", b"two\n");
    let mut host = open(r#"{"settle":"0ms","split":"lines"}"#);
    testing::fail_file("read", files::Error::Unavailable("bad sector".into()));
    host.turn().unwrap();
    assert_eq!(bodies(&host), ["two"]);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["two", "one"]);
}

#[test]
fn names_that_the_host_does_not_take_are_told_once() {
    stage();
    testing::put_file("inbox", "a\\b", b"one");
    testing::put_file("inbox", "a\nb", b"two");
    testing::put_file("inbox", "c", b"three");
    let mut host = open(r#"{"settle":"0ms"}"#);
    for _ in 0..3 {
        host.drain().unwrap();
        host.restart().unwrap();
    }
    assert_eq!(bodies(&host), ["three"]);
    assert_eq!(codes(), ["odd-name", "odd-name"]);
}

#[test]
fn a_long_name_that_is_taken_is_cut_to_make_room() {
    stage();
    let name = format!("{}.csv", "ü".repeat(125));
    testing::put_file("done", &name, b"old");
    testing::put_file("inbox", &name, b"new");
    let deep = format!("{}/{}/x.csv", "d".repeat(200), "e".repeat(200));
    testing::put_file("inbox", &deep, b"deep");
    let mut host = open(r#"{"settle":"0ms","depth":2}"#);
    host.drain().unwrap();
    let done = testing::paths("done");
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|name| name.len() <= 255 && name.ends_with(".csv")), "{done:?}");
}

#[test]
fn with_stop_a_file_that_cannot_be_read_now_keeps_its_place() {
    stage();
    testing::put_file("inbox", "a", format!("one\n{}two\n", "x\n".repeat(200_000)).as_bytes());
    let mut host = open(r#"{"settle":"0ms","split":"lines","on_error":"stop","attributes":"none"}"#);
    host.items_max = 1;
    host.turn().unwrap();
    host.items_max = 1_000_000;
    // The first buffer is read in this turn, the second cannot be.
    testing::fail_file("read", files::Error::Unavailable("stale".into()));
    host.turn().unwrap();
    assert!(host.stored.len() > 100_000 && host.stored.len() < 200_000);
    host.restart().unwrap();
    host.drain().unwrap();
    assert_eq!(host.stored.len(), 200_002, "none is read twice");
}

#[test]
fn a_fault_at_any_read_or_look_makes_nothing_come_twice() {
    let lines: Vec<String> = (0..30_000).map(|n| format!("line {n:06} of a file")).collect();
    for operation in ["read", "open", "stat"] {
        for nth in 0..12 {
            stage();
            testing::put_file("inbox", "a", lines.join("\n").as_bytes());
            let mut host = open(r#"{"settle":"0ms","split":"lines","attributes":"none"}"#);
            host.items_max = 7_000;
            testing::fail_file_later(operation, nth, files::Error::Unavailable("stale".into()));
            for _ in 0..12 {
                let _ = host.turn();
                // Settling is asked for until it succeeds.
                while host.restart().is_err() {}
            }
            assert!(bodies(&host) == lines, "{operation} {nth}: {} lines", host.stored.len());
        }
    }
}
