//! A group of options: one table of a project file, declared once.
//!
//! `group!` makes of one declaration the settings, the code that reads them, the page of the
//! reference and the JSON Schema: doc comments are the text, defaults and limits are the ones enforced.

use crate::template::Mark;

/// A group as the reference shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupDoc {
    /// Its path, such as `destination.retry`.
    pub(crate) path: &'static str,
    /// The file it stands in.
    pub(crate) file: &'static str,
    pub(crate) text: String,
    pub(crate) options: Vec<OptionDoc>,
}

/// An option as the reference shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionDoc {
    pub(crate) key: &'static str,
    pub(crate) type_name: String,
    /// As it is written in a file; none: there is no default.
    pub(crate) default: Option<String>,
    /// It has to be given.
    pub(crate) required: bool,
    /// The least and the most.
    pub(crate) limits: Option<(String, String)>,
    pub(crate) mark: Mark,
    pub(crate) text: String,
}

/// Joins the lines of a doc comment.
pub(crate) fn join_lines(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Declares a group of options.
///
/// An option is `name: Type`, then in this order where wanted: `= default`,
/// `, within(least, most)`, `, marked(Env)`, `, absent(Defaults)` (a table whose options all
/// have defaults). `Option<Type>` may be missing; any other without a default is required.
macro_rules! group {
    (
        $(#[doc = $doc:literal])*
        $name:ident at $path:literal in $file:literal $(tag $tag:literal)? {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $type:ty
                    $(= $default:expr)?
                    $(, within($least:expr, $most:expr))?
                    $(, marked($mark:ident))?
                    $(, absent($absent:ident))?
            );* $(;)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
        }

        impl $name {
            const KEYS: &[&str] = &[$($tag,)? $(stringify!($field)),*];

            pub(crate) fn read_table(
                table: crate::reader::TableNode<'_>,
                reader: &mut crate::reader::Reader<'_>,
            ) -> Option<Self> {
                reader.unknown_keys(table, Self::KEYS);
                $(
                    let rule = crate::reader::Rule::<$type> {
                        key: stringify!($field),
                        mark: group!(@mark $($mark)?),
                        absent: group!(@absent [$($default)?] [$($absent)?]),
                    };
                    let $field = reader.option(table, &rule);
                    $(let $field = reader.within(table, &rule, $field, ($least, $most));)?
                )*
                Some($name { $($field: $field?),* })
            }

            fn options() -> Vec<crate::group::OptionDoc> {
                vec![$(
                    crate::group::OptionDoc {
                        key: stringify!($field),
                        type_name: <<$type as crate::value::Field>::Inner as crate::value::Value>::type_name(),
                        default: group!(@show $type, [$($default)?]),
                        required: group!(@required $type, [$($default)?] [$($absent)?]),
                        limits: group!(@limits $type, [$($least, $most)?]),
                        mark: group!(@mark $($mark)?),
                        text: crate::group::join_lines(&[$($field_doc),*]),
                    }
                ),*]
            }

            fn describe(docs: &mut Vec<crate::group::GroupDoc>) {
                docs.push(crate::group::GroupDoc {
                    path: $path,
                    file: $file,
                    text: crate::group::join_lines(&[$($doc),*]),
                    options: Self::options(),
                });
                $(<<$type as crate::value::Field>::Inner as crate::value::Value>::groups(docs);)*
            }
        }

        impl crate::value::Value for $name {
            fn type_name() -> String {
                "table".to_owned()
            }

            fn read(
                node: &crate::reader::Node<'_>,
                reader: &mut crate::reader::Reader<'_>,
            ) -> Option<Self> {
                let toml::de::DeValue::Table(table) = node.value else {
                    reader.report_type(node, "a table");
                    return None;
                };
                let table = crate::reader::TableNode { table, offset: node.span.start, path: $path };
                Self::read_table(table, reader)
            }

            fn schema(definitions: &mut crate::schema::Definitions) -> serde_json::Value {
                let name = stringify!($name);
                if !definitions.contains_key(name) {
                    // Of a group inside itself there is one definition, too.
                    definitions.insert(name.to_owned(), serde_json::Value::Null);
                    let values =
                        vec![$(<<$type as crate::value::Field>::Inner as crate::value::Value>::schema(definitions)),*];
                    let tag = group!(@tag $($tag)?);
                    let schema = crate::schema::of_group(&[$($doc),*], tag, &Self::options(), values);
                    definitions.insert(name.to_owned(), schema);
                }
                crate::schema::reference(name)
            }

            fn show(&self) -> String {
                "{ … }".to_owned()
            }

            fn example(key: &str) -> String {
                format!("`[{key}]`")
            }

            fn read_absent(reader: &mut crate::reader::Reader<'_>) -> Option<Self> {
                let table = toml::de::DeTable::new();
                Self::read_table(crate::reader::TableNode { table: &table, offset: 0, path: $path }, reader)
            }

            fn groups(docs: &mut Vec<crate::group::GroupDoc>) {
                Self::describe(docs);
            }
        }
    };

    (@tag) => { None };
    (@tag $tag:literal) => { Some($tag) };
    (@mark) => { crate::template::Mark::None };
    (@mark $mark:ident) => { crate::template::Mark::$mark };
    (@absent [] []) => { crate::reader::Absent::Required };
    (@absent [$default:expr] []) => { crate::reader::Absent::Default(|| $default) };
    (@absent [] [$absent:ident]) => { crate::reader::Absent::$absent };
    (@show $type:ty, []) => { None };
    (@show $type:ty, [$default:expr]) => {{
        let default: $type = $default;
        crate::value::Field::inner(&default).map(crate::value::Value::show)
    }};
    (@required $type:ty, [] []) => { <$type as crate::value::Field>::absent().is_none() };
    (@required $type:ty, [$($default:expr)?] [$($absent:ident)?]) => { false };
    (@limits $type:ty, []) => { None };
    (@limits $type:ty, [$least:expr, $most:expr]) => {{
        type Inner = <$type as crate::value::Field>::Inner;
        Some((<Inner as crate::value::Value>::show(&$least), <Inner as crate::value::Value>::show(&$most)))
    }};
}
