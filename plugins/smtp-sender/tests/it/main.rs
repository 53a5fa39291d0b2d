//! The SMTP sender's cases: `peer.json` is what the server does on each connection that is
//! dialled, `traffic.txt` what the sender does, `verdicts.txt` what it says. A case whose name
//! begins with `again-` is sent twice, the second time over what was kept.

use portway_sdk::connect;
use portway_sdk::testing::{self, Case, Event, PeerScript, connect_error};
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

fn run(case: Case) {
    testing::reset();
    for dial in case.json::<Vec<Dial>>("peer.json").unwrap_or_default() {
        testing::dial("server", script(dial));
    }
    case.send::<SmtpSender>(describe);
}

fn script(dial: Dial) -> Result<PeerScript, connect::Error> {
    let steps = match dial {
        Dial::Refused { refused } => return Err(connect_error(&refused)),
        Dial::Steps(steps) => steps,
    };
    Ok(steps.into_iter().fold(PeerScript::new(), |script, step| match step {
        Step::Protection(word) => script.protected(match word.as_str() {
            "wanted" => connect::Protection::Wanted,
            "required" => connect::Protection::Required,
            _ => connect::Protection::Tls,
        }),
        Step::Credentials => script.with_credentials(),
        Step::TlsFails(text) => script.tls_fails(connect_error(&text)),
        Step::Says(text) => script.says(text),
        Step::SaysOften(text, times) => script.says(text.repeat(times)),
        Step::Closes => script.says(""),
        Step::ReadFails(text) => script.read_fails(connect_error(&text)),
        Step::WriteWorks => script.write_works(),
        Step::WriteFails(text) => script.write_fails(connect_error(&text)),
    }))
}

/// What is written stands a line each, so that mails can be read.
fn describe(event: &Event) -> String {
    match event {
        Event::Begin(index) => format!("begin {index}\n"),
        Event::Sent(index) => format!("sent {index}\n"),
        Event::Open { fresh: true, .. } => "open, new\n".into(),
        Event::Open { fresh: false, .. } => "open, kept\n".into(),
        Event::StartTls => "TLS begins\n".into(),
        Event::Keep => "keep\n".into(),
        Event::Close => "close\n".into(),
        Event::Write(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let lines = text.split_inclusive("\r\n").map(|line| match line.strip_suffix("\r\n") {
                Some(line) => format!("> {}\n", line.escape_debug()),
                None => format!("> {} (no line end)\n", line.escape_debug()),
            });
            lines.collect()
        }
        other => format!("{other:?}\n"),
    }
}
