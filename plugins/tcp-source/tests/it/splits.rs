//! Every split of every stream gives the same items, bytes and answers, and so does a restart.

use portway_sdk::FinishReason;
use portway_tcp_source::Settings;
use proptest::prelude::*;

use crate::peer::{run, run_with_restart};

const FRAMINGS: [&str; 12] = [
    r#"{"type":"delimiters","start":"<","end":">"}"#,
    r#"{"type":"delimiters","start":"<<","end":">>"}"#,
    r#"{"type":"delimiters","start":"<a<b","end":">>a>"}"#,
    r#"{"type":"delimiters","end":">"}"#,
    r#"{"type":"delimiters","end":"aab"}"#,
    r#"{"type":"delimiters","start":"<<"}"#,
    r#"{"type":"line"}"#,
    r#"{"type":"line","end":"crlf","keep_end":true}"#,
    r#"{"type":"length","bytes":1}"#,
    r#"{"type":"length","bytes":2,"order":"little","counts_itself":true}"#,
    r#"{"type":"length","bytes":8}"#,
    r#"{"type":"digits","digits":2}"#,
];

/// Streams of real senders and of none, for each framing some.
const STREAMS: [&str; 22] = [
    "",
    "<one><two><three>",
    "<<one>><<two>>\r\n<<three>>",
    "junk<one>\r\n<>\r\n<two",
    "<one<two>><three>",
    "<<<one>>><<two<<three>>>>",
    "<a<bid=7 one>>a><a<a<bid=8 two>a>>a>",
    "one>two>>three",
    "id=1 aab aaab id=2aab b",
    "<<id=1 one<<id=2 two<<<three",
    "id=3 line\nid=4 other\n\nthird",
    "id=3 line\r\nid=4 a\nb\r\r\n\r\nthird\r",
    "\x04id=1\x00\x02ab\x7Fx",
    "\x06\x00id=1\x02\x00\x01\x00rest",
    "\0\0\0\0\0\0\0\x04id=9\0\0\0\0\0\0\0\x01b\0\0\0\0\0\0\x01\0",
    "04id=102ab00019x1",
    "03abcxx",
    "<0123456789012345678901234567890123456789012345678901234567890123456789>",
    "0123456789012345678901234567890123456789012345678901234567890123456789>",
    "\x7Ftoo",
    "nothing at all that has a frame",
    "<",
];

fn all_settings() -> Vec<Settings> {
    let with = |framing: &&str| {
        let json = format!(
            r#"{{"framing":{framing},"frame_bytes_max":40,"stored_reply":"A","not_stored_reply":"N",
                "key":{{"pattern":"id=(\\d)"}},"dedupe":{{"offset":1,"length":3}}}}"#
        );
        let quiet = format!(r#"{{"framing":{framing},"frame_bytes_max":40}}"#);
        [json, quiet].map(|json| portway_sdk::parse_settings(&json).unwrap())
    };
    FRAMINGS.iter().flat_map(with).collect()
}

const REASONS: [FinishReason; 4] =
    [FinishReason::PeerClosed, FinishReason::Idle, FinishReason::TooLarge, FinishReason::Stopping];

#[test]
fn every_split_of_every_stream_gives_the_same() {
    for settings in all_settings() {
        for stream in STREAMS.map(str::as_bytes) {
            for reason in &REASONS {
                let whole = run(&settings, [stream], reason);
                let place = || format!("{:?} {}", settings.framing, stream.escape_ascii());
                assert_eq!(run(&settings, stream.chunks(1), reason), whole, "{} in single bytes", place());
                for at in 0..=stream.len() {
                    let halves = run(&settings, [&stream[..at], &stream[at..]], reason);
                    assert_eq!(halves, whole, "{} cut at {at}", place());
                    let restarted = run_with_restart(&settings, stream, at, reason);
                    assert_eq!(restarted, whole, "{} restarted at {at}", place());
                }
            }
        }
    }
}

/// Pieces that hostile and broken streams are made of.
fn noisy_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec!["<", ">", "<<", ">>", "a", "b", "\n", "\r\n", "\0", "id=5"])
            .prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::sample::select(STREAMS.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_stream_in_any_chunks_gives_the_same(
        stream in noisy_stream(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        restart in any::<prop::sample::Index>(),
        which in any::<prop::sample::Index>(),
        reason in prop::sample::select(REASONS.to_vec()),
    ) {
        let all = all_settings();
        let settings = which.get(&all);
        let whole = run(settings, [stream.as_slice()], &reason);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            chunks.push(&stream[from..cut]);
            from = cut;
        }
        prop_assert_eq!(&run(settings, chunks, &reason), &whole);
        prop_assert_eq!(&run(settings, stream.chunks(1), &reason), &whole);
        let at = restart.index(stream.len() + 1);
        prop_assert_eq!(&run_with_restart(settings, &stream, at, &reason), &whole);
    }

    #[test]
    fn what_is_answered_as_stored_stands_in_the_stream_byte_for_byte(stream in noisy_stream()) {
        for settings in all_settings().iter().step_by(2) {
            for told in run(settings, [stream.as_slice()], &FinishReason::PeerClosed) {
                if told.answer != b"A" {
                    continue;
                }
                let bytes = told.bytes.unwrap();
                prop_assert!(!bytes.is_empty() && bytes.len() <= 40);
                prop_assert!(stream.windows(bytes.len()).any(|window| window == bytes));
            }
        }
    }
}
