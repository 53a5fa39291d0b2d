//! What is made of a message before it is written: parts of the message and of the settings as they
//! are, and what is new. Nothing large is copied.

use std::borrow::Cow;

use portway_json::{Output, Value};
use serde_json::Value as Literal;

/// The name of a member and its value.
pub(crate) type MadeMember<'m> = (Cow<'m, str>, Made<'m>);

/// A value of the output.
#[derive(Clone, Debug)]
pub(crate) enum Made<'m> {
    /// Of the message.
    Given(&'m Value<'m>),
    /// Of the settings.
    Literal(&'m Literal),
    Bool(bool),
    /// As JSON writes it.
    Number(String),
    Text(Cow<'m, str>),
    Array(Vec<Made<'m>>),
    Object(Vec<MadeMember<'m>>),
}

/// Made where there is nothing.
static NULL: Literal = Literal::Null;

impl<'m> Made<'m> {
    pub(crate) fn null() -> Made<'m> {
        Made::Literal(&NULL)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Made::Given(Value::Null) | Made::Literal(Literal::Null))
    }

    /// Texts, numbers and booleans as text.
    pub(crate) fn scalar(&self) -> Option<Cow<'m, str>> {
        let boolean = |value: bool| Cow::Borrowed(if value { "true" } else { "false" });
        Some(match self {
            Made::Given(Value::Text(text)) => Cow::Borrowed(text.as_ref()),
            Made::Given(Value::Number(number)) => Cow::Borrowed(number),
            Made::Given(Value::Bool(value)) | Made::Bool(value) | Made::Literal(Literal::Bool(value)) => {
                boolean(*value)
            }
            Made::Literal(Literal::String(text)) => Cow::Borrowed(text),
            Made::Literal(Literal::Number(number)) => Cow::Owned(number.to_string()),
            Made::Text(text) => text.clone(),
            Made::Number(number) => Cow::Owned(number.clone()),
            Made::Array(_)
            | Made::Object(_)
            | Made::Given(Value::Null | Value::Array(_) | Value::Object(_))
            | Made::Literal(Literal::Null | Literal::Array(_) | Literal::Object(_)) => return None,
        })
    }

    /// The same with its members or elements apart, where it has some, so that they can be changed.
    pub(crate) fn opened(self) -> Made<'m> {
        match self {
            Made::Given(Value::Array(elements)) => Made::Array(elements.iter().map(Made::Given).collect()),
            Made::Literal(Literal::Array(elements)) => {
                Made::Array(elements.iter().map(Made::Literal).collect())
            }
            Made::Given(Value::Object(members)) => Made::Object(
                members
                    .iter()
                    .map(|(name, value)| (Cow::Borrowed(name.as_ref()), Made::Given(value)))
                    .collect(),
            ),
            Made::Literal(Literal::Object(members)) => {
                let members = members.iter();
                Made::Object(
                    members
                        .map(|(name, value)| (Cow::Borrowed(name.as_str()), Made::Literal(value)))
                        .collect(),
                )
            }
            other => other,
        }
    }

    /// What a sentence calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Made::Given(value) => value.kind(),
            Made::Literal(Literal::Null) => "null",
            Made::Bool(_) | Made::Literal(Literal::Bool(_)) => "a boolean",
            Made::Number(_) | Made::Literal(Literal::Number(_)) => "a number",
            Made::Text(_) | Made::Literal(Literal::String(_)) => "a text",
            Made::Array(_) | Made::Literal(Literal::Array(_)) => "an array",
            Made::Object(_) | Made::Literal(Literal::Object(_)) => "an object",
        }
    }

    /// Writes it on one line. A document beyond the limit is noticed by the output.
    pub(crate) fn write(&self, out: &mut Output) {
        match self {
            Made::Given(value) => out.push_value(value),
            Made::Literal(literal) => write_literal(literal, out),
            Made::Bool(value) => out.push(if *value { b"true" } else { b"false" }),
            Made::Number(number) => out.push(number.as_bytes()),
            Made::Text(text) => out.push_text(text),
            Made::Array(elements) => {
                out.push(b"[");
                for (number, element) in elements.iter().enumerate() {
                    if out.is_over() {
                        break;
                    }
                    out.push(if number == 0 { b"" } else { b"," });
                    element.write(out);
                }
                out.push(b"]");
            }
            Made::Object(members) => {
                out.push(b"{");
                for (number, (name, value)) in members.iter().enumerate() {
                    out.push(if number == 0 { b"" } else { b"," });
                    out.push_name(name);
                    value.write(out);
                }
                out.push(b"}");
            }
        }
    }
}

fn write_literal(literal: &Literal, out: &mut Output) {
    match literal {
        Literal::Null | Literal::Bool(_) | Literal::Number(_) => out.push(literal.to_string().as_bytes()),
        Literal::String(text) => out.push_text(text),
        Literal::Array(_) | Literal::Object(_) => Made::Literal(literal).opened().write(out),
    }
}
