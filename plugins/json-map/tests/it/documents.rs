//! Whatever comes: a map that keeps everything changes nothing, no settings and no message make the
//! plugin fall, and what would grow without end is refused.

use portway_json_map::JsonMap;
use portway_sdk::{Context, Failure, Message, Problem, Transform, TransformVerdict};
use proptest::prelude::*;
use serde_json::{Value, json};

fn transform(settings: &Value, message: &[u8]) -> Result<String, Failure> {
    let mut transform = JsonMap::open(settings.clone(), &Context::default())?;
    match transform.transform(Message::new(message)) {
        Ok(TransformVerdict::Deliver(outputs)) => {
            let body = outputs.into_iter().next().unwrap().body;
            Ok(String::from_utf8(body.into_bytes().unwrap()).unwrap())
        }
        Err(Problem::Quarantine(failure)) => Err(failure),
        other => Err(Failure::new("unexpected", format!("{other:?}"))),
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c{}/.$|*]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let words = [
        "a", "b", "from", "to", "as", "each", "value", "rename", "map", "literal", "object", "default",
        "missing",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_keeps_everything_changes_nothing(document in json_value()) {
        let text = document.to_string();
        prop_assert_eq!(transform(&json!({"rest": "keep"}), text.as_bytes()).unwrap(), &*text);
        let text = json!({"a": document, "b": 1}).to_string();
        let settings = json!({"rest": "keep", "rules": [{"rename": "a", "to": "c"}, {"rename": "c", "to": "x.y"}]});
        let expected = json!({"b": 1, "c": document}).to_string();
        prop_assert_eq!(transform(&settings, text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn no_settings_and_no_document_make_it_fall(
        template in json_value(), rules in prop::collection::vec(json_value(), 0..3), keeps in any::<bool>(), document in json_value(),
    ) {
        let rest = if keeps { "keep" } else { "drop" };
        for settings in [
            json!({"template": &template, "rest": rest}),
            json!({"rules": rules, "rest": rest}),
            json!({"rules": [{"to": "a", "value": &template}], "rest": rest}),
        ] {
            if let Ok(made) = transform(&settings, document.to_string().as_bytes()) {
                serde_json::from_str::<Value>(&made).unwrap();
            }
        }
    }
}

#[test]
fn what_would_grow_without_end_is_refused() {
    let row = "{\"a\":1},".repeat(2_000);
    let message = format!(r#"{{"big":"{}","rows":[{row}{{}}]}}"#, "x".repeat(1 << 16));
    let rows = |each: Value| json!({"template": {"from": "rows", "each": each}});
    let refused = |settings: &Value| transform(settings, message.as_bytes()).unwrap_err().to_string();
    let inside = rows(json!({"from": "$.rows", "each": {"from": "a"}}));
    assert!(refused(&inside).starts_with("too-large: more than 1000000 values"), "{}", refused(&inside));
    let texts = rows(json!("{{$.big}}"));
    assert!(refused(&texts).starts_with("too-large: more than "), "{}", refused(&texts));
    let steps = rows(json!({"from": "$.big", "as": "upper"}));
    assert!(refused(&steps).starts_with("too-large: more than "), "{}", refused(&steps));
    let copies = rows(json!({"from": "$.big"}));
    assert!(refused(&copies).starts_with("too-large: the output would be larger"), "{}", refused(&copies));
}

#[test]
fn a_template_has_a_depth() {
    let mut template = json!(1);
    for _ in 0..40 {
        template = json!([template]);
    }
    let refused = transform(&json!({"template": template}), b"{}").unwrap_err();
    assert!(refused.text.contains("stands deeper than 32 levels"), "{refused}");
}
