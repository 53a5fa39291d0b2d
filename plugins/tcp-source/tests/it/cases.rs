//! The folder `cases/`: what came, under which settings, and what must come of it.
//!
//! `input.txt` holds the stream with the escapes of the settings (`\x02`); the ends of its lines mean
//! nothing. Lines at its top may say how it goes on: `finish: idle`, `fate: busy`. `expected.txt` is
//! written with `UPDATE_EXPECT=1`.

use std::{fmt::Write, fs, path::Path};

use expect_test::expect_file;
use portway_framing::{Sequence, shown};
use portway_sdk::{Context, FinishReason, StreamSource};
use portway_tcp_source::{Settings, TcpSource};

use crate::peer::Host;

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
    let settings = fs::read_to_string(case.join("settings.json")).unwrap();
    let settings = portway_sdk::parse_settings::<Settings>(&settings)
        .and_then(|settings| TcpSource::open(settings.clone(), &Context::default()).map(|_| settings));
    let settings = match settings {
        Ok(settings) => settings,
        Err(failure) => return format!("refused {failure}\n"),
    };
    let input = fs::read_to_string(case.join("input.txt")).unwrap();
    let (mut finish, mut fate, mut stream) = (None, None, Vec::new());
    for line in input.lines() {
        match line.split_once(": ") {
            Some(("finish", reason)) => finish = Some(FinishReason::from(reason.to_owned())),
            Some(("fate", code)) => fate = Some(code),
            _ => stream.extend(bytes_of(line)),
        }
    }
    let mut host = Host::new(&settings, fate);
    host.feed(&stream);
    if let Some(reason) = finish {
        host.finish(&reason);
    }
    told(&host)
}

/// The bytes that a text with escapes means.
fn bytes_of(text: &str) -> Vec<u8> {
    let json = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    portway_sdk::parse_settings::<Sequence>(&json).unwrap().0
}

fn told(host: &Host) -> String {
    let mut text = String::new();
    for told in &host.told {
        writeln!(text, "{}", told.item).unwrap();
        if let Some(bytes) = &told.bytes {
            writeln!(text, "  bytes: {}", shown(bytes, 200)).unwrap();
        }
        match told.answer.as_slice() {
            [] => writeln!(text, "  no answer").unwrap(),
            answer => writeln!(text, "  answer: {}", shown(answer, 200)).unwrap(),
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
