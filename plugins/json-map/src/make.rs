//! From a template and a message to the output.
//!
//! Elements of an array may be gone through inside one another, so what is made is counted: values and
//! bytes of text.

use std::borrow::Cow;

use portway_json::{Path, Value};
use portway_sdk::Problem;

use crate::made::Made;
use crate::node::{FromNode, Missing, Node, TextNode};
use crate::text::Piece;

/// Values that are made of one message. What is taken from it as a whole is one.
const VALUES_MAX: usize = 1_000_000;
/// Bytes of texts that are made of one message.
const TEXT_BYTES_MAX: usize = 32 << 20;

/// Where paths begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'m> {
    /// The element that is gone through, or the document.
    pub here: &'m Value<'m>,
    pub document: &'m Value<'m>,
}

/// Makes values, and counts them.
#[derive(Debug)]
pub(crate) struct Maker {
    values_left: usize,
    bytes_left: usize,
}

impl Maker {
    pub(crate) fn new() -> Maker {
        Maker { values_left: VALUES_MAX, bytes_left: TEXT_BYTES_MAX }
    }

    /// What a template says of a message; none: it is left out.
    pub(crate) fn make<'m>(&mut self, node: &'m Node, scope: Scope<'m>) -> Result<Option<Made<'m>>, Problem> {
        self.count(1, 0)?;
        match node {
            Node::Literal(literal) => Ok(Some(Made::Literal(literal))),
            Node::Text(node) => self.text(node, scope),
            Node::From(node) => self.value(node, scope),
            Node::Array(nodes) => {
                let mut elements = Vec::with_capacity(nodes.len());
                for node in nodes {
                    elements.extend(self.make(node, scope)?);
                }
                Ok(Some(Made::Array(elements)))
            }
            Node::Object(nodes) => {
                let mut members = Vec::with_capacity(nodes.len());
                for (name, node) in nodes {
                    members
                        .extend(self.make(node, scope)?.map(|value| (Cow::Borrowed(name.as_str()), value)));
                }
                Ok(Some(Made::Object(members)))
            }
        }
    }

    fn value<'m>(&mut self, node: &'m FromNode, scope: Scope<'m>) -> Result<Option<Made<'m>>, Problem> {
        let (found, path) = find(&node.paths, scope);
        let is_there = !matches!(found, None | Some(Value::Null));
        if let Some(default) = node.default.as_ref().filter(|_| !is_there) {
            return Ok(Some(Made::Literal(default)));
        }
        let Some(found) = found else { return missing(node.missing, &node.place, path) };
        let cannot = |why: String| {
            let text = format!("{}: what stands at `{}` {why}", node.place, shown(path));
            Problem::quarantine("cannot-convert", text)
        };
        let mut made = match &node.each {
            Some(each) if is_there => self.each(each, found, scope).map_err(|error| error.or_else(cannot))?,
            _ => Made::Given(found),
        };
        for step in &node.steps {
            made = step.apply(made).map_err(cannot)?;
            self.count_made(&made)?;
        }
        Ok(Some(made))
    }

    fn each<'m>(
        &mut self,
        each: &'m Node,
        found: &'m Value<'m>,
        scope: Scope<'m>,
    ) -> Result<Made<'m>, EachError> {
        let Value::Array(elements) = found else {
            return Err(EachError::NoArray(found.kind()));
        };
        let mut made = Vec::with_capacity(elements.len().min(self.values_left));
        for here in elements {
            let element = self.make(each, Scope { here, ..scope }).map_err(EachError::Inside)?;
            made.extend(element);
        }
        Ok(Made::Array(made))
    }

    fn text<'m>(&mut self, node: &'m TextNode, scope: Scope<'m>) -> Result<Option<Made<'m>>, Problem> {
        let mut text = String::new();
        for piece in &node.template.pieces {
            let (path, default) = match piece {
                Piece::Literal(literal) => {
                    text.push_str(literal);
                    continue;
                }
                Piece::Value { path, default } => (path, default),
            };
            let found = path.find(scope.here, scope.document).filter(|found| **found != Value::Null);
            match (found.map(Made::Given), default) {
                (None, Some(default)) => text.push_str(default),
                (None, None) => return missing(node.missing, &node.place, Some(path)),
                (Some(made), _) => {
                    let Some(scalar) = made.scalar() else {
                        let kind = made.kind();
                        let text =
                            format!("{}: what stands at `{path}` is {kind}, not a single value", node.place);
                        return Err(Problem::quarantine("cannot-convert", text));
                    };
                    self.count(0, scalar.len())?;
                    text.push_str(&scalar);
                }
            }
        }
        Ok(Some(Made::Text(text.into())))
    }

    fn count(&mut self, values: usize, bytes: usize) -> Result<(), Problem> {
        let left = self.values_left.checked_sub(values).zip(self.bytes_left.checked_sub(bytes));
        let Some((values_left, bytes_left)) = left else {
            let text =
                format!("more than {VALUES_MAX} values or {TEXT_BYTES_MAX} bytes of text would be made");
            return Err(Problem::quarantine("too-large", text));
        };
        (self.values_left, self.bytes_left) = (values_left, bytes_left);
        Ok(())
    }

    /// What a step has made.
    fn count_made(&mut self, made: &Made<'_>) -> Result<(), Problem> {
        match made {
            Made::Text(Cow::Owned(text)) | Made::Number(text) => self.count(0, text.len()),
            Made::Array(elements) => elements.iter().try_for_each(|element| {
                self.count(1, 0)?;
                self.count_made(element)
            }),
            Made::Text(Cow::Borrowed(_))
            | Made::Given(_)
            | Made::Literal(_)
            | Made::Bool(_)
            | Made::Object(_) => Ok(()),
        }
    }
}

/// Why the elements of an array gave nothing.
enum EachError {
    /// There is no array, but this.
    NoArray(&'static str),
    Inside(Problem),
}

impl EachError {
    fn or_else(self, cannot: impl Fn(String) -> Problem) -> Problem {
        match self {
            EachError::NoArray(kind) => cannot(format!("is {kind}, not an array with elements for `each`")),
            EachError::Inside(problem) => problem,
        }
    }
}

/// The first path with a value; else one with null; else none, and the last path.
fn find<'m>(paths: &'m [Path], scope: Scope<'m>) -> (Option<&'m Value<'m>>, Option<&'m Path>) {
    let mut found = (None, paths.last());
    for path in paths {
        match path.find(scope.here, scope.document) {
            Some(Value::Null) if found.0.is_none() => found = (Some(&Value::Null), Some(path)),
            None | Some(Value::Null) => {}
            Some(value) => return (Some(value), Some(path)),
        }
    }
    found
}

fn missing<'m>(missing: Missing, place: &str, path: Option<&Path>) -> Result<Option<Made<'m>>, Problem> {
    match missing {
        Missing::Omit => Ok(None),
        Missing::Null => Ok(Some(Made::null())),
        Missing::Quarantine => {
            let text = format!("{place}: there is nothing at `{}`", shown(path));
            Err(Problem::quarantine("missing-value", text))
        }
    }
}

/// A path as it is written; the document itself has the empty one.
fn shown(path: Option<&Path>) -> String {
    path.map(Path::to_string).unwrap_or_default()
}
