//! Arrays of values, and words out of a fixed set.

use portway_model::code;
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::group::GroupDoc;
use crate::reader::{Node, Reader};
use crate::schema::Definitions;
use crate::value::{ENTRIES_MAX, Value};

impl<T: Value> Value for Vec<T> {
    fn type_name() -> String {
        format!("array of {}", T::type_name())
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Array(array) = node.value else {
            reader.report_type(node, "an array");
            return None;
        };
        if array.len() > ENTRIES_MAX {
            let text = format!("`{}` has {} entries, at most {ENTRIES_MAX} are taken", node.key, array.len());
            reader.report(node.span.start, code::OUTSIDE_LIMITS, text, None);
            return None;
        }
        let mut values = Vec::with_capacity(array.len());
        for item in array {
            let item = Node { value: item.get_ref(), span: item.span(), ..node.clone() };
            values.extend(T::read(&item, reader));
        }
        Some(values)
    }

    fn schema(definitions: &mut Definitions) -> Json {
        json!({ "type": "array", "items": T::schema(definitions), "maxItems": ENTRIES_MAX })
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Value::show).collect::<Vec<_>>().join(", "))
    }

    fn example(key: &str) -> String {
        format!("`[[{key}]]`")
    }

    fn groups(docs: &mut Vec<GroupDoc>) {
        T::groups(docs);
    }
}

/// Makes an enum readable by its words.
macro_rules! words {
    ($type:ty { $($word:literal => $case:path),+ $(,)? }) => {
        impl crate::value::Value for $type {
            fn type_name() -> String {
                [$(concat!("`\"", $word, "\"`")),+].join(" or ")
            }

            fn read(node: &crate::reader::Node<'_>, reader: &mut crate::reader::Reader<'_>) -> Option<Self> {
                let hint = concat!("write", $(" `\"", $word, "\"`"),+);
                let word = crate::text::read_string(node, reader, "a word", Some(hint))?;
                match word.as_str() {
                    $($word => Some($case),)+
                    other => {
                        let text = format!("`{}` cannot be `{}`", node.key, crate::reader::shorten(other));
                        let hint = crate::problem::suggest(other, [$($word),+]);
                        reader.report(node.span.start, portway_model::code::BAD_VALUE, text, Some(hint));
                        None
                    }
                }
            }

            fn schema(_definitions: &mut crate::schema::Definitions) -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$($word),+] })
            }

            fn show(&self) -> String {
                match self { $($case => concat!("\"", $word, "\"").to_owned()),+ }
            }
        }
    };
}
pub(crate) use words;
