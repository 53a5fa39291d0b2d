//! Nothing grows without limit, whatever comes.

use portway_mllp_source::{
    Settings,
    codec::{BARE_BYTES_MAX, FRAGMENTS_MAX, HEADER_BYTES_MAX, KEY_BYTES_MAX, REFUSALS_IN_ROW_MAX},
};
use portway_sdk::FinishReason;

use crate::peer::{Host, Store, run};

const MSH: &[u8] = b"MSH|^~\\&|LAB|H|EHR||20240229||ORU^R01|42|P|2.5\r";

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    [b"\x0B", parts.concat().as_slice(), b"\x1C\r"].concat()
}

fn settings(json: &str) -> Settings {
    portway_sdk::parse_settings(json).unwrap()
}

#[test]
fn junk_without_a_start_byte_ends_the_connection_at_a_limit() {
    let junk = vec![b'x'; BARE_BYTES_MAX as usize + 1];
    let at_limit = run(&Settings::default(), [&junk[..junk.len() - 1]], None);
    assert!(at_limit.is_empty());
    let beyond = run(&Settings::default(), [junk.as_slice(), &framed(&[MSH])], None);
    assert_eq!(beyond.len(), 1);
    assert!(beyond[0].item.starts_with("refused no-start-byte") && beyond[0].close);
}

#[test]
fn refusals_in_a_row_end_the_connection() {
    let empty = b"\x0B\x1C".repeat(40_000);
    let told = run(&Settings::default(), [empty.as_slice()], None);
    assert_eq!(told.len() as u32, REFUSALS_IN_ROW_MAX + 2);
    assert!(told.last().unwrap().item.starts_with("refused too-many-refusals"));
    assert!(told.last().unwrap().close && !told[0].close);
}

#[test]
fn a_good_message_forgives_what_was_refused() {
    let mut stream = Vec::new();
    for _ in 0..4 {
        stream.extend(b"\x0B\x1C\r".repeat(REFUSALS_IN_ROW_MAX as usize));
        stream.extend(framed(&[MSH]));
    }
    let told = run(&Settings::default(), [stream.as_slice()], None);
    assert_eq!(told.iter().filter(|told| told.bytes.is_some()).count(), 4);
}

#[test]
fn start_bytes_cut_a_frame_into_a_limited_number_of_parts() {
    let stream = framed(&[MSH, &b"\x0BPID|1".repeat(1000)]);
    let told = run(&Settings::default(), [stream.as_slice()], None);
    assert_eq!(told.len(), FRAGMENTS_MAX);
    let kept: usize = told.iter().map(|told| told.bytes.as_ref().unwrap().len()).sum();
    assert_eq!(kept, stream.len() - 3 - (FRAGMENTS_MAX - 1));
    assert_eq!(told.iter().filter(|told| !told.answer.is_empty()).count(), 1);
}

#[test]
fn only_start_bytes_keep_nothing() {
    let mut host = Host::new(&Settings::default(), Store::Stores);
    for _ in 0..100 {
        host.feed(&[0x0B; 4096]);
    }
    assert!(host.told.is_empty());
    assert!(host.kept_max <= 1);
}

#[test]
fn a_header_without_end_is_refused_with_its_control_id() {
    let stream = framed(&[MSH.strip_suffix(b"\r").unwrap(), &vec![b'|'; HEADER_BYTES_MAX]]);
    let told = run(&Settings::default(), [stream.as_slice()], None);
    assert!(told[0].item.starts_with("refused header-too-long"), "{}", told[0].item);
    assert!(String::from_utf8_lossy(&told[0].answer).contains("MSA|AR|42|"));
}

#[test]
fn a_header_that_fits_no_ticket_is_refused_with_its_control_id() {
    let long = format!("MSH|^~\\&|{}|H|EHR||20240229||ORU^R01|42|P|2.5\r", "L".repeat(5000));
    let told = run(&Settings::default(), [framed(&[long.as_bytes()]).as_slice()], None);
    assert!(told[0].item.starts_with("refused header-too-long"), "{}", told[0].item);
    assert!(String::from_utf8_lossy(&told[0].answer).contains("MSA|AR|42|"));
}

#[test]
fn a_key_is_looked_for_in_a_limited_number_of_bytes() {
    let key = |filler: usize| {
        let note = [b"NTE|1||".as_slice(), &vec![b'n'; filler], b"\r"].concat();
        let stream = framed(&[MSH, &note, b"PID|1||77\rPV1|1\r"]);
        let settings = settings(r#"{"key":"PID-3.1"}"#);
        let in_one = run(&settings, [stream.as_slice()], None);
        let in_many = run(&settings, stream.chunks(1000), None);
        assert_eq!(in_one, in_many);
        in_one[0].item.contains(", key 77")
    };
    assert!(key(100));
    assert!(key(KEY_BYTES_MAX - 200));
    assert!(!key(KEY_BYTES_MAX - 60), "half a segment is none");
    assert!(!key(KEY_BYTES_MAX));
}

#[test]
fn a_frame_that_is_too_large_is_rejected_by_its_control_id_and_the_connection_closed() {
    let mut host = Host::new(&Settings::default(), Store::Stores);
    host.feed(&[b"\x0B", MSH].concat());
    for _ in 0..100 {
        host.feed(&[b'x'; 65536]);
    }
    host.finish(&FinishReason::TooLarge);
    let [told] = host.told.as_slice() else { panic!("one item") };
    assert!(told.item.starts_with("refused too-large") && told.close);
    assert!(String::from_utf8_lossy(&told.answer).contains("MSA|AR|42|"));
}

#[test]
fn a_large_frame_is_one_span() {
    let body = vec![b'A'; 3 << 20];
    let stream = framed(&[MSH, b"OBX|1|ED|||", &body, b"\r"]);
    let told = run(&settings(r#"{"key":"PID-3"}"#), stream.chunks(65536), None);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].bytes.as_deref(), stream.get(1..stream.len() - 2));
}
