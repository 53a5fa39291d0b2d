//! The same input through parsers of other people.

use portway_records::Format;
use portway_records::json::{DEPTH_MAX, Document};
use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::{CSV, split};

fn fields(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let records = reader.byte_records().map(|record| record.unwrap());
    records.map(|record| record.iter().map(<[u8]>::to_vec).collect()).collect()
}

fn csv_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("\n"),
        Just("\r\n"),
        Just(","),
        Just("\""),
        Just("\"\""),
        Just("a"),
        Just("b c"),
        Just(",\""),
        Just("\","),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

fn json_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => Just(&b"["[..]), 6 => Just(&b"]"[..]), 3 => Just(&b"{"[..]), 3 => Just(&b"}"[..]),
        6 => Just(&b","[..]), 3 => Just(&b"\"a\":"[..]), 3 => Just(&b"\"\\u00e4\xC3\xA4\""[..]),
        2 => Just(&b"1"[..]), 2 => Just(&b"-0.5e-7"[..]), 1 => Just(&b"true"[..]), 1 => Just(&b"null"[..]),
        2 => Just(&b" "[..]), 1 => Just(&b"\""[..]), 1 => Just(&b"\\"[..]), 1 => Just(&b"\xF0\x9F\x98\x80"[..]),
        1 => Just(&b"\xED\xA0\x80"[..]), 1 => Just(&b"01"[..]), 1 => Just(&b"."[..]), 1 => Just(&b"\n"[..]),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// Well-formed JSON, written with blanks here and there.
fn json_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f32>().prop_filter("JSON has no such number", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        ".*".prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(|all| format!("[ {} ]", all.join(" ,"))),
            proptest::collection::vec((".{0,3}", inner), 0..6).prop_map(|all| {
                let members = all
                    .iter()
                    .map(|(name, value)| format!("{} :{value}", serde_json::to_string(name).unwrap()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }),
        ]
    })
}

fn is_json(bytes: &[u8]) -> bool {
    let mut document = Document::new(DEPTH_MAX);
    document.check(bytes).is_ok() && document.finish().is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn csv_gives_the_records_and_fields_that_the_csv_crate_gives(bytes in csv_text()) {
        let (records, broken) = split(CSV, &bytes);
        if broken.is_none() {
            let alone: Vec<_> = records.iter().flat_map(|record| fields(record)).collect();
            prop_assert_eq!(alone.len(), records.len());
            prop_assert_eq!(alone, fields(&bytes));
        }
    }

    #[test]
    fn what_is_json_is_what_serde_takes_for_it(bytes in json_text()) {
        // serde_json alone minds whether surrogates come in pairs; none are written here.
        let known = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
        prop_assert_eq!(is_json(&bytes), known, "{}", bytes.escape_ascii());
    }

    #[test]
    fn elements_are_those_that_serde_finds(value in json_value()) {
        prop_assert!(is_json(value.as_bytes()), "{}", value);
        if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(&value) {
            let (records, broken) = split(Format::JsonArray, value.as_bytes());
            prop_assert_eq!(broken, None);
            let expected: Vec<&[u8]> = elements.iter().map(|element| element.get().as_bytes()).collect();
            prop_assert_eq!(records, expected);
        }
    }

    #[test]
    fn an_array_that_serde_refuses_is_refused(bytes in json_text()) {
        let (_, broken) = split(Format::JsonArray, &bytes);
        prop_assert_eq!(broken.is_none(), serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).is_ok());
    }
}
