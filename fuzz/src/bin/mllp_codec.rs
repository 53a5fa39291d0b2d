//! Any stream through the MLLP codec: in one piece, in single bytes, in chunks that the input chooses,
//! and with a lost instance in between. All must give the same items, bytes and answers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_mllp_source::Settings;
use portway_sdk::FinishReason;

#[path = "../../../plugins/mllp-source/tests/it/peer.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod peer;

use peer::{Host, Store, Told, run};

const REASONS: [FinishReason; 4] =
    [FinishReason::PeerClosed, FinishReason::Idle, FinishReason::TooLarge, FinishReason::Stopping];

fuzz_target!(|input: &[u8]| {
    let Some((&[how, cut, restart], stream)) = input.split_first_chunk::<3>() else { return };
    let settings = settings(how);
    let reason = &REASONS[usize::from(how >> 6)];
    let whole = run(&settings, [stream], Some(reason));
    let answers = whole.iter().filter(|told| !told.answer.is_empty()).count();
    let ends = stream.iter().filter(|byte| **byte == 0x1C).count();
    // A frame that grew too large is answered without one, and so are TLS and HTTP.
    assert!(answers <= ends + 1, "{answers} answers to {ends} end bytes");
    accepted_messages_are_frames(&whole, stream);

    assert_eq!(run(&settings, stream.chunks(1), Some(reason)), whole, "in single bytes");
    assert_eq!(run(&settings, stream.chunks(usize::from(cut) + 1), Some(reason)), whole, "in chunks");
    if !whole.iter().any(|told| told.close) {
        let at = usize::from(restart) * stream.len() / 255;
        let mut host = Host::new(&settings, Store::Stores);
        host.feed(&stream[..at]);
        host.restart();
        host.feed(&stream[at..]);
        host.finish(reason);
        assert_eq!(host.told, whole, "restarted at {at}");
    }
});

fn settings(how: u8) -> Settings {
    let path = |bit: u8, text: &str| (how & bit != 0).then(|| text.parse().unwrap());
    Settings {
        key: path(1, "PID-3.1"),
        dedupe: path(2, "MSH-10"),
        attributes: how & 4 != 0,
        strict_end: how & 8 != 0,
    }
}

/// What is answered AA or CA stands in the stream as a frame and holds no framing byte.
fn accepted_messages_are_frames(told: &[Told], stream: &[u8]) {
    for told in told {
        let Some(message) = &told.bytes else { continue };
        if told.item.contains("doubt ") {
            continue;
        }
        assert!(!message.contains(&0x0B) && !message.contains(&0x1C));
        let framed = [b"\x0B", message.as_slice(), b"\x1C"].concat();
        assert!(stream.windows(framed.len()).any(|window| window == framed));
    }
}
