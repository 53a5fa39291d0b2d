//! One span: a piece of work on one message, with what is known of it. Names and values are the
//! project's and the engine's own; nothing of a message is in it.

use crate::{SpanId, TraceId};

/// See the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    /// None: the trace begins with it.
    pub parent: Option<SpanId>,
    pub kind: Kind,
    pub name: String,
    /// Nanoseconds since 1970.
    pub began_ns: u64,
    pub ended_ns: u64,
    pub attributes: Vec<(&'static str, Value)>,
    /// The code of what went wrong.
    pub error: Option<String>,
}

/// Who is on the other side of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody.
    Internal,
    /// A peer asked for it.
    Server,
    /// A peer was asked.
    Client,
}

/// What an attribute can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Whole(u64),
    Number(f64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Whole(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}
