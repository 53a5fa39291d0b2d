//! Files that change, vanish or take another name while they are read.

use portway_file_source::FileSource;
use portway_sdk::files::{self, Move, OnExists};
use portway_sdk::testing::{self, PollHost};

use crate::{SETTLE_MS, bodies, codes, open, read_all, stage};

const LINES: &str = r#"{"split":"lines"}"#;

/// One line of `a` is stored, the rest is not.
fn begun(content: &[u8]) -> PollHost<FileSource> {
    stage();
    testing::put_file("inbox", "a", content);
    let mut host = open(LINES);
    host.turn().unwrap();
    testing::pass_time(SETTLE_MS);
    host.items_max = 1;
    host.turn().unwrap();
    host.items_max = 1_000;
    host
}

#[test]
fn a_file_that_grows_while_it_is_read_goes_on_when_it_rests() {
    for restarts in [false, true] {
        let mut host = begun(b"one\ntwo\nthr");
        testing::edit_file("inbox", "a", |bytes| bytes.extend(b"ee\nfour\n"));
        testing::put_file("inbox", "b", b"other\n");
        if restarts {
            host.restart().unwrap();
        }
        assert_eq!(host.turn().unwrap().len(), 0, "it waits");
        read_all(&mut host);
        let mut all = bodies(&host);
        all.sort();
        assert_eq!(all, ["four", "one", "other", "three", "two"]);
        assert_eq!(codes(), ["file-grew"]);
        assert_eq!(testing::paths("done"), ["a", "b"]);
    }
}

#[test]
fn a_growing_file_holds_up_no_other() {
    let mut host = begun(b"one\ntwo\n");
    for round in 0..10 {
        testing::edit_file("inbox", "a", |bytes| bytes.extend(b"more\n"));
        testing::put_file("inbox", &format!("b{round}"), b"x");
        host.turn().unwrap();
        testing::pass_time(SETTLE_MS);
    }
    assert!(testing::paths("done").len() >= 8, "{:?}", testing::paths("done"));
    assert_eq!(testing::paths("inbox")[0], "a");
    read_all(&mut host);
    assert_eq!(bodies(&host).iter().filter(|body| *body == "more").count(), 10);
}

#[test]
fn a_last_line_that_grows_under_the_reader_is_not_cut() {
    stage();
    testing::put_file("inbox", "a", b"one\ntw");
    let mut host = open(LINES);
    host.turn().unwrap();
    testing::pass_time(SETTLE_MS);
    // The look says that it rests; then it grows before its end is reached.
    host.items_max = 1;
    host.turn().unwrap();
    testing::edit_file("inbox", "a", |bytes| bytes.extend(b"o\n"));
    assert_eq!(host.drain().unwrap().len(), 0);
    read_all(&mut host);
    assert_eq!(bodies(&host), ["one", "two"]);
}

#[test]
fn a_file_that_is_written_anew_is_read_from_its_start() {
    for restarts in [false, true] {
        let mut host = begun(b"one\ntwo\n");
        testing::edit_file("inbox", "a", |bytes| *bytes = b"uno\ndos\n".to_vec());
        if restarts {
            host.restart().unwrap();
        }
        read_all(&mut host);
        assert_eq!(bodies(&host), ["one", "uno", "dos"]);
        assert_eq!(codes(), ["file-changed"]);
    }
}

#[test]
fn a_file_of_the_same_time_and_size_but_other_bytes_is_noticed_after_a_restart() {
    let mut host = begun(b"one\ntwo\n");
    let modified = 1_772_280_000_000;
    testing::edit_file("inbox", "a", |bytes| *bytes = b"uno\ndos\n".to_vec());
    testing::set_modified("inbox", "a", modified);
    host.restart().unwrap();
    read_all(&mut host);
    assert_eq!(bodies(&host), ["one", "uno", "dos"]);
    assert_eq!(codes(), ["file-changed"]);
}

#[test]
fn another_file_under_the_name_is_another_file() {
    let mut host = begun(b"one\ntwo\n");
    testing::put_file("inbox", "a", b"1\n2\n");
    read_all(&mut host);
    assert_eq!(bodies(&host), ["one", "1", "2"]);
    assert_eq!(codes(), ["file-changed"]);
}

#[test]
fn a_file_that_gets_shorter_is_read_from_its_start() {
    let mut host = begun(b"one\ntwo\n");
    testing::edit_file("inbox", "a", |bytes| bytes.truncate(2));
    read_all(&mut host);
    assert_eq!(bodies(&host), ["one", "on"]);
    assert_eq!(codes(), ["file-changed"]);
}

#[test]
fn a_file_that_is_renamed_goes_on_under_its_new_name() {
    let mut host = begun(b"one\ntwo\n");
    files::rename(Move {
        folder: "inbox",
        path: "a",
        to_folder: "inbox",
        to_path: "z",
        on_exists: OnExists::Fail,
    })
    .unwrap();
    read_all(&mut host);
    assert_eq!(bodies(&host), ["one", "two"]);
    assert_eq!(codes(), ["file-renamed"]);
    assert_eq!(testing::paths("done"), ["z"]);
}

#[test]
fn a_file_that_vanishes_is_told_and_forgotten() {
    let mut host = begun(b"one\ntwo\n");
    assert!(testing::remove_file("inbox", "a"));
    testing::put_file("inbox", "b", b"x\n");
    read_all(&mut host);
    assert_eq!(bodies(&host), ["one", "x"]);
    let notices = testing::take_notices();
    assert_eq!(
        notices,
        [("file-vanished".into(), "`a` is gone after 1 of its records became messages".into())]
    );
    host.drain().unwrap();
    assert_eq!(codes(), Vec::<String>::new());
}

#[test]
fn a_whole_file_that_changes_before_it_is_moved_is_read_again() {
    stage();
    testing::put_file("inbox", "a", b"one");
    let mut host = open(r#"{"settle":"0ms"}"#);
    let found = host.poll().unwrap();
    let receipts = host.commit(found);
    testing::pass_time(1);
    testing::edit_file("inbox", "a", |bytes| bytes.extend(b" two"));
    host.settle(receipts).unwrap();
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["one", "one two"]);
    assert_eq!(codes(), ["changed-after-reading"]);
}

#[test]
fn files_that_stay_are_read_once_until_they_change() {
    stage();
    testing::put_file("inbox", "a", b"one");
    testing::put_file("inbox", "b", b"two");
    let mut host = open(r#"{"settle":"0ms","after":"leave"}"#);
    for _ in 0..3 {
        host.drain().unwrap();
        host.restart().unwrap();
    }
    assert_eq!(bodies(&host), ["one", "two"]);
    testing::pass_time(1);
    testing::edit_file("inbox", "b", |bytes| bytes.push(b'!'));
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["one", "two", "two!"]);
}
