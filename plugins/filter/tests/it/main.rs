//! The filter's cases, and its limits.

#![expect(clippy::panic, reason = "a test that cannot go on must stop")]

use std::fmt::Write;

use portway_filter::{Filter, RULES_MAX, Settings};
use portway_sdk::testing::Case;
use portway_sdk::{Context, Message, Problem, Transform, TransformVerdict};

#[test]
fn every_case_ends_as_written() {
    for mut case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        let opened = case.settings().and_then(|settings| Filter::open(settings, &case.context()));
        let mut verdicts = String::new();
        match opened {
            Err(failure) => writeln!(verdicts, "refused {failure}").unwrap(),
            Ok(mut filter) => {
                for message in std::mem::take(&mut case.messages) {
                    writeln!(verdicts, "{}", told(filter.transform(message))).unwrap();
                }
            }
        }
        case.expect("verdicts.txt", verdicts);
    }
}

fn told(verdict: Result<TransformVerdict, Problem>) -> String {
    match verdict {
        Ok(TransformVerdict::Pass) => "pass".into(),
        Ok(TransformVerdict::Filter(reason)) => format!("filter: {reason}"),
        Ok(TransformVerdict::Quarantine(failure)) => format!("quarantine {failure}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_are_limited() {
    let rule = r#"{"only":{"key":true,"exists":true}}"#;
    let open = |count: usize| {
        let json = format!(r#"{{"rules":[{}]}}"#, vec![rule; count].join(","));
        let settings: Settings = portway_sdk::parse_settings(&json).unwrap();
        Filter::open(settings, &Context::default())
    };
    assert!(open(RULES_MAX).is_ok());
    assert!(open(RULES_MAX + 1).unwrap_err().text.contains("more than 200 rules"));
}

#[test]
fn a_reason_stays_short_whatever_the_rule() {
    let json =
        format!(r#"{{"rules":[{{"name":"{0}","only":{{"key":true,"equals":"{0}"}}}}]}}"#, "ä".repeat(5000));
    let settings: Settings = portway_sdk::parse_settings(&json).unwrap();
    let mut filter = Filter::open(settings, &Context::default()).unwrap();
    let TransformVerdict::Filter(reason) = filter.transform(Message::new("")).unwrap() else {
        panic!("filtered")
    };
    assert!(reason.len() < 2000, "{}", reason.len());
}
