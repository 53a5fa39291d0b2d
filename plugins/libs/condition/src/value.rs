//! A value that was found in a message.

use std::borrow::Cow;

use crate::Case;

/// Something that stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text, or a number or truth as it is written.
    Text(String),
    /// HL7 `""` and JSON `null`: written, and nothing.
    Null,
    /// A JSON object or array, of which only this can be asked.
    Part { is_empty: bool },
}

impl Value {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Value::Text(text) => text.is_empty(),
            Value::Null => true,
            Value::Part { is_empty } => *is_empty,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Null | Value::Part { .. } => None,
        }
    }
}

/// A text as it is compared.
pub(crate) fn folded(text: &str, case: Case) -> Cow<'_, str> {
    match case {
        Case::Sensitive => Cow::Borrowed(text),
        Case::Ignore => Cow::Owned(text.to_lowercase()),
    }
}

/// The number a text writes, with blanks around it; none: it is not one.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_people_write() {
        assert_eq!(number(" 5 "), Some(5.0));
        assert_eq!(number("-2.50"), Some(-2.5));
        assert_eq!(number("+.5"), Some(0.5));
        assert_eq!(number("1e3"), Some(1000.0));
        for text in ["", "inf", "NaN", "5 mg", "1,5", "0x10", "1e999", "e"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
