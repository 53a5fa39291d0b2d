//! A JSON value as a message has it: slices of its text, members in their order.

use std::borrow::Cow;

/// The name of a member and its value.
pub type Member<'a> = (Cow<'a, str>, Value<'a>);

/// A value. No object has a name twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    Object(Vec<Member<'a>>),
}

impl<'a> Value<'a> {
    /// The member of an object.
    pub fn member(&self, name: &str) -> Option<&Value<'a>> {
        let Value::Object(members) = self else { return None };
        members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// What a sentence calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }
}
