//! Any bytes through the reader of JSON and the transforms of CSV, JSON and HL7: no panic, no digit
//! lost, and what they deliver is what they say.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_csv_to_json::CsvToJson;
use portway_hl7_to_json::Hl7ToJson;
use portway_json_map::JsonMap;
use portway_json_to_csv::JsonToCsv;
use portway_sdk::{Context, Message, Transform, TransformVerdict, parse_settings};
use serde::Deserialize as _;

fuzz_target!(|input: &[u8]| {
    read_json(input);
    for settings in
        [r#"{"shape":"array"}"#, r#"{"types":"infer","trim":true,"ragged":"pad","delimiter":";"}"#]
    {
        if let Some(json) = output::<CsvToJson>(settings, input) {
            serde_json::from_str::<serde_json::Value>(&json).unwrap();
        }
    }
    for settings in ["{}", r#"{"shape":"full","names":"number","escapes":"raw"}"#] {
        if let Some(json) = output::<Hl7ToJson>(settings, input) {
            serde_json::from_str::<serde_json::Value>(&json).unwrap();
        }
    }
    output::<JsonToCsv>(
        r#"{"columns":[{"name":"a"},{"name":"b","path":"/b/0"}],"guard_formulas":true}"#,
        input,
    );
    let map = r#"{"rest":"keep","remove":["/*/a"],"rules":[
        {"rename":"a","to":"c.d"},
        {"to":"e","from":["b","x"],"each":{"from":"a","as":["text",{"split":","},"number"]},"default":[]},
        {"to":"f","value":"{{a}}-{{b|}}"}]}"#;
    output::<JsonMap>(map, input);
    settings(input);
});

/// What is read and written again reads back as the same, and as another reader has it.
fn read_json(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(value) = portway_json::parse(text) else { return };
    let json = value.to_json();
    assert_eq!(portway_json::parse(&json).as_ref(), Ok(&value));
    // That reader takes one level less, unless it is told otherwise.
    let mut other = serde_json::Deserializer::from_str(&json);
    other.disable_recursion_limit();
    match serde_json::Value::deserialize(&mut other).and_then(|_| other.end()) {
        Ok(()) => {}
        Err(error) => assert!(error.to_string().contains("out of range"), "{error}"),
    }
}

fn output<T: Transform>(settings: &str, input: &[u8]) -> Option<String> {
    let opened = T::open(parse_settings(settings).ok()?, &Context::default());
    match opened.ok()?.transform(Message::new(input)) {
        Ok(TransformVerdict::Deliver(outputs)) => {
            let bytes = outputs.into_iter().next()?.body.into_bytes().unwrap();
            Some(String::from_utf8(bytes).unwrap())
        }
        _ => None,
    }
}

/// The input as the settings of a map.
fn settings(input: &[u8]) {
    let Ok(settings) = serde_json::from_slice(input) else { return };
    if let Ok(mut map) = JsonMap::open(settings, &Context::default()) {
        let _ = map.transform(Message::new(r#"{"a":"1,2","b":[{"a":1.50},null]}"#));
    }
}
