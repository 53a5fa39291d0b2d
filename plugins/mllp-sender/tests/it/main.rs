//! The MLLP sender's cases: `peer.json` is what the receiver does on each connection that is
//! dialled, `traffic.txt` what happens between the two, `verdicts.txt` what the sender says.
//! A case whose name begins with `again-` is sent twice, the second time over what was kept.

use std::time::Duration;

use mllp_sender::MllpSender;
use portway_sdk::blobs::Blob;
use portway_sdk::testing::{self, Case, Event, PeerScript, connect_error, describe_sends};
use portway_sdk::{Body, Call, Context, Message, Sender, connect};
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
    Says(String),
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
        testing::dial("peer", script(dial));
    }
    case.send::<MllpSender>(describe);
}

fn script(dial: Dial) -> Result<PeerScript, connect::Error> {
    let steps = match dial {
        Dial::Refused { refused } => return Err(connect_error(&refused)),
        Dial::Steps(steps) => steps,
    };
    Ok(steps.into_iter().fold(PeerScript::new(), |script, step| match step {
        Step::Says(text) => script.says(text),
        Step::Closes => script.says(""),
        Step::ReadFails(text) => script.read_fails(connect_error(&text)),
        Step::WriteWorks => script.write_works(),
        Step::WriteFails(text) => script.write_fails(connect_error(&text)),
    }))
}

fn describe(event: &Event) -> String {
    match event {
        Event::Begin(index) => format!("begin {index}\n"),
        Event::Sent(index) => format!("sent {index}\n"),
        Event::Open { fresh: true, .. } => "open, new\n".into(),
        Event::Open { fresh: false, .. } => "open, kept\n".into(),
        Event::Write(bytes) => format!("write {}\n", String::from_utf8_lossy(bytes).escape_debug()),
        Event::Keep => "keep\n".into(),
        Event::Close => "close\n".into(),
        other => format!("{other:?}\n"),
    }
}

#[test]
fn a_large_message_goes_out_in_pieces_that_make_one_frame() {
    testing::reset();
    let mut body = b"MSH|^~\\&|A|||||||7|P|2.5\rOBX|1|ED|||".to_vec();
    body.resize(3 * 64 * 1024, b'x');
    let acknowledgement = "\u{b}MSH|^~\\&|B\rMSA|AA|7\r\u{1c}\r";
    testing::dial("peer", Ok(PeerScript::new().says(acknowledgement)));
    let mut sender = MllpSender::open(mllp_sender::Settings::default(), &Context::default()).unwrap();
    let call = Call::new("store", true, Duration::from_secs(600));
    let message = Message::new(Body::from(Blob::from_bytes(&body).unwrap()));
    assert_eq!(describe_sends(&sender.send_batch(&call, vec![message])), "sent AA: \n");
    let writes: Vec<Vec<u8>> = testing::events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Write(bytes) => Some(bytes),
            _ => None,
        })
        .collect();
    assert!(writes.len() > 1 && writes.concat() == [b"\x0B", body.as_slice(), b"\x1C\x0D"].concat());
}
