//! The SMTP sender's cases: `peer.json` is what the server does on each connection that is
//! dialled, `traffic.txt` what the sender does, `verdicts.txt` what it says. A case whose name
//! begins with `again-` is sent twice, the second time over what was kept.

use std::fmt::Write;

use portway_sdk::testing::{self, Case, Event, PeerScript, describe_sends};
use portway_sdk::{Sender, Trouble, connect};
use portway_smtp_sender::SmtpSender;
use serde::Deserialize;

/// One connection, or why there is none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Dial {
    Refused { refused: String },
    Steps(Vec<Step>),
}

/// Each read and each write takes the next of its kind; writes without one work.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Step {
    /// `wanted`, `required` or `tls`, as the grant says.
    Protection(String),
    Credentials,
    TlsFails(String),
    Says(String),
    /// A text so many times.
    SaysOften(String, usize),
    Closes,
    ReadFails(String),
    WriteWorks,
    WriteFails(String),
}

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        run(case);
    }
}

fn run(mut case: Case) {
    testing::reset();
    for dial in case.json::<Vec<Dial>>("peer.json").unwrap_or_default() {
        testing::dial("server", script(dial));
    }
    let opened = case.settings().and_then(|settings| SmtpSender::open(settings, &case.context()));
    let mut sender = match opened {
        Ok(sender) => sender,
        Err(failure) => {
            case.expect("verdicts.txt", describe_sends(&Err(Trouble::Misconfigured(failure))));
            return;
        }
    };
    let mut runs = vec![std::mem::take(&mut case.messages)];
    if case.name.starts_with("again-") {
        let half = runs[0].len() / 2;
        let last = runs[0].split_off(half);
        runs.push(last);
    }
    let (mut verdicts, mut traffic) = (String::new(), String::new());
    for messages in runs {
        verdicts.push_str(&describe_sends(&sender.send_batch(&case.call, messages)));
        testing::take_events().iter().for_each(|event| describe(event, &mut traffic));
    }
    let notices = testing::notices().into_iter().map(|(code, text)| format!("notice {code}: {text}\n"));
    case.expect("verdicts.txt", verdicts + &notices.collect::<String>());
    case.expect("traffic.txt", traffic);
}

fn script(dial: Dial) -> Result<PeerScript, connect::Error> {
    let steps = match dial {
        Dial::Refused { refused } => return Err(error(&refused)),
        Dial::Steps(steps) => steps,
    };
    Ok(steps.into_iter().fold(PeerScript::new(), |script, step| match step {
        Step::Protection(word) => script.protected(match word.as_str() {
            "wanted" => connect::Protection::Wanted,
            "required" => connect::Protection::Required,
            _ => connect::Protection::Tls,
        }),
        Step::Credentials => script.with_credentials(),
        Step::TlsFails(text) => script.tls_fails(error(&text)),
        Step::Says(text) => script.says(text),
        Step::SaysOften(text, times) => script.says(text.repeat(times)),
        Step::Closes => script.says(""),
        Step::ReadFails(text) => script.read_fails(error(&text)),
        Step::WriteWorks => script.write_works(),
        Step::WriteFails(text) => script.write_fails(error(&text)),
    }))
}

fn error(text: &str) -> connect::Error {
    match text {
        "denied" => connect::Error::Denied,
        "busy" => connect::Error::Busy,
        "timeout" => connect::Error::Timeout,
        "closed" => connect::Error::Closed,
        "untrusted" => connect::Error::Untrusted("certificate expired".into()),
        "unreachable" => connect::Error::Unreachable("connection refused".into()),
        other => connect::Error::Other(other.into()),
    }
}

/// What is written stands a line each, so that mails can be read.
fn describe(event: &Event, traffic: &mut String) {
    let _ = match event {
        Event::Begin(index) => writeln!(traffic, "begin {index}"),
        Event::Sent(index) => writeln!(traffic, "sent {index}"),
        Event::Open { fresh: true, .. } => writeln!(traffic, "open, new"),
        Event::Open { fresh: false, .. } => writeln!(traffic, "open, kept"),
        Event::StartTls => writeln!(traffic, "TLS begins"),
        Event::Keep => writeln!(traffic, "keep"),
        Event::Close => writeln!(traffic, "close"),
        Event::Write(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.split_inclusive("\r\n").try_for_each(|line| match line.strip_suffix("\r\n") {
                Some(line) => writeln!(traffic, "> {}", line.escape_debug()),
                None => writeln!(traffic, "> {} (no line end)", line.escape_debug()),
            })
        }
        other => writeln!(traffic, "{other:?}"),
    };
}
