//! What a value of a project file can be: plain types. Composed and named ones are in
//! `list`, `text` and beside their options.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_model::code;
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::group::GroupDoc;
use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::{At, ByteSize, duration};

/// Something that can be read from a project file.
pub(crate) trait Value: Sized {
    /// As the reference calls it.
    fn type_name() -> String;

    /// None: it is wrong, and the reader was told.
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self>;

    /// What a file may hold for it, as JSON Schema; groups stand among the definitions.
    fn schema(definitions: &mut Definitions) -> Json;

    /// As it is written in a file.
    fn show(&self) -> String;

    /// A line that a user could add.
    fn example(key: &str) -> String {
        format!("`{key} = …` ({})", Self::type_name())
    }

    /// What it is where nothing is given: only groups have an answer.
    fn read_absent(_reader: &mut Reader<'_>) -> Option<Self> {
        None
    }

    /// Makes a default fit the project, where it depends on it.
    fn adopt(self, _reader: &Reader<'_>) -> Self {
        self
    }

    /// The groups of options inside it, for the reference.
    fn groups(_docs: &mut Vec<GroupDoc>) {}
}

/// A field of a group: a value, or `Option` of one.
pub(crate) trait Field: Sized {
    type Inner: Value;

    fn present(value: Self::Inner) -> Self;
    fn inner(&self) -> Option<&Self::Inner>;
    /// What the field is without a value; none: it needs one.
    fn absent() -> Option<Self>;
    fn adopt(self, reader: &Reader<'_>) -> Self;
}

impl<T: Value> Field for T {
    type Inner = T;

    fn present(value: T) -> T {
        value
    }

    fn inner(&self) -> Option<&T> {
        Some(self)
    }

    fn absent() -> Option<T> {
        None
    }

    fn adopt(self, reader: &Reader<'_>) -> T {
        Value::adopt(self, reader)
    }
}

impl<T: Value> Field for Option<T> {
    type Inner = T;

    fn present(value: T) -> Option<T> {
        Some(value)
    }

    fn inner(&self) -> Option<&T> {
        self.as_ref()
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }

    fn adopt(self, reader: &Reader<'_>) -> Option<T> {
        self.map(|value| Value::adopt(value, reader))
    }
}

impl<T: Value> Value for At<T> {
    fn type_name() -> String {
        T::type_name()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let place = reader.place(node.span.start);
        T::read(node, reader).map(|value| At { value, place })
    }

    fn schema(definitions: &mut Definitions) -> Json {
        T::schema(definitions)
    }

    fn show(&self) -> String {
        self.value.show()
    }

    fn example(key: &str) -> String {
        T::example(key)
    }

    fn groups(docs: &mut Vec<GroupDoc>) {
        T::groups(docs);
    }
}

impl Value for bool {
    fn type_name() -> String {
        "`true` or `false`".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        if let DeValue::Boolean(value) = node.value {
            return Some(*value);
        }
        reader.report_type(node, "`true` or `false`");
        None
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        json!({ "type": "boolean" })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_number {
    ($($type:ty),+) => { $(
        impl Value for $type {
            fn type_name() -> String {
                "whole number".to_owned()
            }

            fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let DeValue::Integer(integer) = node.value else {
                    reader.report_type(node, "a whole number");
                    return None;
                };
                let value = <$type>::from_str_radix(integer.as_str(), integer.radix()).ok();
                if value.is_none() {
                    let hint = format!("write a whole number from {} to {}", <$type>::MIN, <$type>::MAX);
                    let text = format!("`{}` is outside its limits", node.key);
                    reader.report(node.span.start, code::OUTSIDE_LIMITS, text, Some(hint));
                }
                value
            }

            fn schema(_definitions: &mut Definitions) -> Json {
                json!({ "type": "integer", "minimum": <$type>::MIN, "maximum": <$type>::MAX })
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+ };
}

whole_number!(u8, u16, u32, u64);

/// A string of a known form. The text of the problem does not repeat it: it may hold a secret.
pub(crate) fn read_form<T>(
    node: &Node<'_>,
    reader: &mut Reader<'_>,
    form: &str,
    hint: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let text = crate::text::read_string(node, reader, form, Some(hint))?;
    let value = parse(&text);
    if value.is_none() {
        let text = format!("`{}` is not {form}", node.key);
        reader.report(node.span.start, code::BAD_VALUE, text, Some(hint.to_owned()));
    }
    value
}

impl Value for Duration {
    fn type_name() -> String {
        "duration".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        read_form(
            node,
            reader,
            "a duration",
            "write such as `\"500ms\"`, `\"30s\"`, `\"10m\"`, `\"2h\"` or `\"30d\"`",
            duration::parse,
        )
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::form("^[0-9]+(d|h|m|s|ms)$")
    }

    fn show(&self) -> String {
        format!("\"{}\"", duration::show(*self))
    }
}

impl Value for ByteSize {
    fn type_name() -> String {
        "size".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        read_form(
            node,
            reader,
            "a size",
            "write such as `\"512B\"`, `\"64KB\"`, `\"64MB\"` or `\"2GB\"`",
            ByteSize::parse,
        )
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::form("^[0-9]+([KMG]i?)?B$")
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// Entries of a map or list that a file may have.
pub(crate) const ENTRIES_MAX: usize = 1_000;

impl<T: Value> Value for BTreeMap<crate::Name, T> {
    fn type_name() -> String {
        format!("table of {}", T::type_name())
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Table(table) = node.value else {
            reader.report_type(node, "a table");
            return None;
        };
        if table.len() > ENTRIES_MAX {
            let text = format!("`{}` has {} entries, at most {ENTRIES_MAX} are taken", node.key, table.len());
            reader.report(node.span.start, code::OUTSIDE_LIMITS, text, None);
            return None;
        }
        let mut map = BTreeMap::new();
        for (key, value) in table {
            let Some(name) = crate::Name::new(key.get_ref()) else {
                let text = format!("`{}` is not a name", crate::reader::shorten(key.get_ref()));
                reader.report(key.span().start, code::BAD_VALUE, text, Some(crate::Name::RULE.to_owned()));
                continue;
            };
            let entry = Node { value: value.get_ref(), span: value.span(), key: &name, mark: node.mark };
            if let Some(value) = T::read(&entry, reader) {
                map.insert(name.clone(), value);
            }
        }
        Some(map)
    }

    fn schema(definitions: &mut Definitions) -> Json {
        json!({
            "type": "object",
            "propertyNames": { "pattern": crate::Name::PATTERN },
            "additionalProperties": T::schema(definitions),
            "maxProperties": ENTRIES_MAX,
        })
    }

    fn show(&self) -> String {
        if self.is_empty() { "{}".to_owned() } else { "{ … }".to_owned() }
    }

    fn groups(docs: &mut Vec<GroupDoc>) {
        T::groups(docs);
    }
}
