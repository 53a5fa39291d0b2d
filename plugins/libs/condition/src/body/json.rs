//! JSON: values by JSON Pointer, where `*` stands for every element of an array and every member of an
//! object.
//!
//! There is no tree of the document: it is checked as a whole, then only what a path leads to is read.
//! All paths are one tree, so that the document is gone through once for all of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Found;
use crate::{ReadError, value::Value};

/// Parts of a pointer; the document is gone through again for each.
const PARTS_MAX: usize = 32;

/// The pointers of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Places {
    root: Node,
}

/// What is wanted of a value.
#[derive(Debug, Default)]
struct Node {
    /// The paths that end here.
    ends: Vec<usize>,
    members: BTreeMap<String, Node>,
    every: Option<Box<Node>>,
}

impl Places {
    pub(crate) fn add(&mut self, pointer: &str, index: usize) -> Result<(), String> {
        let mut node = &mut self.root;
        for part in parts(pointer)? {
            node = match part.as_str() {
                "*" => node.every.get_or_insert_default(),
                _ => node.members.entry(part).or_default(),
            };
        }
        node.ends.push(index);
        Ok(())
    }

    pub(crate) fn read(&self, bytes: &[u8], found: &mut Found) -> Result<(), ReadError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = super::decode(bytes, "")?;
        let raw: &RawValue = serde_json::from_str(&text).map_err(not_json)?;
        self.root.read(raw.get(), found)
    }
}

/// The parts of a pointer, unescaped.
fn parts(pointer: &str) -> Result<Vec<String>, String> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(inside) = pointer.strip_prefix('/') else {
        return Err(format!("`{pointer}` is no JSON Pointer like `/patient/ids/0` or `/results/*/code`"));
    };
    let parts: Vec<String> =
        inside.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    if parts.len() > PARTS_MAX {
        return Err(format!("a JSON Pointer has more than {PARTS_MAX} parts"));
    }
    Ok(parts)
}

fn not_json(error: serde_json::Error) -> ReadError {
    ReadError::unreadable(format!("the body is no JSON: {error}"))
}

impl Node {
    fn read(&self, raw: &str, found: &mut Found) -> Result<(), ReadError> {
        for path in &self.ends {
            found.push(*path, value(raw)?)?;
        }
        if self.members.is_empty() && self.every.is_none() {
            return Ok(());
        }
        let mut json = serde_json::Deserializer::from_str(raw);
        let mut refused = None;
        let inside = Inside { node: self, found, refused: &mut refused };
        let read = match raw.bytes().next() {
            Some(b'{') => json.deserialize_map(inside),
            Some(b'[') => json.deserialize_seq(inside),
            _ => Ok(()),
        };
        match refused {
            Some(error) => Err(error),
            None => read.map_err(not_json),
        }
    }

    /// Whether anything is wanted of what stands under a name, and what.
    fn under<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Node> + use<'a> {
        self.members.get(name).into_iter().chain(self.every.as_deref())
    }
}

fn value(raw: &str) -> Result<Value, ReadError> {
    let is_empty = || raw.get(1..raw.len().saturating_sub(1)).is_none_or(|inside| inside.trim().is_empty());
    Ok(match raw.bytes().next() {
        Some(b'"') => Value::Text(serde_json::from_str(raw).map_err(not_json)?),
        Some(b'{' | b'[') => Value::Part { is_empty: is_empty() },
        Some(b'n') => Value::Null,
        _ => Value::Text(raw.to_owned()),
    })
}

/// The members of an object or the elements of an array.
struct Inside<'a> {
    node: &'a Node,
    found: &'a mut Found,
    /// Why reading ended, where that was not for the JSON.
    refused: &'a mut Option<ReadError>,
}

