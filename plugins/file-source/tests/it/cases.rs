//! The folder `cases/`: `inbox/` is what arrives, `settings.json` how it is read,
//! `expected.txt` what comes of it. Bytes that are not text are written as `<FF>`.

use std::fmt::Write;

use portway_file_source::FileSource;
use portway_sdk::testing::{self, Case, PollHost};

use crate::{read_all, stage};

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        let told = play(&case);
        case.expect("expected.txt", told);
    }
}

fn play(case: &Case) -> String {
    stage();
    for (path, bytes) in case.files("inbox") {
        testing::put_file("inbox", &path, &unescaped(&bytes));
    }
    let settings = case.text("settings.json").unwrap_or_default();
    let mut host: PollHost<FileSource> = match PollHost::open(&settings) {
        Ok(host) => host,
        Err(failure) => return format!("refused {failure}\n"),
    };
    read_all(&mut host);
    let mut text: String = host.stored.iter().map(|stored| stored.describe()).collect();
    for (code, notice) in testing::notices() {
        writeln!(text, "notice {code}: {notice}").unwrap();
    }
    for folder in ["inbox", "done", "failed"] {
        for path in testing::paths(folder) {
            writeln!(text, "{folder}: {path}").unwrap();
        }
    }
    text
}

/// `<0B>` stands for a byte, and a line that ends in `<>` goes on without a line end.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap().replace("<>\n", "");
    let mut bytes = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        match from.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if from.as_bytes().get(3) == Some(&b'>') => {
                bytes.push(byte);
                rest = &from[4..];
            }
            _ => {
                bytes.push(b'<');
                rest = &from[1..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
