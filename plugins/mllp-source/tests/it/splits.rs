//! Every split of every quirk gives the same items, bytes and answers, and so does a restart.

use portway_mllp_source::Settings;
use portway_sdk::FinishReason;
use proptest::prelude::*;

use crate::peer::{Host, Store, run};

const ORU: &str =
    "MSH|^~\\&|LAB|H|EHR|H2|20240229||ORU^R01^ORU_R01|42|P|2.5\rPID|1||77^^^H~88||M\u{fc}ller\rOBX|1|NM|x||5";
const ADT: &str = "MSH#*~\\&#LAB##EHR##20240229##ADT*A01#43#P#2.3####AL#NE\nPID#1##78\n";

/// Streams of real senders and of none; `{}` is a message, `[]` another.
const QUIRKS: &[&str] = &[
    "\x0B{}\r\x1C\r",
    "\x0B{}\x1C\r",
    "\x0B{}\r\x1C\r\x0B[]\x1C\r\x0B{}\r\x1C\r",
    "\x0B{}\r\x1C\r\n\0\0\x0B[]\x1C\r \r",
    "log line\r\n\x0B{}\r\x1C\r",
    "\x0B{}\r\x1C\x0B[]\x1C",
    "\x0B{}\x1C\x0B[]\x1C\x0B{}\x1C",
    "\x0B{}\x1C\n\x0B{}\r\x1C\n",
    "\x0B{}\r\x1C\u{7f}\x0B{}\r\x1C\u{7f}",
    "\x0B{}\x1C\0\x0B{}\r\x1C\0",
    "\x0B{}\r\x0B[]\x1C\r\x0B{}\r\x1C\r",
    "\x0Babc\x0Bdef\x1C\r\x0B{}\r\x1C\r",
    "\x0B{}\x0B\x0B\x0B[]\x0B\x1C\r",
    "\x0B\x0B\r\x0B{}\x1C\r",
    "\x0B\x1C\r\x0B\r\n\x1C\r\x0B  \x1C\r",
    "\x0B{}\r\x1Cmore of it\r\x1C\r\x0B[]\x1C\r",
    "\x0B{}\r\x1Cmore of it\r\x0B[]\x1C\r\x1Cand more",
    "\x0B{}\x0Ba\x0Bb\x0Bc\x0Bd\x0Be\x0Bf\x0BMSH|^~\\&|A||||||ADT|99|P|2.5\rx\x0Bh\x0Bi\x1C\r\x0B[]\x1C\r",
    "\x0B{}\x1Cmore of it\r\x1C\r\x0B[]\x1C\r",
    "\x0B{}\x1C\x1C\r\x0B{}\r\x1C\x1C\r\x1C\x1Cxyz\x1C\r",
    "{}\r\x1C\r\x0B{}\r\x1C\r",
    "{}",
    "\u{feff}\x0B{}\x1C\r\x0B\u{feff}{}\r\x1C\r",
    "\x0BFHS|^~\\&|A\rBHS|^~\\&|B\r{}\rBTS|1\rFTS|1\r\x1C\r\x0B{}\r\x1C\r",
    "\x0B{}\r[]\x1C\r\x0B{}\r\n  [].\x1C\r",
    "\x0B{}\rBTS|1\r\x1C\r",
    "\x0B{\"resourceType\":1}\x1C\r\x0BMSHx|\x1C\r\x0BMSH\x1C\r",
    "\x0B\0M\0S\0H\0|\0\r\0\x1C\0\r\0\x0B{}\x1C\r",
    "\0\x0B\0M\0S\0H\0|\0\r\0\x1C\0\r\x0B{}\x1C\r",
    "\x0BMSH|^~\\&|A||||||ACK^R01|9|P|2.5\rMSA|AA|1\r\x1C\r\x0BMSH|^~\\&|A||||||ACK|9|P|2.5|||AL\r\x1C\r",
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\x16\x03\x01\x02\0\x01\0\x0B\x1C\r{}",
    "\x16\x03x\x0B{}\r\x1C\r",
    "POSTAL CODE\x0B{}\r\x1C\r",
    "\x0B{}\r\x1C\r\x0B{}",
    "\x0B{}\r\x1C\r\x1C\r\x0B[]\x0Bx",
];

