//! The folder `cases/`: a message, under which settings, and what must come of it.
//!
//! `input.txt` holds the message, a segment a line, with bytes that are not printable as `<E9>`.
//! `settings.json` may be missing. `expected.txt` holds the verdict and, spread over lines but
//! otherwise to the letter, the document; it is written with `UPDATE_EXPECT=1`.

use std::{fs, path::Path};

use expect_test::expect_file;
use portway_oru_to_json::OruToJson;
use portway_sdk::{Context, Message, Problem, Transform, TransformVerdict};

use crate::documents::check_json;

#[test]
fn every_case_gives_what_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        let settings = fs::read_to_string(case.join("settings.json")).unwrap_or_else(|_| "{}".into());
        let input = bytes_of(&fs::read_to_string(case.join("input.txt")).unwrap());
        expect_file![case.join("expected.txt")].assert_eq(&told(&settings, input));
    }
}

fn told(settings: &str, message: Vec<u8>) -> String {
    let settings = portway_sdk::parse_settings(settings).unwrap();
    let mut transform = OruToJson::open(settings, &Context::default()).unwrap();
    match transform.transform(Message::new(message)) {
        Ok(TransformVerdict::Pass) => "pass\n".into(),
        Ok(TransformVerdict::Filter(reason)) => format!("filter: {reason}\n"),
        Ok(TransformVerdict::Quarantine(failure)) | Err(Problem::Quarantine(failure)) => {
            format!("quarantine {failure}\n")
        }
        Ok(TransformVerdict::Deliver(outputs)) => {
            let [output] = outputs.as_slice() else { panic!("one output is expected") };
            let text = output.body.text().unwrap();
            check_json(&text);
            format!("deliver\n{}\n", spread(&text))
        }
        other => panic!("{other:?}"),
    }
}

/// The bytes that a case's text means.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('<') {
            bytes.extend_from_slice(before.as_bytes());
            let (hex, after) = after.split_once('>').unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = after;
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes.push(b'\r');
    }
    bytes
}

/// JSON over several lines, its tokens untouched.
fn spread(json: &str) -> String {
    let (mut text, mut depth, mut in_string, mut escaped) = (String::new(), 0, false, false);
    let line = |text: &mut String, depth: usize| text.push_str(&format!("\n{}", "  ".repeat(depth)));
    for c in json.chars() {
        if in_string {
            text.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                depth += 1;
                text.push(c);
                line(&mut text, depth);
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_string = c == '"';
                text.push(c);
            }
        }
    }
    text
}
