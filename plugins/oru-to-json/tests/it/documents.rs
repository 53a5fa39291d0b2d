//! Whatever comes, the document is JSON without a key twice, and no message makes the plugin fall.

use std::{collections::BTreeSet, fmt};

use portway_oru_to_json::{OruToJson, Settings};
use portway_sdk::{Context, Message, Transform, TransformVerdict};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Fails if the text is not JSON or an object has a key twice.
pub fn check_json(text: &str) {
    serde_json::from_str::<Checked>(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Checked)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value as these documents have them")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checked, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, Checked)) = map.next_entry::<String, Checked>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("key `{key}` twice")));
            }
            keys.insert(key);
        }
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Checked, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }
}

fn document(bytes: &[u8]) -> Option<String> {
    let mut transform = OruToJson::open(Settings::default(), &Context::default()).unwrap();
    match transform.transform(Message::new(bytes)) {
        Ok(TransformVerdict::Deliver(outputs)) => Some(outputs.first()?.body.text().unwrap().into_owned()),
        _ => None,
    }
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        1 => Just("\"\"".into()),
        2 => "[0-9]{1,14}",
        3 => "[A-Za-z\"^~&. 0-9\\\\é]{1,20}",
        1 => prop::sample::select(vec!["NM", "ST", "CE", "TS", "ED", "SN", "XX", "20240229", "13.50", "^^^", "~~", "\"\"~a"])
            .prop_map(str::to_owned),
    ]
}

fn segment() -> impl Strategy<Value = String> {
    let name =
        prop::sample::select(vec!["PID", "PV1", "ORC", "OBR", "OBX", "NTE", "SPM", "ZZZ", "obx", "PD1", "?"]);
    (name, proptest::collection::vec(field(), 0..20))
        .prop_map(|(name, fields)| format!("{name}|{}", fields.join("|")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_segments_in_any_order_give_a_document(segments in proptest::collection::vec(segment(), 0..14)) {
        let message = format!("MSH|^~\\&|LAB||EHR||20240229||ORU^R01|1|P|2.5\r{}\r", segments.join("\r"));
        let document = document(message.as_bytes());
        prop_assert!(document.is_some());
        check_json(&document.unwrap());
    }

    #[test]
    fn no_bytes_make_it_fall(tail in proptest::collection::vec(
        prop_oneof![4 => prop::sample::select(b"|^~\\&\r\nOBXPIDNTE\"0.".to_vec()), 1 => any::<u8>()], 0..200)) {
        if let Some(document) = document(&[b"MSH|^~\\&|LAB||EHR||20240229||ORU^R01|1|P|2.5\r".as_slice(), &tail].concat()) {
            check_json(&document);
        }
    }
}

#[test]
fn a_large_document_is_a_blob_and_whole() {
    let data = "QUJD".repeat(1 << 20);
    let message = format!(
        "MSH|^~\\&|LAB||EHR||20240229||ORU^R01|1|P|2.5\rOBR|1\rOBX|1|ED|x||^AP^PDF^Base64^{data}||||||F\rNTE|1||end\r"
    );
    let document = document(message.as_bytes()).unwrap();
    check_json(&document);
    assert!(document.contains(&format!(r#""encoding":"Base64","data":"{data}"}}],"status":"F""#)));
    assert!(document.ends_with(r#""notes":["end"]}]}]}]}"#));
}
