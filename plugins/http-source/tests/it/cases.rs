//! The folder `cases/`: `request*.txt` are requests, one after the other, `settings.json`
//! how they are taken, `expected.txt` the answers and the messages.
//!
//! A request's first line is its target, then come headers, an empty line and the body,
//! with bytes that are not text as `<FF>`. `!not-stored: CODE` in place of a header makes
//! the host refuse its messages.

use std::fmt::Write;

use portway_http_source::HttpMessages;
use portway_sdk::testing::{self, Case, HttpHost};
use portway_sdk::{HttpAnswer, Later};

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        let told = play(&case);
        case.expect("expected.txt", told);
    }
}

fn play(case: &Case) -> String {
    testing::reset();
    let mut host: HttpHost<HttpMessages> =
        HttpHost::open(&case.text("settings.json").unwrap_or_default()).unwrap();
    let mut text = String::new();
    let names = ["request.txt", "request-1.txt", "request-2.txt", "request-3.txt"];
    for request in names.iter().filter_map(|name| case.text(name)) {
        let answer = ask(&mut host, &request);
        text.push_str(&describe(&answer));
    }
    for stored in &host.stored {
        text.push_str(&stored.describe());
    }
    for (code, notice) in testing::notices() {
        writeln!(text, "notice {code}: {notice}").unwrap();
    }
    text
}

fn ask(host: &mut HttpHost<HttpMessages>, request: &str) -> HttpAnswer {
    let (head, body) = request.split_once("\n\n").unwrap_or((request.trim_end(), ""));
    let mut lines = head.lines();
    let target = lines.next().unwrap();
    let mut headers: Vec<(&str, &str)> = lines.map(|line| line.split_once(": ").unwrap()).collect();
    host.not_stored = headers.iter().find(|(name, _)| *name == "!not-stored").map(|(_, code)| {
        let (code, after_ms) = code.split_once(' ').unwrap_or((code, ""));
        Later { after_ms: after_ms.parse().ok(), ..Later::new(code, "as the case wants it") }
    });
    headers.retain(|(name, _)| !name.starts_with('!'));
    host.request(target, &headers, unescaped(body.strip_suffix('\n').unwrap_or(body))).unwrap()
}

fn describe(answer: &HttpAnswer) -> String {
    let mut text = format!("{}\n", answer.status);
    for (name, value) in &answer.headers {
        writeln!(text, "  {name}: {value}").unwrap();
    }
    writeln!(text, "  {}", String::from_utf8_lossy(&answer.body)).unwrap();
    text
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        let byte = from.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, len) = match byte {
            Some(byte) if from.as_bytes().get(3) == Some(&b'>') => (byte, 4),
            _ => (b'<', 1),
        };
        bytes.push(byte);
        rest = &from[len..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
