//! The TCP sender's cases: `peer.json` is what the receiver does on each connection that is dialled,
//! `traffic.txt` what happens between the two, `verdicts.txt` what the sender says. Bytes are written
//! with the escapes of the settings.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::time::Duration;

use portway_framing::{Sequence, shown};
use portway_sdk::blobs::Blob;
use portway_sdk::testing::{self, Case, Event, PeerScript, describe_sends};
use portway_sdk::{Body, Call, Context, Message, Sender};
use portway_tcp_sender::{REPLY_BYTES_MAX, Settings, TcpSender};

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        run(case);
    }
}

fn run(case: Case) {
    testing::reset();
    case.send::<TcpSender, Sequence>("peer", |bytes| format!("write {}\n", shown(bytes, 200)));
}

/// Sends one message and tells the verdict and what was written.
fn send(settings: &str, body: Body, peer: PeerScript) -> (String, Vec<Vec<u8>>) {
    testing::reset();
    testing::dial("peer", Ok(peer));
    let settings: Settings = portway_sdk::parse_settings(settings).unwrap();
    let mut sender = TcpSender::open(settings, &Context::default()).unwrap();
    let call = Call::new("store", true, Duration::from_secs(600));
    let verdicts = describe_sends(&sender.send_batch(&call, vec![Message::new(body)]));
    let written = testing::events().into_iter().filter_map(|event| match event {
        Event::Write(bytes) => Some(bytes),
        _ => None,
    });
    (verdicts, written.collect())
}

const DELIMITED: &str = r#"{"framing":{"type":"delimiters","start":"\\x02","end":"\\x03"}}"#;

#[test]
fn a_large_message_goes_out_in_pieces_that_make_one_frame() {
    for len in [256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 3 * 256 * 1024] {
        let bytes = vec![b'x'; len];
        for body in [Body::from(bytes.clone()), Body::from(Blob::from_bytes(&bytes).unwrap())] {
            let (verdict, written) = send(DELIMITED, body, PeerScript::new());
            assert!(verdict.starts_with("sent written"), "{verdict}");
            assert_eq!(written.concat(), [b"\x02", bytes.as_slice(), b"\x03"].concat());
        }
    }
}

#[test]
fn a_delimiter_anywhere_in_a_large_message_is_found_before_anything_is_sent() {
    let mut bytes = vec![b'x'; 600_000];
    bytes[599_999] = 3;
    let (verdict, written) = send(DELIMITED, Blob::from_bytes(&bytes).unwrap().into(), PeerScript::new());
    assert_eq!(
        verdict,
        "quarantine frame-byte: the message holds `\\x03` at byte 599999, which ends a frame\n"
    );
    assert!(written.is_empty());
}

#[test]
fn an_answer_has_a_limit() {
    let settings = r#"{"framing":{"type":"line"},"answer":{"success":{"begins_with":"x"}}}"#;
    let longest = "x".repeat(REPLY_BYTES_MAX as usize);
    let (verdict, _) = send(settings, "a".into(), PeerScript::new().says(format!("{longest}\n")));
    assert!(verdict.starts_with("sent answered: xxx"));
    let (verdict, _) = send(settings, "a".into(), PeerScript::new().says(format!("{longest}x")));
    assert_eq!(
        verdict,
        "retry bad-ack: the peer's answer cannot be read: it is too long; the connection was closed\n"
    );
}
