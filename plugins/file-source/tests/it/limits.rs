//! Nothing grows without limit, and large things pass through a small buffer.

use portway_sdk::testing;

use crate::{bodies, codes, open, stage};

#[test]
fn records_longer_than_the_buffer_are_cut_by_the_host() {
    stage();
    let (short, long, longest) = ("x".repeat(200_000), "y".repeat(300_000), "z".repeat(3 << 20));
    let file = [short.as_str(), &long, &short, &longest, &short, &short, "end"].join("\n");
    testing::put_file("inbox", "a", file.as_bytes());
    let mut host = open(r#"{"settle":"0ms","split":"lines"}"#);
    host.bytes_max = 1 << 20;
    host.drain().unwrap();
    assert!(bodies(&host) == file.lines().collect::<Vec<_>>());
    let blobs: Vec<bool> = host.stored.iter().map(|stored| stored.is_blob).collect();
    assert_eq!(blobs, [false, true, false, true, false, false, false]);
}

#[test]
fn a_header_stands_in_front_of_a_record_of_any_length() {
    stage();
    let long = format!("\"{}\"", "y\n".repeat(200_000));
    testing::put_file("inbox", "a", format!("name\r\nx\r\n{long}\r\n").as_bytes());
    let mut host = open(r#"{"settle":"0ms","split":"csv"}"#);
    host.drain().unwrap();
    assert!(bodies(&host) == ["name\r\nx".to_owned(), format!("name\r\n{long}")]);
}

#[test]
fn a_record_above_the_limit_fails_its_file() {
    stage();
    testing::put_file("inbox", "a", format!("one\n{}\ntwo\n", "x".repeat(1001)).as_bytes());
    testing::put_file("inbox", "b", b"three\n");
    let mut host = open(r#"{"settle":"0ms","split":"lines","record_bytes_max":1000}"#);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["one", "three"]);
    assert_eq!(codes(), ["record-too-large"]);
}

#[test]
fn a_whole_file_has_the_same_limit_and_may_be_a_blob() {
    stage();
    testing::put_file("inbox", "a", &vec![b'a'; 1_000_000]);
    testing::put_file("inbox", "b", &vec![b'b'; 1_000_001]);
    let mut host = open(r#"{"settle":"0ms","record_bytes_max":1000000,"after_failure":"move"}"#);
    host.drain().unwrap();
    assert!(host.stored.len() == 1 && host.stored[0].is_blob && host.stored[0].bytes.len() == 1_000_000);
    assert_eq!((codes(), testing::paths("failed")), (vec!["record-too-large".into()], vec!["b".into()]));
}

#[test]
fn a_header_without_end_fails_its_file() {
    stage();
    testing::put_file("inbox", "a", format!("{}\n1\n", "h".repeat(70_000)).as_bytes());
    let mut host = open(r#"{"settle":"0ms","split":"csv"}"#);
    host.drain().unwrap();
    assert_eq!(codes(), ["header-too-long"]);
}

#[test]
fn thousands_of_files_pass_in_order_through_a_cursor_of_fixed_size() {
    stage();
    let names: Vec<String> = (0..5_000).map(|n| format!("{n:05}-{}", "long-name".repeat(10))).collect();
    for name in &names {
        testing::put_file("inbox", name, name.as_bytes());
    }
    let mut host = open(r#"{"settle":"1s","attributes":"none"}"#);
    for _ in 0..20 {
        host.drain().unwrap();
        testing::pass_time(1_000);
    }
    assert!(bodies(&host) == names);
    assert_eq!(testing::paths("done").len(), 5_000);
}

#[test]
fn more_names_than_are_looked_at_come_through_as_others_go() {
    stage();
    for n in 0..10_500 {
        testing::put_file("inbox", &format!("{n:05}"), b"x");
    }
    let mut host = open(r#"{"settle":"0ms","attributes":"none"}"#);
    host.drain().unwrap();
    assert_eq!(host.stored.len(), 10_500);
    assert_eq!(codes(), ["inbox-too-full"]);
}

#[test]
fn files_that_stay_are_remembered_up_to_a_limit_that_is_told() {
    stage();
    for n in 0..3_600 {
        testing::put_file("inbox", &format!("{n:05}"), b"x");
    }
    let mut host = open(r#"{"settle":"0ms","after":"leave","attributes":"none"}"#);
    let trouble = loop {
        if let Err(trouble) = host.turn() {
            break trouble;
        }
    };
    assert!(format!("{trouble:?}").contains("inbox-not-emptied"), "{trouble:?}");
    assert_eq!(host.stored.len(), 3_500);
    for n in 0..1_000 {
        testing::remove_file("inbox", &format!("{n:05}"));
    }
    host.drain().unwrap();
    assert_eq!(host.stored.len(), 3_600);
}

#[test]
fn many_files_that_keep_growing_are_told_and_the_rest_goes_on() {
    stage();
    let mut host = open(r#"{"settle":"0ms","split":"lines","files":["*.log"]}"#);
    host.items_max = 1;
    for n in 0..12 {
        let name = format!("{n:02}.log");
        testing::put_file("inbox", &name, b"one\ntwo\n");
        host.turn().unwrap();
        testing::pass_time(1);
        for earlier in 0..=n {
            testing::edit_file("inbox", &format!("{earlier:02}.log"), |bytes| bytes.extend(b"more\n"));
        }
    }
    assert!(host.cursor.len() < 16 * 1024);
    host.items_max = 1_000;
    for _ in 0..3 {
        host.drain().unwrap();
    }
    assert_eq!(bodies(&host).iter().filter(|body| *body == "one").count(), 12);
}
