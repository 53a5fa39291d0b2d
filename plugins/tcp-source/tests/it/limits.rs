//! Nothing grows without limit, whatever comes.

use portway_framing::JUNK_BYTES_MAX;
use portway_sdk::{Context, FinishReason, StreamSource};
use portway_tcp_source::{
    FRAME_BYTES_MAX, REFUSALS_IN_ROW_MAX, REPLY_BYTES_MAX, Settings, TcpSource, place::KEY_REACH_BYTES_MAX,
};

use crate::peer::{Host, run};

fn settings(json: &str) -> Settings {
    portway_sdk::parse_settings(json).unwrap()
}

const BOTH: &str = r#"{"framing":{"type":"delimiters","start":"\\x02","end":"\\x03"},"stored_reply":"A","not_stored_reply":"N"}"#;

#[test]
fn junk_without_a_start_ends_the_connection_at_a_limit() {
    let junk = vec![b'x'; JUNK_BYTES_MAX as usize + 1];
    let mut host = Host::new(&settings(BOTH), None);
    host.feed(&junk[1..]);
    assert!(host.told.is_empty());
    host.feed(b"x");
    let [told] = host.told.as_slice() else { panic!("one item") };
    assert!(told.item.starts_with("refused no-start-byte") && told.close && told.answer.is_empty());
    assert!(host.kept_max <= JUNK_BYTES_MAX as usize);
}

#[test]
fn junk_between_frames_is_not_kept() {
    let mut host = Host::new(&settings(BOTH), None);
    host.feed(b"\x02a\x03");
    let kept = host.kept_max;
    host.feed(&[b'x'; 60_000]);
    assert_eq!(host.kept_max, kept);
    host.feed(b"\x02b\x03");
    assert_eq!(host.told.len(), 2);
}

#[test]
fn refusals_in_a_row_end_the_connection() {
    let empty = b"\n".repeat(1000);
    let told =
        run(&settings(r#"{"framing":{"type":"line"}}"#), [empty.as_slice()], &FinishReason::PeerClosed);
    assert_eq!(told.len() as u32, REFUSALS_IN_ROW_MAX + 2);
    assert!(told.last().unwrap().item.starts_with("refused too-many-refusals") && told.last().unwrap().close);
    let mut stream = Vec::new();
    for _ in 0..4 {
        stream.extend(b"\n".repeat(REFUSALS_IN_ROW_MAX as usize));
        stream.extend(b"good\n");
    }
    let told =
        run(&settings(r#"{"framing":{"type":"line"}}"#), [stream.as_slice()], &FinishReason::PeerClosed);
    assert_eq!(told.iter().filter(|told| told.bytes.is_some()).count(), 4, "a good message forgives");
}

#[test]
fn a_length_that_is_too_large_is_refused_before_anything_of_the_frame_is_taken_in() {
    let json = r#"{"framing":{"type":"length","bytes":4},"frame_bytes_max":1000,"not_stored_reply":"N"}"#;
    let mut host = Host::new(&settings(json), None);
    host.feed(&1001_u32.to_be_bytes());
    let [told] = host.told.as_slice() else { panic!("one item") };
    assert!(told.item.starts_with("refused too-large: the frame is larger than 1000 bytes"));
    assert_eq!((told.answer.as_slice(), told.close), (&b"N"[..], true));
    let mut host = Host::new(&settings(json), None);
    host.feed(&1000_u32.to_be_bytes());
    host.feed(&[b'x'; 1000]);
    assert_eq!(host.told[0].bytes.as_ref().unwrap().len(), 1000);
}

#[test]
fn a_frame_without_end_is_refused_at_the_limit() {
    let json = r#"{"framing":{"type":"line"},"frame_bytes_max":100000}"#;
    let mut host = Host::new(&settings(json), None);
    for _ in 0..100 {
        host.feed(&[b'x'; 4096]);
    }
    let [told] = host.told.as_slice() else { panic!("one item") };
    assert!(told.item.starts_with("refused too-large") && told.close);
    assert!(host.kept_max <= 100_000);
}

#[test]
fn a_key_is_looked_for_in_a_limited_number_of_bytes() {
    let json = r#"{"framing":{"type":"line"},"key":{"pattern":"id=(\\d+);"}}"#;
    let key = |filler: usize| {
        let line = ["x".repeat(filler).as_str(), "id=42;", &"y".repeat(9), "\n"].concat();
        let whole = run(&settings(json), [line.as_bytes()], &FinishReason::PeerClosed);
        assert_eq!(run(&settings(json), line.as_bytes().chunks(1000), &FinishReason::PeerClosed), whole);
        whole[0].item.contains("key 42")
    };
    assert!(key(100));
    assert!(key(KEY_REACH_BYTES_MAX - 6));
    assert!(!key(KEY_REACH_BYTES_MAX - 5));
    assert_eq!(portway_sdk::testing::notices()[0].0, "key-out-of-reach");
}

#[test]
fn a_large_frame_is_one_span() {
    let body = vec![b'A'; 3 << 20];
    let stream = [b"\x02", body.as_slice(), b"\x03"].concat();
    let told = run(&settings(BOTH), stream.chunks(65536), &FinishReason::PeerClosed);
    assert_eq!((told.len(), told[0].bytes.as_deref()), (1, Some(body.as_slice())));
}

#[test]
fn settings_have_limits() {
    let refused = |more: &str| {
        let json = format!(r#"{{"framing":{{"type":"line"}},{more}}}"#);
        TcpSource::open(settings(&json), &Context::default()).unwrap_err().text
    };
    assert!(refused(r#""frame_bytes_max":0"#).contains("1 to 1073741823 bytes"));
    assert!(
        refused(&format!(r#""frame_bytes_max":{}"#, FRAME_BYTES_MAX + 1)).contains("1 to 1073741823 bytes")
    );
    let long = "x".repeat(REPLY_BYTES_MAX + 1);
    assert!(refused(&format!(r#""stored_reply":"{long}""#)).contains("at most 1024 bytes"));
    assert!(refused(r#""stored_reply":"A","not_stored_reply":"A""#).contains("tell them apart"));
}
