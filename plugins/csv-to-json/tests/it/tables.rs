//! Whatever table somebody writes, it is there again in JSON; and no bytes make the plugin fall.

use portway_csv_to_json::{CsvToJson, Settings, Shape, Types};
use portway_sdk::{Context, Message, Problem, Transform, TransformVerdict};
use proptest::prelude::*;
use serde_json::Value;

fn transform(settings: Settings, bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut transform = CsvToJson::open(settings, &Context::default()).unwrap();
    match transform.transform(Message::new(bytes))? {
        TransformVerdict::Deliver(outputs) => {
            Ok(outputs.into_iter().next().unwrap().body.into_bytes().unwrap())
        }
        other => panic!("{other:?}"),
    }
}

fn array() -> Settings {
    Settings { shape: Shape::Array, ..Settings::default() }
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9 ,;\"\r\n\té=.+-]{0,12}",
        "[+-]?[0-9]{1,17}(\\.[0-9]{1,3})?(e[0-9])?",
        prop::sample::select(vec!["true", "false", "TRUE", "null", "-0", "NaN", "1_000"])
            .prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn every_field_is_there_again(
        rows in (1..5_usize).prop_flat_map(|width| prop::collection::vec(prop::collection::vec(field(), width), 1..6)),
        delimiter in prop::sample::select(vec![b',', b';', b'\t', b'|']),
        infer in any::<bool>(),
    ) {
        let width = rows[0].len();
        let names: Vec<String> = (0..width).map(|number| format!("c{number}")).collect();
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
        writer.write_record(&names).unwrap();
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        let types = if infer { Types::Infer } else { Types::Text };
        let json = transform(Settings { delimiter, types, ..array() }, &writer.into_inner().unwrap()).unwrap();
        let records: Vec<serde_json::Map<String, Value>> = serde_json::from_slice(&json).unwrap();
        prop_assert_eq!(records.len(), rows.len());
        for (record, row) in records.iter().zip(&rows) {
            for (name, field) in names.iter().zip(row) {
                match &record[name] {
                    Value::String(text) => prop_assert_eq!(text, field),
                    // What became a number or a boolean is written as it was.
                    _ => {
                        let member = format!("\"{name}\":{field}");
                        prop_assert!(infer && String::from_utf8_lossy(&json).contains(&member));
                    }
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_it_fall(bytes in prop::collection::vec(
        prop_oneof![4 => prop::sample::select(b"a1,;\"\r\n\0 ".to_vec()), 1 => any::<u8>()], 0..80)) {
        if let Ok(json) = transform(array(), &bytes) {
            serde_json::from_slice::<Vec<Value>>(&json).unwrap();
        }
    }
}

#[test]
fn a_field_of_twenty_megabytes_arrives_whole() {
    let field = "x\"\n".repeat(7 << 20);
    let message = format!("id,data\n1,\"{}\"\n", field.replace('"', "\"\""));
    let json = transform(Settings::default(), message.as_bytes()).unwrap();
    let record: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(record["data"].as_str().unwrap(), field);
}

#[test]
fn a_document_beyond_the_limit_is_refused() {
    let name = "n".repeat(1 << 20);
    let message = format!("{name}\n{}", "1\n".repeat(80));
    let problem = transform(array(), message.as_bytes()).unwrap_err();
    assert!(matches!(&problem, Problem::Quarantine(failure) if failure.code == "too-large"), "{problem:?}");
}
