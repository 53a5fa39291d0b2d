//! Whatever values somebody writes, the fields read back; and no bytes make the plugin fall.

use portway_json_to_csv::{JsonToCsv, Settings};
use portway_sdk::{Context, Message, Problem, Transform, TransformVerdict};
use proptest::prelude::*;

fn transform(settings: &str, message: &[u8]) -> Result<Vec<u8>, Problem> {
    let settings: Settings = portway_sdk::parse_settings(settings).unwrap();
    let mut transform = JsonToCsv::open(settings, &Context::default()).unwrap();
    match transform.transform(Message::new(message))? {
        TransformVerdict::Deliver(outputs) => {
            Ok(outputs.into_iter().next().unwrap().body.into_bytes().unwrap())
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn every_field_reads_back(
        rows in prop::collection::vec(("[a-z ,;\"\r\n\té=+-]{0,12}", "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?"), 1..6),
        delimiter in prop::sample::select(vec![",", ";", "\t", "|"]),
        quotes in prop::sample::select(vec!["needed", "not-numbers", "always"]),
        line_end in prop::sample::select(vec!["crlf", "lf"]),
    ) {
        let settings = serde_json::json!({
            "columns": [{"name": "text"}, {"name": "number"}],
            "delimiter": delimiter, "quotes": quotes, "line_end": line_end,
        });
        let records: Vec<String> = rows
            .iter()
            .map(|(text, number)| format!(r#"{{"text":{},"number":{number}}}"#, serde_json::to_string(text).unwrap()))
            .collect();
        let csv = transform(&settings.to_string(), format!("[{}]", records.join(",")).as_bytes()).unwrap();
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter.as_bytes()[0]).from_reader(csv.as_slice());
        let read: Vec<(String, String)> = reader
            .records()
            .map(|record| record.unwrap())
            .map(|record| (record[0].to_owned(), record[1].to_owned()))
            .collect();
        prop_assert_eq!(read, rows);
    }

    #[test]
    fn no_bytes_make_it_fall(bytes in prop::collection::vec(
        prop_oneof![6 => prop::sample::select(b"[]{}\":,a1 ".to_vec()), 1 => any::<u8>()], 0..60)) {
        let _ = transform(r#"{"columns":[{"name":"a"},{"name":"b","path":"a.0.b"}]}"#, &bytes);
    }
}

#[test]
fn a_document_beyond_the_limit_is_refused() {
    let settings = r#"{"columns":[{"name":"a","path":"$.big"}],"records":"rows"}"#;
    let message = format!(r#"{{"big":"{}","rows":[{}{{}}]}}"#, "x".repeat(1 << 20), "{},".repeat(80));
    let problem = transform(settings, message.as_bytes()).unwrap_err();
    assert!(matches!(&problem, Problem::Quarantine(failure) if failure.code == "too-large"), "{problem:?}");
}
