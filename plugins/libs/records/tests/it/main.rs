//! Records against tables, against other parsers, and in every cutting into pieces.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod oracles;
mod pieces;
mod tables;

use portway_records::{Broken, Format, Limits, Mark, Record, Splitter};

const CSV: Format = Format::Csv { delimiter: b',', quote: Some(b'"') };
const FORMATS: [Format; 5] = [Format::Lines, CSV, Format::Hl7, Format::JsonArray, Format::Ndjson];

/// All records of an input that comes in pieces, with the mark behind each, and what broke it.
fn split_in(
    format: Format,
    limits: Limits,
    from: Mark,
    input: &[u8],
    pieces: &mut dyn Iterator<Item = usize>,
) -> (Vec<(Record, Mark)>, Option<Broken>) {
    let mut splitter = Splitter::resume(format, limits, from);
    let mut records = Vec::new();
    let start = usize::try_from(from.at).unwrap();
    // As a reader does: what was not used comes again in front of the next piece.
    let (mut used, mut given) = (start, start);
    loop {
        let is_last = given == input.len();
        match splitter.cut(&input[used..given], is_last) {
            Err(broken) => return (records, Some(broken)),
            Ok(step) => {
                used += step.used;
                match step.record {
                    Some(record) => records.push((record, splitter.mark())),
                    None if is_last => break,
                    None => {
                        given = (given + pieces.next().unwrap_or(usize::MAX).min(input.len() - given))
                            .max(given + 1)
                    }
                }
            }
        }
        assert!(splitter.begun() <= used as u64);
    }
    assert_eq!(used, input.len(), "all of the input is used");
    (records, None)
}

fn split(format: Format, input: &[u8]) -> (Vec<&[u8]>, Option<Broken>) {
    let (records, broken) =
        split_in(format, Limits::default(), Mark::default(), input, &mut std::iter::empty());
    (records.into_iter().map(|(record, _)| bytes_of(input, record)).collect(), broken)
}

fn bytes_of(input: &[u8], record: Record) -> &[u8] {
    let start = usize::try_from(record.start).unwrap();
    &input[start..start + usize::try_from(record.len).unwrap()]
}
