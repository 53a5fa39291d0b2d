//! Any bytes as records of each format: in one piece, in single bytes, in chunks that the input
//! chooses, and begun anew behind each record. All must give the same records, which lie in
//! their order and do not overlap.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_records::{Broken, Format, Limits, Mark, Record, Splitter};

const FORMATS: [Format; 5] = [
    Format::Lines,
    Format::Csv { delimiter: b',', quote: Some(b'"') },
    Format::Hl7,
    Format::JsonArray,
    Format::Ndjson,
];

fuzz_target!(|input: &[u8]| {
    let Some((&[which, chunk], bytes)) = input.split_first_chunk::<2>() else { return };
    let format = FORMATS[usize::from(which) % FORMATS.len()];
    let record_bytes_max = if which >= 128 { 16 } else { u64::MAX };
    let limits = Limits { record_bytes_max, depth_max: 20 };
    let run = |from: Mark, chunk: usize| split(format, limits, from, bytes, chunk);
    let (records, broken) = run(Mark::default(), usize::MAX);
    assert_eq!(run(Mark::default(), 1), (records.clone(), broken.clone()), "in single bytes");
    assert_eq!(run(Mark::default(), usize::from(chunk) + 1), (records.clone(), broken.clone()), "in chunks");
    let mut at = 0;
    for (index, (record, mark)) in records.iter().enumerate() {
        assert!(record.start >= at && record.len > 0 && record.len <= record_bytes_max);
        at = record.start + record.len;
        assert!(at <= mark.at && mark.at <= bytes.len() as u64);
        // Anew behind every eighth, and the first ones: all of them would take too long.
        if index < 8 || index % 8 == 0 {
            assert_eq!(
                run(*mark, 7),
                (records[index + 1..].to_vec(), broken.clone()),
                "begun anew at {}",
                mark.at
            );
        }
    }
    agrees_with_serde(format, limits, bytes, broken.is_none());
});

/// What is JSON for one is JSON for the other, as long as it is not nested deep, escapes hold
/// no halves of pairs, and numbers are not beyond what serde_json can hold.
fn agrees_with_serde(format: Format, limits: Limits, bytes: &[u8], is_right: bool) {
    if format != Format::JsonArray
        || limits.record_bytes_max != u64::MAX
        || bytes.starts_with(b"\xEF\xBB\xBF")
    {
        return;
    }
    let known = serde_json::from_slice::<Vec<serde_json::Value>>(bytes);
    let doubtful = bytes.windows(2).any(|pair| pair.eq_ignore_ascii_case(b"\\u"))
        || bytes.iter().any(|byte| b"eE".contains(byte))
        || bytes.iter().filter(|byte| b"[{".contains(byte)).count() > 20;
    if !doubtful {
        assert_eq!(is_right, known.is_ok(), "{known:?}");
    }
}

type Marked = (Vec<(Record, Mark)>, Option<Broken>);

fn split(format: Format, limits: Limits, from: Mark, bytes: &[u8], chunk: usize) -> Marked {
    let mut splitter = Splitter::resume(format, limits, from);
    let mut records = Vec::new();
    let (mut used, mut given) = (from.at as usize, from.at as usize);
    loop {
        let is_last = given == bytes.len();
        match splitter.cut(&bytes[used..given], is_last) {
            Err(broken) => return (records, Some(broken)),
            Ok(step) => {
                used += step.used;
                match step.record {
                    Some(record) => records.push((record, splitter.mark())),
                    None if is_last => break,
                    None => given += chunk.min(bytes.len() - given),
                }
            }
        }
    }
    assert_eq!(used, bytes.len());
    (records, None)
}
