//! The HTTP sender's cases: `requests.txt` is what it asks, `replies.json` what comes of it
//! (one a message), `verdicts.txt` what it makes of that.

use std::collections::BTreeMap;

use http_sender::HttpSender;
use portway_sdk::testing::{self, Case, describe_sends};
use portway_sdk::{
    Body, HttpError, HttpReply, HttpSender as _, Plan, RequestContent, Response, SendVerdict, Trouble,
    judge_each, prepare_each,
};
use serde::Deserialize;

/// What comes of one request.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReplyFile {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
    /// Instead of an answer: one of the cases of the contract's `error`.
    error: Option<String>,
}

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        testing::reset();
        let result = run(&case);
        case.expect("verdicts.txt", describe_sends(&result));
    }
}

fn run(case: &Case) -> Result<Vec<SendVerdict>, Trouble> {
    let opened = case.settings().and_then(|settings| HttpSender::open(settings, &case.context()));
    let mut sender = opened.map_err(Trouble::Misconfigured)?;
    let plans = prepare_each(&mut sender, &case.call, &case.messages)?;
    case.expect("requests.txt", plans.iter().map(describe).collect::<String>());
    let replies: Vec<ReplyFile> = case.json("replies.json").unwrap_or_default();
    let mut replies = replies.into_iter().map(reply);
    let mut verdicts = Vec::new();
    for plan in plans {
        match plan {
            Plan::Decided(verdict) => verdicts.push(verdict),
            Plan::Ask(ask) => {
                let outcome = replies.next().unwrap_or(Err(HttpError::Timeout));
                let reply = HttpReply { outcome, ticket: ask.ticket };
                verdicts.extend(judge_each(&mut sender, vec![reply])?);
            }
        }
    }
    Ok(verdicts)
}

fn describe(plan: &Plan) -> String {
    let request = match plan {
        Plan::Ask(ask) => &ask.request,
        Plan::Decided(_) => return "nothing\n\n".into(),
    };
    let mut text = format!("{} {}\n", request.method, request.url);
    for (name, value) in &request.headers {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text.push_str(match request.content {
        RequestContent::None => "without a body\n\n",
        RequestContent::Body(_) => "a body of its own\n\n",
        RequestContent::OfMessage => "the message's body\n\n",
    });
    text
}

fn reply(file: ReplyFile) -> Result<Response, HttpError> {
    match file.error.as_deref() {
        None => Ok(Response {
            status: file.status,
            headers: file.headers.into_iter().collect(),
            body: Body::from(file.body),
        }),
        Some("timeout") => Err(HttpError::Timeout),
        Some("denied") => Err(HttpError::Denied("the address is not allowed".into())),
        Some("unreachable") => Err(HttpError::Unreachable("connection refused".into())),
        Some("too-large") => Err(HttpError::TooLarge),
        Some("invalid") => Err(HttpError::Invalid("the value of header `x-type`".into())),
        Some(other) => Err(HttpError::Other(other.into())),
    }
}
