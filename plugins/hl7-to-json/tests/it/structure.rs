//! Whatever comes, the document holds the message: from the full one it can be written again.

use portway_hl7::Message as Hl7;
use portway_hl7_to_json::{Escapes, Hl7ToJson, Names, Settings, Shape};
use portway_sdk::{Context, Message, Problem, Transform, TransformVerdict};
use proptest::prelude::*;
use serde_json::Value;

fn transform(settings: Settings, bytes: &[u8]) -> Result<String, Problem> {
    let mut transform = Hl7ToJson::open(settings, &Context::default()).unwrap();
    match transform.transform(Message::new(bytes))? {
        TransformVerdict::Deliver(outputs) => {
            Ok(String::from_utf8(outputs.into_iter().next().unwrap().body.into_bytes().unwrap()).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

fn full() -> Settings {
    Settings { shape: Shape::Full, names: Names::Number, escapes: Escapes::Raw, charset: None }
}

/// The segment of a full document as HL7, under the usual delimiters.
fn rewritten(segment: &Value) -> String {
    let name = segment["segment"].as_str().unwrap();
    let last =
        segment.as_object().unwrap().keys().filter_map(|key| key.parse::<usize>().ok()).max().unwrap_or(0);
    let leaf = |value: &Value| value.as_str().map_or_else(|| "\"\"".to_owned(), str::to_owned);
    let join = |value: &Value, with: &str, inner: &dyn Fn(&Value) -> String| -> String {
        value.as_array().unwrap().iter().map(inner).collect::<Vec<_>>().join(with)
    };
    let field = |number: usize| {
        segment.get(number.to_string()).map_or_else(String::new, |value| {
            join(value, "~", &|repetition| join(repetition, "^", &|component| join(component, "&", &leaf)))
        })
    };
    let first = if name == "MSH" { 2 } else { 1 };
    let fields: Vec<String> = (first..=last).map(field).collect();
    if fields.is_empty() { name.to_owned() } else { format!("{name}|{}", fields.join("|")) }
}

/// Without the delimiters at the end of fields and segments, which say nothing.
fn without_empty_ends(segment: &str) -> String {
    let fields = segment
        .split('|')
        .map(|field| if field.chars().all(|character| matches!(character, '^' | '&')) { "" } else { field });
    fields.collect::<Vec<_>>().join("|").trim_end_matches('|').to_owned()
}

/// The texts of a field by repetition, component and subcomponent, without empty ones at the ends.
type Texts = Vec<Vec<Vec<Option<String>>>>;

fn trimmed<T>(mut parts: Vec<T>, is_empty: impl Fn(&T) -> bool) -> Vec<T> {
    while parts.last().is_some_and(&is_empty) {
        parts.pop();
    }
    parts
}

/// The parts of an object by their numbers, or the only one.
fn parts<T: Default>(value: &Value, read: impl Fn(&Value) -> T) -> Vec<T> {
    let Value::Object(members) = value else { return vec![read(value)] };
    let last = members.keys().map(|number| number.parse().unwrap()).max().unwrap_or(0);
    (1..=last).map(|number| members.get(&number.to_string()).map_or_else(T::default, &read)).collect()
}

fn of_compact(field: &Value) -> Texts {
    let text = |text: &Value| if text.is_null() { None } else { Some(text.as_str().unwrap().to_owned()) };
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    let texts = |component: &Value| {
        let Value::Object(members) = component else { return trimmed(vec![text(component)], is_empty) };
        let last = members.keys().map(|number| number.parse().unwrap()).max().unwrap_or(0);
        (1..=last)
            .map(|number| members.get(&number.to_string()).map_or_else(|| Some(String::new()), text))
            .collect()
    };
    let repetition = |repetition: &Value| trimmed(parts(repetition, texts), Vec::is_empty);
    match field {
        Value::Array(repetitions) => repetitions.iter().map(repetition).collect(),
        _ => vec![repetition(field)],
    }
}

fn of_full(field: &Value) -> Texts {
    let texts: Texts = serde_json::from_value(field.clone()).unwrap();
    let component = |texts| trimmed(texts, |text: &Option<String>| text.as_deref() == Some(""));
    let repetition =
        |components: Vec<_>| trimmed(components.into_iter().map(component).collect(), Vec::is_empty);
    texts.into_iter().map(repetition).collect()
}

fn segment() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["PID", "OBX", "ZZ1", "NTE"]);
    let field = prop_oneof![
        2 => Just(String::new()),
        1 => Just("\"\"".to_owned()),
        4 => "[a-zA-Z0-9^~&\\\\ .\"é]{1,12}",
    ];
    (name, prop::collection::vec(field, 0..9))
        .prop_map(|(name, fields)| format!("{name}|{}", fields.join("|")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn from_the_full_document_the_message_can_be_written_again(segments in prop::collection::vec(segment(), 0..6)) {
        let header = "MSH|^~\\&|LAB";
        let message = format!("{header}\r{}\r", segments.join("\r"));
        let document: Value = serde_json::from_str(&transform(full(), message.as_bytes()).unwrap()).unwrap();
        let found: Vec<String> = document["segments"].as_array().unwrap().iter().map(rewritten).collect();
        let expected: Vec<String> =
            std::iter::once(header.to_owned()).chain(segments.iter().map(|text| without_empty_ends(text))).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn the_compact_document_says_what_the_full_one_does(segment in segment()) {
        let message = format!("MSH|^~\\&|LAB\r{segment}\r");
        let read = |settings| -> Value {
            serde_json::from_str(&transform(settings, message.as_bytes()).unwrap()).unwrap()
        };
        let compact = read(Settings { shape: Shape::Compact, ..full() });
        let full = read(full());
        for number in 1..10 {
            let [compact, full] = [&compact, &full].map(|document| document["segments"][1].get(number.to_string()));
            prop_assert_eq!(compact.map(of_compact), full.map(of_full), "field {}", number);
        }
    }

    #[test]
    fn no_bytes_make_it_fall(
        tail in prop::collection::vec(
            prop_oneof![4 => prop::sample::select(b"|^~\\&\r\nOBXPID\"0.".to_vec()), 1 => any::<u8>()], 0..200),
        compact in any::<bool>(),
    ) {
        let message = [b"MSH|^~\\&|LAB\r".as_slice(), &tail].concat();
        let settings = if compact { Settings::default() } else { full() };
        if let Ok(document) = transform(settings, &message) {
            let document: Value = serde_json::from_str(&document).unwrap();
            let segments = Hl7::parse(&message).unwrap().segments().count();
            prop_assert_eq!(document["segments"].as_array().unwrap().len(), segments);
        }
    }
}

#[test]
fn a_large_document_is_whole_and_one_beyond_the_limit_refused() {
    let data = "QUJD".repeat(5 << 20);
    let message = format!("MSH|^~\\&|LAB\rOBX|1|ED|x||^AP^PDF^Base64^{data}\rNTE|1||end\r");
    let document = transform(Settings::default(), message.as_bytes()).unwrap();
    assert!(document.contains(&format!(r#""OBX-5.4":"Base64","OBX-5.5":"{data}"}}}}"#)));
    assert!(document.ends_with(r#""NTE-3":"end"}]}"#));
    let message = format!("MSH|^~\\&|LAB\rZZZ|{}\r", "a&".repeat(10 << 20));
    let problem = transform(Settings::default(), message.as_bytes()).unwrap_err();
    assert!(matches!(&problem, Problem::Quarantine(failure) if failure.code == "too-large"), "{problem:?}");
}