impl Inside<'_> {
    fn take<E: Error>(&mut self, name: &str, raw: &RawValue) -> Result<(), E> {
        for node in self.node.under(name) {
            if let Err(error) = node.read(raw.get(), self.found) {
                *self.refused = Some(error);
                return Err(E::custom("it is not read further"));
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Inside<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if self.node.under(&name).next().is_some() {
                let raw: &RawValue = map.next_value()?;
                self.take(&name, raw)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        while let Some(element) = list.next_element_seed(Raw)? {
            self.take(&index.to_string(), element)?;
            index += 1;
        }
        Ok(())
    }
}

/// An element as it is written.
struct Raw;

impl<'de> DeserializeSeed<'de> for Raw {
    type Value = &'de RawValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'de RawValue, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str, pointers: &[&str], max: usize) -> Result<Vec<Vec<Value>>, ReadError> {
        let mut places = Places::default();
        for (index, pointer) in pointers.iter().enumerate() {
            places.add(pointer, index).unwrap();
        }
        let mut found = Found::new(pointers.len(), max);
        places.read(json.as_bytes(), &mut found).map(|()| found.values)
    }

    fn texts(json: &str, pointer: &str) -> String {
        let values = read(json, &[pointer], 100).unwrap().remove(0);
        let told = values.iter().map(|value| match value {
            Value::Text(text) => text.clone(),
            Value::Null => "null".into(),
            Value::Part { is_empty } => format!("part, empty {is_empty}"),
        });
        told.collect::<Vec<_>>().join(" | ")
    }

    const DOCUMENT: &str = r#" {"a":{"b":[1,2.50,"x\u00e9",null,true]},"c/d":{"~":"t"},"*":"star",
        "r":[{"code":"K"},{"code":"Na","v":[{"w":1},{"w":2}]},{}],"e":{},"f":[ ],"n":12345678901234567890123} "#;

    #[test]
    fn pointers_lead_to_values_as_they_are_written() {
        assert_eq!(texts(DOCUMENT, "/a/b/1"), "2.50");
        assert_eq!(texts(DOCUMENT, "/a/b/*"), "1 | 2.50 | xé | null | true");
        assert_eq!(texts(DOCUMENT, "/c~1d/~0"), "t");
        assert_eq!(texts(DOCUMENT, "/r/*/code"), "K | Na");
        assert_eq!(texts(DOCUMENT, "/r/*/v/*/w"), "1 | 2");
        assert_eq!(texts(DOCUMENT, "/r/1/code"), "Na");
        assert_eq!(texts(DOCUMENT, "/n"), "12345678901234567890123");
        assert_eq!(texts(DOCUMENT, "/e"), "part, empty true");
        assert_eq!(texts(DOCUMENT, "/f"), "part, empty true");
        assert_eq!(texts(DOCUMENT, "/a"), "part, empty false");
        assert_eq!(texts(DOCUMENT, "/x"), "");
        assert_eq!(texts(DOCUMENT, "/r/01/code"), "");
        assert_eq!(texts("5", ""), "5");
    }

    #[test]
    fn paths_that_share_a_beginning_are_read_together() {
        let found = read(DOCUMENT, &["/r", "/r/*/code", "/r/0/code", "/r/1"], 100).unwrap();
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1, 1]);
    }

    #[test]
    fn what_is_no_json_and_what_has_too_many_values_is_said() {
        let refused = |json: &str, max| match read(json, &["/*"], max) {
            Err(ReadError::Unreadable(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(refused("{\"a\":1", 9).starts_with("the body is no JSON: EOF"));
        assert!(refused("", 9).starts_with("the body is no JSON"));
        assert!(refused("{} x", 9).starts_with("the body is no JSON: trailing"));
        assert_eq!(refused("[1,2,3]", 2), "the body has more than 2 values at these paths");
        assert!(refused("[\"\\ud800\"]", 2).starts_with("the body is no JSON"));
        assert!(Places::default().add("a/b", 0).unwrap_err().contains("no JSON Pointer"));
        assert!(Places::default().add(&"/a".repeat(PARTS_MAX + 1), 0).is_err());
    }

    #[test]
    fn nesting_without_end_is_no_danger() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(read(&deep, &["/0/0/0"], 9).unwrap(), [[Value::Part { is_empty: false }]]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(json in "[\\[\\]{}\",:0-9a\\\\ ]{0,40}", pointer in "(/[a*0]){0,3}") {
            let is_json = serde_json::from_str::<serde_json::Value>(&json).is_ok();
            let found = read(&json, &[&pointer], 1000);
            prop_assert!(!is_json || found.is_ok(), "{found:?}");
        }
    }
}
