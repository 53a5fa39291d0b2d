//! When a file is ready, and which comes first.

use portway_sdk::testing;

use crate::{SETTLE_MS, bodies, open, stage};

#[test]
fn a_file_is_read_when_it_rested_between_two_looks() {
    stage();
    testing::put_file("inbox", "a", b"one");
    let mut host = open("{}");
    assert_eq!(host.turn().unwrap().len(), 0);
    assert_eq!(host.again.as_millis(), 1_000);
    testing::pass_time(SETTLE_MS - 1);
    assert_eq!(host.turn().unwrap().len(), 0);
    testing::edit_file("inbox", "a", |bytes| bytes.extend(b" two"));
    testing::pass_time(1);
    assert_eq!(host.turn().unwrap().len(), 0, "it grew");
    testing::pass_time(SETTLE_MS);
    host.restart().unwrap();
    assert_eq!(host.turn().unwrap().len(), 1, "the cursor knows how long it rested");
    assert_eq!(bodies(&host), ["one two"]);
    assert_eq!((testing::paths("inbox").len(), testing::paths("done")), (0, vec!["a".into()]));
}

#[test]
fn a_file_whose_time_alone_changes_does_not_rest() {
    stage();
    testing::put_file("inbox", "a", b"one");
    let mut host = open("{}");
    for _ in 0..5 {
        assert_eq!(host.turn().unwrap().len(), 0);
        testing::pass_time(SETTLE_MS);
        testing::edit_file("inbox", "a", |_| {});
    }
}

#[test]
fn the_oldest_file_comes_first_and_then_the_name_decides() {
    stage();
    for (name, modified) in [("c", 2), ("a", 2), ("b", 1), ("d", 3)] {
        testing::put_file("inbox", name, name.as_bytes());
        testing::set_modified("inbox", name, modified);
    }
    let mut host = open(r#"{"settle":"0ms"}"#);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["b", "a", "c", "d"]);
}

#[test]
fn a_marker_makes_its_file_ready_and_goes_with_it() {
    stage();
    testing::put_file("inbox", "order.csv", b"one");
    testing::put_file("inbox", "other.csv", b"two");
    testing::put_file("inbox", "order.csv.ok", b"");
    let mut host = open(r#"{"ready":"marker","marker":".ok","files":["*.csv","*.ok"]}"#);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["one"]);
    assert_eq!(testing::paths("inbox"), ["other.csv"]);
    testing::put_file("inbox", "other.csv.ok", b"");
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["one", "two"]);
    assert!(testing::paths("inbox").is_empty());
}

#[test]
fn a_clock_that_is_set_back_makes_files_wait_and_not_for_ever() {
    stage();
    testing::put_file("inbox", "a", b"one");
    let mut host = open("{}");
    host.turn().unwrap();
    testing::set_time(1_000_000);
    assert_eq!(host.turn().unwrap().len(), 0);
    testing::pass_time(SETTLE_MS);
    assert_eq!(host.turn().unwrap().len(), 1);
}

#[test]
fn folders_below_are_looked_through_as_deep_as_is_set() {
    stage();
    for path in ["a", "x/b", "x/y/c", "x/y/z/d", ".hidden/e", "x/.f"] {
        testing::put_file("inbox", path, path.as_bytes());
    }
    let mut host = open(r#"{"settle":"0ms"}"#);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["a"]);
    let mut host = open(r#"{"settle":"0ms","depth":2}"#);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["x/b", "x/y/c"]);
    assert_eq!(testing::paths("done"), ["a", "x%2Fb", "x%2Fy%2Fc"]);
}
