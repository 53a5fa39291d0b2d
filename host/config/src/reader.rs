//! Reads tables of a parsed file into groups of options, and keeps every problem on the way.
//!
//! A value that is wrong is reported and replaced by its default, so that the rest of the
//! file is still looked at.

use std::ops::Range;
use std::path::Path;

use portway_model::code;
use toml::de::{DeTable, DeValue};

use crate::place::SourceText;
use crate::problem::suggest;
use crate::retention::instead_of_keep;
use crate::secret::Names;
use crate::template::Mark;
use crate::value::{Field, Value};
use crate::{Place, Problem};

/// One file on its way into settings.
pub(crate) struct Reader<'a> {
    source: SourceText<'a>,
    pub(crate) names: &'a Names<'a>,
    /// The project folder, which paths are relative to.
    pub(crate) base: &'a Path,
    problems: Vec<Problem>,
    /// The file has syntax errors: what seems missing may only be unreadable.
    damaged: bool,
}

/// A value of the file, and the option it is given to.
#[derive(Clone)]
pub(crate) struct Node<'n> {
    pub(crate) value: &'n DeValue<'n>,
    pub(crate) span: Range<usize>,
    /// The name of the option, for texts.
    pub(crate) key: &'n str,
    pub(crate) mark: Mark,
}

/// A table of the file, and the group of options it is.
#[derive(Clone, Copy)]
pub(crate) struct TableNode<'n> {
    pub(crate) table: &'n DeTable<'n>,
    /// Where it begins.
    pub(crate) offset: usize,
    /// The path of its group, such as `destination.retry`; empty at the top.
    pub(crate) path: &'static str,
}

/// What a group says of one option.
pub(crate) struct Rule<T> {
    pub(crate) key: &'static str,
    pub(crate) mark: Mark,
    pub(crate) absent: Absent<T>,
}

/// What an option is when it is not given.
pub(crate) enum Absent<T> {
    /// It has to be given (or may be missing, where its type says so).
    Required,
    Default(fn() -> T),
    /// A group whose options all have defaults.
    Defaults,
}

impl<'a> Reader<'a> {
    /// Parses the file and gives its top table to `read`; the problems come back.
    pub(crate) fn file<T>(
        name: &'a str,
        text: &'a str,
        names: &'a Names<'a>,
        base: &'a Path,
        read: impl FnOnce(TableNode<'_>, &mut Reader<'a>) -> Option<T>,
    ) -> (Option<T>, Vec<Problem>) {
        let (document, errors) = DeTable::parse_recoverable(text);
        let source = SourceText::new(name, text);
        let mut reader = Reader { source, names, base, problems: Vec::new(), damaged: !errors.is_empty() };
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            reader.report(offset, code::NOT_TOML, format!("not TOML: {}", error.message()), None);
        }
        let top = TableNode { table: document.get_ref(), offset: 0, path: "" };
        let value = read(top, &mut reader);
        (value, reader.problems)
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        self.source.place(offset)
    }

    pub(crate) fn report(
        &mut self,
        offset: usize,
        code: &'static str,
        text: impl Into<String>,
        hint: Option<String>,
    ) {
        let problem = Problem::new(self.place(offset), code, text);
        self.problems.push(match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }

    /// Something is not there. Not said of a file that could not be parsed whole.
    pub(crate) fn report_missing(&mut self, offset: usize, text: impl Into<String>, hint: Option<String>) {
        if !self.damaged {
            self.report(offset, code::OPTION_MISSING, text, hint);
        }
    }

    /// The value has another type than the option.
    pub(crate) fn report_type(&mut self, node: &Node<'_>, wanted: &str) {
        self.report_type_with(node, wanted, None);
    }

    /// The same, with what to write instead.
    pub(crate) fn report_type_with(&mut self, node: &Node<'_>, wanted: &str, hint: Option<String>) {
        let found = match node.value {
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
            DeValue::Integer(_) => "an integer",
            DeValue::String(_) => "a string",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
        };
        let text = format!("`{}` is {found}, not {wanted}", node.key);
        self.report(node.span.start, code::WRONG_TYPE, text, hint);
    }

    /// One option of a group.
    pub(crate) fn option<F: Field>(&mut self, table: TableNode<'_>, rule: &Rule<F>) -> Option<F> {
        let given = table.table.get(rule.key);
        if let Some(spanned) = given {
            let node =
                Node { value: spanned.get_ref(), span: spanned.span(), key: rule.key, mark: rule.mark };
            if let Some(value) = F::Inner::read(&node, self) {
                return Some(F::present(value));
            }
        }
        match &rule.absent {
            Absent::Default(default) => Some(default().adopt(self)),
            Absent::Defaults => F::Inner::read_absent(self).map(F::present),
            Absent::Required => {
                let absent = F::absent();
                if absent.is_none() && given.is_none() {
                    let dot = if table.path.is_empty() { "" } else { "." };
                    let text = format!("`{}{dot}{}` is missing", table.path, rule.key);
                    self.report_missing(
                        table.offset,
                        text,
                        Some(format!("add {}", F::Inner::example(rule.key))),
                    );
                }
                absent
            }
        }
    }

    /// Reports an option whose value is outside its limits; the caller falls back to the default.
    pub(crate) fn within<F: Field>(
        &mut self,
        table: TableNode<'_>,
        rule: &Rule<F>,
        value: Option<F>,
        limits: (F::Inner, F::Inner),
    ) -> Option<F>
    where
        F::Inner: PartialOrd,
    {
        let (least, most) = limits;
        let outside = value.as_ref().and_then(F::inner).is_some_and(|inner| *inner < least || *inner > most);
        if !outside {
            return value;
        }
        let offset = table.table.get(rule.key).map_or(table.offset, |spanned| spanned.span().start);
        let shown = value.as_ref().and_then(F::inner).map(Value::show).unwrap_or_default();
        let text = format!("`{}` is {shown}, outside its limits", rule.key);
        let hint = format!("write something from {} to {}", least.show(), most.show());
        self.report(offset, code::OUTSIDE_LIMITS, text, Some(hint));
        match &rule.absent {
            Absent::Default(default) => Some(default().adopt(self)),
            Absent::Required | Absent::Defaults => F::absent(),
        }
    }

    /// Reports every key of a table that its group does not know.
    pub(crate) fn unknown_keys(&mut self, table: TableNode<'_>, known: &[&str]) {
        for (key, value) in table.table {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let of = if table.path.is_empty() { String::new() } else { format!(" in `{}`", table.path) };
            // Keys made by a table header have a span of their own, too.
            let span = key.span();
            let offset = if span.end > span.start { span.start } else { value.span().start };
            let text = format!("unknown key `{}`{of}", shorten(name));
            let was_retention = name == "keep" && known.contains(&"retention");
            let hint = match was_retention {
                true => instead_of_keep(value.get_ref()),
                false => suggest(name, known.iter().copied()),
            };
            self.report(offset, code::UNKNOWN_KEY, text, Some(hint));
        }
    }
}

/// A text of the file as it may stand in a problem: short and without control characters.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    if text.chars().nth(64).is_some() {
        short.push('…');
    }
    short
}
