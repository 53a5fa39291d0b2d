//! The route's cases: `destinations.json` names the destinations that the table is written at,
//! `verdicts.txt` says what becomes of each message there.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must stop")]

use std::fmt::Write;

use portway_route::{NAMES_MAX, Route, Settings};
use portway_sdk::testing::Case;
use portway_sdk::{Context, Failure, Message, Problem, Transform, TransformVerdict};

fn at(destination: &str) -> Context {
    Context { destination: destination.to_owned(), ..Context::default() }
}

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        let mut verdicts = String::new();
        for destination in case.json::<Vec<String>>("destinations.json").unwrap() {
            writeln!(verdicts, "{destination}").unwrap();
            match case.settings().and_then(|settings| Route::open(settings, &at(&destination))) {
                Err(failure) => writeln!(verdicts, "  refused {failure}").unwrap(),
                Ok(mut route) => {
                    for message in &case.messages {
                        writeln!(verdicts, "  {}", told(route.transform(copy(message)))).unwrap();
                    }
                }
            }
        }
        case.expect("verdicts.txt", verdicts);
    }
}

fn copy(message: &Message) -> Message {
    let body = message.body.bytes().unwrap().into_owned();
    Message { key: message.key.clone(), attributes: message.attributes.clone(), ..Message::new(body) }
}

fn told(verdict: Result<TransformVerdict, Problem>) -> String {
    match verdict {
        Ok(TransformVerdict::Pass) => "pass".into(),
        Ok(TransformVerdict::Filter(reason)) => format!("filter: {reason}"),
        Ok(TransformVerdict::Quarantine(failure)) => format!("quarantine {failure}"),
        other => panic!("{other:?}"),
    }
}

fn open(json: &str) -> Result<Route, Failure> {
    Route::open(portway_sdk::parse_settings::<Settings>(json)?, &at("here"))
}

#[test]
fn a_table_that_cannot_be_meant_is_refused() {
    let refused = |json: &str| open(json).unwrap_err().text;
    assert!(refused("{}").contains("the table is empty"));
    assert!(refused(r#"{"map":{"a":"here"}}"#).contains("say with `by`"));
    assert!(refused(r#"{"by":{"key":true}}"#).contains("no values to choose by"));
    let rule = r#"{"when":{"key":true,"exists":true},"to":"here"}"#;
    let twice = format!(r#"{{"by":{{"key":true}},"map":{{"a":"here"}},"rules":[{rule}]}}"#);
    assert!(refused(&twice).contains("written twice"));
    let single = format!(r#"{{"rules":[{rule}],"otherwise":"archive"}}"#);
    assert!(refused(&single).contains("or a list of destinations"));
    assert!(
        refused(r#"{"by":{"path":"MSH-9"},"map":{"a":"here"}}"#)
            .contains("setting `by`: `MSH-9` leads into the body")
    );
    assert!(refused(r#"{"rules":[{"when":{"key":true,"exists":true}}]}"#).contains("missing field `to`"));
}

#[test]
fn names_are_limited() {
    let names = vec![r#""here""#; NAMES_MAX].join(",");
    let table =
        |more: &str| format!(r#"{{"by":{{"key":true}},"map":{{"a":[{names}]}},"otherwise":[{more}]}}"#);
    assert!(open(&table("")).is_ok());
    assert!(open(&table(r#""x""#)).unwrap_err().text.contains("more than 10000 names"));
}