fn stream(quirk: &str) -> Vec<u8> {
    // A Latin-1 letter, so that bytes beyond ASCII pass as well.
    let latin1 = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    let mut bytes = Vec::new();
    let mut rest = quirk;
    while let Some(at) = rest.find(['{', '[']) {
        let (before, after) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..2) {
            Some("{}") => bytes.extend(latin1(ORU)),
            Some("[]") => bytes.extend(latin1(ADT)),
            _ => bytes.extend_from_slice(&after.as_bytes()[..1]),
        }
        rest = if matches!(after.get(..2), Some("{}" | "[]")) { &after[2..] } else { &after[1..] };
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

fn all_settings() -> Vec<Settings> {
    [r#"{"key":"PID-3.1","dedupe":"MSH-10"}"#, r#"{"strict_end":true,"attributes":false}"#, "{}"]
        .map(|json| portway_sdk::parse_settings(json).unwrap())
        .to_vec()
}

/// Feeds the two parts with a lost instance between them.
fn with_restart(settings: &Settings, bytes: &[u8], at: usize, reason: &FinishReason) -> Host {
    portway_sdk::testing::reset();
    let mut host = Host::new(settings, Store::Stores);
    host.feed(&bytes[..at]);
    host.restart();
    host.feed(&bytes[at..]);
    host.finish(reason);
    host
}

#[test]
fn every_split_of_every_quirk_gives_the_same() {
    for settings in all_settings() {
        for quirk in QUIRKS {
            let bytes = stream(quirk);
            for reason in [FinishReason::PeerClosed, FinishReason::TooLarge] {
                let whole = run(&settings, [bytes.as_slice()], Some(&reason));
                assert_eq!(
                    run(&settings, bytes.chunks(1), Some(&reason)),
                    whole,
                    "{quirk:?} in single bytes"
                );
                for at in 0..=bytes.len() {
                    let halves = run(&settings, [&bytes[..at], &bytes[at..]], Some(&reason));
                    assert_eq!(halves, whole, "{quirk:?} cut at {at}");
                }
            }
        }
    }
}

#[test]
fn a_restart_at_any_byte_of_any_quirk_changes_nothing() {
    for settings in all_settings() {
        for quirk in QUIRKS {
            let bytes = stream(quirk);
            let reason = FinishReason::PeerClosed;
            let whole = run(&settings, [bytes.as_slice()], Some(&reason));
            if whole.iter().any(|told| told.close) {
                // The host closes such a connection; nothing is fed to it again.
                continue;
            }
            for at in 0..=bytes.len() {
                assert_eq!(
                    with_restart(&settings, &bytes, at, &reason).told,
                    whole,
                    "{quirk:?} restarted at {at}"
                );
            }
        }
    }
}

/// Pieces that hostile and broken streams are made of.
fn noisy_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\x0B".to_vec()),
        4 => Just(b"\x1C".to_vec()),
        4 => Just(b"\r".to_vec()),
        2 => Just(b"\x1C\r".to_vec()),
        2 => Just(b"\n".to_vec()),
        1 => Just(b"\0".to_vec()),
        2 => Just(ORU.as_bytes().to_vec()),
        2 => Just(ADT.as_bytes().to_vec()),
        2 => Just(b"MSH|^~\\&|A\r".to_vec()),
        1 => Just(b"MSH".to_vec()),
        1 => Just(b"BHS|".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        1 => Just(b"GET ".to_vec()),
        1 => Just(b"\x16\x03".to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_stream_in_any_chunks_gives_the_same(
        bytes in noisy_stream(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        restart in any::<proptest::sample::Index>(),
        which in 0_usize..3,
    ) {
        let settings = &all_settings()[which];
        let reason = FinishReason::PeerClosed;
        let whole = run(settings, [bytes.as_slice()], Some(&reason));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            chunks.push(&bytes[from..cut]);
            from = cut;
        }
        prop_assert_eq!(&run(settings, chunks, Some(&reason)), &whole);
        prop_assert_eq!(&run(settings, bytes.chunks(1), Some(&reason)), &whole);
        if !whole.iter().any(|told| told.close) {
            let at = restart.index(bytes.len() + 1);
            prop_assert_eq!(&with_restart(settings, &bytes, at, &reason).told, &whole);
        }
    }

    #[test]
    fn every_end_byte_gets_at_most_one_answer(bytes in noisy_stream()) {
        let told = run(&Settings::default(), [bytes.as_slice()], Some(&FinishReason::PeerClosed));
        let answers = told.iter().filter(|told| !told.answer.is_empty()).count();
        let ends = bytes.iter().filter(|byte| **byte == 0x1C).count();
        // TLS and HTTP are answered without an end byte, and then there is nothing else.
        prop_assert!(answers <= ends.max(1), "{answers} answers to {ends} ends");
    }

    #[test]
    fn what_is_accepted_is_one_message_and_nothing_of_it_is_missing(bytes in noisy_stream()) {
        for told in run(&Settings::default(), [bytes.as_slice()], Some(&FinishReason::PeerClosed)) {
            if !told.answer.windows(7).any(|window| window == b"\rMSA|AA") {
                continue;
            }
            let message = told.bytes.unwrap();
            prop_assert!(!message.contains(&0x0B) && !message.contains(&0x1C));
            let framed = [b"\x0B", message.as_slice(), b"\x1C"].concat();
            prop_assert!(bytes.windows(framed.len()).any(|window| window == framed));
        }
    }
}
