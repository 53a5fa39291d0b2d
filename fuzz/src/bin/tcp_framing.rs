//! Any stream through the TCP codec under every framing: in one piece, in single bytes, in chunks that the
//! input chooses, and with a lost instance in between. All must give the same items, bytes and answers.
//! And any body that may be framed comes out of the decoder again.

#![no_main]

use std::rc::Rc;

use libfuzzer_sys::fuzz_target;
use portway_framing::{Decoder, Event, Leftover, Scan};
use portway_sdk::FinishReason;
use portway_tcp_source::Settings;

#[path = "../../../plugins/tcp-source/tests/it/peer.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod peer;

use peer::{run, run_with_restart};

const REASONS: [FinishReason; 4] =
    [FinishReason::PeerClosed, FinishReason::Idle, FinishReason::TooLarge, FinishReason::Stopping];
const FRAMINGS: [&str; 8] = [
    r#"{"type":"delimiters","start":"\\x02","end":"\\x03"}"#,
    r#"{"type":"delimiters","start":"<a<b","end":">>a>"}"#,
    r#"{"type":"delimiters","end":"aab"}"#,
    r#"{"type":"delimiters","start":"$$"}"#,
    r#"{"type":"line","end":"crlf","keep_end":true}"#,
    r#"{"type":"length","bytes":2,"counts_itself":true}"#,
    r#"{"type":"length","bytes":8,"order":"little"}"#,
    r#"{"type":"digits","digits":2}"#,
];
const FRAME_BYTES_MAX: u64 = 512;

fuzz_target!(|input: &[u8]| {
    let Some((&[how, cut, restart], stream)) = input.split_first_chunk::<3>() else { return };
    let settings = settings(how);
    let reason = &REASONS[usize::from(how >> 6)];
    let whole = run(&settings, [stream], reason);
    for told in &whole {
        let Some(bytes) = &told.bytes else { continue };
        assert!(!bytes.is_empty() && bytes.len() as u64 <= FRAME_BYTES_MAX);
    }
    assert_eq!(run(&settings, stream.chunks(1), reason), whole, "in single bytes");
    assert_eq!(run(&settings, stream.chunks(usize::from(cut) + 1), reason), whole, "in chunks");
    // A new instance counts anew what it passes over between frames, and refusals in a row.
    let counts_anew =
        stream.len() >= 32 * 1024 || whole.last().is_some_and(|told| told.item.contains("too-many-refusals"));
    if !counts_anew {
        let at = usize::from(restart) * stream.len() / 255;
        assert_eq!(run_with_restart(&settings, stream, at, reason), whole, "restarted at {at}");
    }
    comes_out_again(&settings, stream);
});

fn settings(how: u8) -> Settings {
    let framing = FRAMINGS[usize::from(how & 7)];
    let replies = if how & 8 == 0 { "" } else { r#","stored_reply":"A","not_stored_reply":"N""# };
    let keys =
        if how & 16 == 0 { "" } else { r#","key":{"pattern":"id=(\\d+)"},"dedupe":{"offset":2,"length":9}"# };
    let json = format!(r#"{{"framing":{framing},"frame_bytes_max":{FRAME_BYTES_MAX}{replies}{keys}}}"#);
    portway_sdk::parse_settings(&json).unwrap()
}

/// A body that may be framed is the one frame that a decoder finds.
fn comes_out_again(settings: &Settings, body: &[u8]) {
    let framing = settings.framing.framing().unwrap();
    let mut scan = Scan::new(&framing);
    body.chunks(7).for_each(|chunk| scan.feed(chunk));
    let Ok(wrapping) = scan.finish() else { return };
    let stream = [wrapping.head.as_slice(), body, &wrapping.tail].concat();
    let mut decoder = Decoder::new(Rc::new(framing), u64::MAX, 0);
    let (used, event) = decoder.take(&stream);
    assert_eq!(used, stream.len());
    let frame = match (event, decoder.finish()) {
        (Some(Event::Frame(frame)), Leftover::Nothing) | (None, Leftover::Unended(frame)) => frame,
        other => panic!("{other:?}"),
    };
    let found = &stream[frame.start as usize..(frame.start + frame.len) as usize];
    let is_whole = found == body || found.strip_suffix(wrapping.tail.as_slice()) == Some(body);
    assert!(is_whole && !frame.start_inside);
}
