//! The folder `cases/`: what came, under which settings, and what must come of it.
//!
//! `input.txt` holds the stream, with bytes that are not printable as `<0B>` and line ends ignored.
//! Lines at its top may say how it goes on: `finish: idle`, `fate: busy`. `settings.json` may be
//! missing. `expected.txt` is written with `UPDATE_EXPECT=1`.

use std::{fmt::Write, fs, path::Path};

use expect_test::expect_file;
use portway_mllp_source::Settings;
use portway_sdk::FinishReason;

use crate::peer::{Host, Store, bytes_of, shown};

#[test]
fn every_case_gives_what_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        expect_file![case.join("expected.txt")].assert_eq(&play(&case));
    }
}

fn play(case: &Path) -> String {
    portway_sdk::testing::reset();
    let settings = fs::read_to_string(case.join("settings.json")).unwrap_or_else(|_| "{}".into());
    let settings: Settings = portway_sdk::parse_settings(&settings).unwrap();
    let input = fs::read_to_string(case.join("input.txt")).unwrap();
    let (mut finish, mut store, mut stream) = (None, Store::Stores, String::new());
    for line in input.lines() {
        match line.split_once(": ") {
            Some(("finish", reason)) => finish = Some(FinishReason::from(reason.to_owned())),
            Some(("fate", code)) => store = Store::Refuses(code.to_owned().leak()),
            _ => stream.push_str(&format!("{line}\n")),
        }
    }
    let mut host = Host::new(&settings, store);
    host.feed(&bytes_of(&stream));
    if let Some(reason) = finish {
        host.finish(&reason);
    }
    told(&host)
}

fn told(host: &Host) -> String {
    let mut text = String::new();
    for told in &host.told {
        writeln!(text, "{}", told.item).unwrap();
        if let Some(bytes) = &told.bytes {
            writeln!(text, "  bytes:\n    {}", shown(bytes)).unwrap();
        }
        if told.answer.is_empty() {
            writeln!(text, "  no answer").unwrap();
        } else {
            writeln!(text, "  answer:\n    {}", shown(&told.answer)).unwrap();
        }
        if told.close {
            writeln!(text, "  close").unwrap();
        }
    }
    for (code, notice) in portway_sdk::testing::notices() {
        writeln!(text, "notice {code}: {notice}").unwrap();
    }
    text
}
