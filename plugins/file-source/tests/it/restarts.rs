//! A lost instance, a lost commit or a repeated settle changes nothing.

use portway_file_source::FileSource;
use portway_sdk::testing::{self, PollHost};
use proptest::prelude::*;

use crate::{bodies, codes, open, stage};

const FORMATS: &[(&str, &str)] = &[
    (r#""split":"lines""#, "a\nbb\r\n\nccc\nd\ne"),
    (r#""split":"csv""#, "h,i\r\n1,\"2\n3\"\r\n4,5\r\n6,7\r\n"),
    (r#""split":"csv","header":"left-out""#, "h,i\n1,\"2\n3\"\n4,5\n6,7"),
    (r#""split":"hl7""#, "FHS|^~\\&\rBHS|^\rMSH|^~\\&|1\rPID|1\rMSH|^~\\&|2\rMSH|^~\\&|3\rBTS|3\rFTS|1\r"),
    (r#""split":"json-array""#, " [ {\"a\":1},\n[2] , \"x\",4 ] "),
    (r#""split":"ndjson""#, "{\"a\":1}\n[2] \n\n\"x\"\n4"),
    (r#""split":"none""#, "all of it"),
];

fn settings(split: &str) -> String {
    format!(r#"{{"settle":"0ms",{split}}}"#)
}

fn put_all(content: &str) {
    stage();
    for (name, modified) in [("a", 1), ("b", 2), ("c", 3)] {
        testing::put_file("inbox", name, content.as_bytes());
        testing::set_modified("inbox", name, modified);
    }
}

fn whole(split: &str, content: &str) -> PollHost<FileSource> {
    put_all(content);
    let mut host = open(&settings(split));
    host.drain().unwrap();
    assert_eq!(codes(), Vec::<String>::new());
    assert_eq!(testing::paths("done"), ["a", "b", "c"]);
    host
}

/// What a message is, but for the id.
fn seen(host: &PollHost<FileSource>) -> Vec<String> {
    host.stored.iter().map(|stored| stored.describe()).collect()
}

#[test]
fn a_restart_behind_every_record_goes_on_at_the_byte() {
    for (split, content) in FORMATS {
        let expected = seen(&whole(split, content));
        for items_max in 1..4 {
            put_all(content);
            let mut host = open(&settings(split));
            host.items_max = items_max;
            for _ in 0..40 {
                host.turn().unwrap();
                host.restart().unwrap();
            }
            assert_eq!(seen(&host), expected, "{split}");
            assert_eq!(testing::paths("done"), ["a", "b", "c"], "{split}");
            assert_eq!(codes(), Vec::<String>::new());
        }
    }
}

#[test]
fn what_was_found_and_not_committed_is_found_again() {
    for (split, content) in FORMATS {
        let expected = seen(&whole(split, content));
        put_all(content);
        let mut host = open(&settings(split));
        host.items_max = 2;
        for round in 0..60 {
            let found = host.poll().unwrap();
            if round % 3 == 0 {
                continue;
            }
            let receipts = host.commit(found);
            host.settle(receipts).unwrap();
        }
        assert_eq!(seen(&host), expected, "{split}");
    }
}

#[test]
fn settling_again_does_nothing_more() {
    put_all("x");
    let mut host = open(&settings(r#""split":"none""#));
    let found = host.poll().unwrap();
    let receipts = host.commit(found);
    assert_eq!(testing::paths("inbox").len(), 3, "nothing moves before the commit");
    host.settle(receipts.clone()).unwrap();
    host.settle(receipts).unwrap();
    host.settle(Vec::new()).unwrap();
    assert_eq!((testing::paths("inbox").len(), testing::paths("done").len()), (0, 3));
    // Another file takes the name before the repetition: it is not what was read.
    testing::put_file("inbox", "a", b"new");
    host.settle(Vec::new()).unwrap();
    assert_eq!(testing::file("inbox", "a").unwrap(), b"new");
    assert_eq!(codes(), ["changed-after-reading"]);
    host.drain().unwrap();
    assert_eq!(bodies(&host), ["x", "x", "x", "new"]);
}

#[test]
fn a_crash_between_commit_and_settle_moves_the_file_after_the_start() {
    put_all("x");
    let mut host = open(&settings(r#""split":"none","after":"delete""#));
    let found = host.poll().unwrap();
    host.commit(found);
    host.restart().unwrap();
    assert!(testing::paths("inbox").is_empty());
    host.drain().unwrap();
    assert_eq!(host.stored.len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_limits_and_any_losses_give_the_same(
        which in 0_usize..7,
        items_max in 1_u32..6,
        bytes_max in 1_u32..40,
        losses in proptest::collection::vec(0_u8..4, 0..40),
    ) {
        let (split, content) = FORMATS[which];
        let expected = seen(&whole(split, content));
        put_all(content);
        let mut host = open(&settings(split));
        (host.items_max, host.bytes_max) = (items_max, bytes_max);
        for loss in losses {
            match loss {
                0 => drop(host.poll().unwrap()),
                1 => host.restart().unwrap(),
                2 => drop({ let found = host.poll().unwrap(); host.commit(found) }),
                _ => drop(host.turn().unwrap()),
            }
            if loss == 2 {
                host.restart().unwrap();
            }
        }
        host.drain().unwrap();
        prop_assert_eq!(seen(&host), expected);
        prop_assert_eq!(testing::paths("done"), ["a", "b", "c"]);
    }
}
