//! The folder `cases/`: messages, what the API answers, and what must come of it.

use std::fmt::Write;

use portway_look_up::LookUp;
use portway_sdk::http::{Error, Response};
use portway_sdk::testing::{self, Case, Event, describe_transforms};
use portway_sdk::{Output, TransformVerdict};
use serde::Deserialize;

/// One answer of `answers.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    #[serde(default)]
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    /// `timeout`, `unreachable`, `denied`
    fails: Option<String>,
}

impl Stated {
    fn into_answer(self) -> Result<Response, Error> {
        match self.fails.as_deref() {
            None => Ok(Response { headers: self.headers, ..Response::new(self.status, self.body) }),
            Some("timeout") => Err(Error::Timeout),
            Some("unreachable") => Err(Error::Unreachable("connection refused".into())),
            Some("denied") => Err(Error::Denied("not granted".into())),
            Some(other) => panic!("{other}"),
        }
    }
}

/// What was asked, and below it what became of each message, with its new attributes.
fn describe(result: &Result<Vec<TransformVerdict>, portway_sdk::Trouble>) -> String {
    let mut text = String::new();
    for event in testing::take_events() {
        if let Event::Ask { method, url, .. } = event {
            writeln!(text, "{method} {url}").unwrap();
        }
    }
    text.push_str(&describe_transforms(result));
    for verdict in result.iter().flatten() {
        let TransformVerdict::Deliver(outputs) = verdict else { continue };
        for Output { attributes, .. } in outputs {
            for (name, value) in attributes.iter() {
                writeln!(text, "  {name} = {value}").unwrap();
            }
        }
    }
    text
}

#[test]
fn every_case_ends_as_written() {
    for mut case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        testing::reset();
        for stated in case.json::<Vec<Stated>>("answers.json").unwrap_or_default() {
            testing::api("api", stated.into_answer());
        }
        let verdicts = case.transform::<LookUp>();
        case.expect("expected.txt", describe(&verdicts));
    }
}
