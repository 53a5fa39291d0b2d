//! Tables of several kinds, told apart by their `type` key.

use portway_model::code;
use toml::de::DeValue;

use crate::reader::{Node, Reader, TableNode};

/// Makes an enum of groups readable by its `type` key.
macro_rules! by_type {
    ($name:ident { $($word:literal => $case:ident($group:ident)),+ $(,)? }) => {
        impl crate::value::Value for $name {
            fn type_name() -> String {
                "table".to_owned()
            }

            fn read(node: &crate::reader::Node<'_>, reader: &mut crate::reader::Reader<'_>) -> Option<Self> {
                match crate::by_type::read_type(node, reader, &[$($word),+])? {
                    $(($word, table) => $group::read_table(table, reader).map($name::$case),)+
                    _ => None,
                }
            }

            fn schema(definitions: &mut crate::schema::Definitions) -> serde_json::Value {
                crate::schema::by_type(vec![$(($word, <$group as crate::value::Value>::schema(definitions))),+])
            }

            fn show(&self) -> String {
                "{ … }".to_owned()
            }

            fn groups(docs: &mut Vec<crate::group::GroupDoc>) {
                $($group::groups(docs);)+
            }
        }
    };
}
pub(crate) use by_type;

/// The word under `type`, out of those that are known, and the table it decides about.
pub(crate) fn read_type<'n>(
    node: &Node<'n>,
    reader: &mut Reader<'_>,
    known: &[&'static str],
) -> Option<(&'static str, TableNode<'n>)> {
    let DeValue::Table(table) = node.value else {
        reader.report_type(node, "a table");
        return None;
    };
    let hint = || Some(format!("write `type = \"…\"`, one of {}", known.join(", ")));
    let Some(given) = table.get("type") else {
        reader.report_missing(node.span.start, format!("`{}` has no `type`", node.key), hint());
        return None;
    };
    let written = given.get_ref().as_str().unwrap_or_default();
    let Some(word) = known.iter().copied().find(|word| *word == written) else {
        let text = format!("`{}` has an unknown `type`", node.key);
        reader.report(given.span().start, code::BAD_VALUE, text, hint());
        return None;
    };
    Some((word, TableNode { table, offset: node.span.start, path: "" }))
}
