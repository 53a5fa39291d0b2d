//! The MLLP sender's cases: `peer.json` is what the receiver does on each connection that is
//! dialled, `traffic.txt` what happens between the two, `verdicts.txt` what the sender says.
//! A case whose name begins with `again-` is sent twice, the second time over what was kept.

use std::time::Duration;

use mllp_sender::MllpSender;
use portway_sdk::blobs::Blob;
use portway_sdk::testing::{self, Case, Event, PeerScript, describe_sends};
use portway_sdk::{Body, Call, Context, Message, Sender};

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        run(case);
    }
}

fn run(case: Case) {
    testing::reset();
    let write = |bytes: &[u8]| format!("write {}\n", String::from_utf8_lossy(bytes).escape_debug());
    case.send::<MllpSender, String>("peer", write);
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
