//! Reading JSON: strictly what RFC 8259 says, within limits, and a place for everything that is wrong.
//!
//! A name that stands twice in an object is refused as well: readers do not agree which of the two
//! counts, so nobody could say what was meant.

use std::borrow::Cow;
use std::fmt;

use portway_sdk::Problem;

use crate::number::number_end;
use crate::write::find_special;
use crate::{Member, Value};

/// Objects and arrays inside one another.
pub const DEPTH_MAX: usize = 128;
/// Values of one document: what fits into the memory of a plugin, whatever they are.
pub const VALUES_MAX: usize = 2_000_000;

/// So few names are compared each with each.
const FEW_NAMES: usize = 12;

/// Why a text is not read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The byte of the text.
    pub at: usize,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Expected(&'static str),
    EndsBefore(&'static str),
    Number,
    Control(u8),
    Escape,
    Surrogate,
    Twice(String),
    TooDeep,
    TooMany,
}

impl ParseError {
    /// The document is JSON, but beyond a limit.
    pub fn is_limit(&self) -> bool {
        matches!(self.why, Why::TooDeep | Why::TooMany)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.why {
            Why::Expected(what) => write!(f, "{what} is expected at byte {at}"),
            Why::EndsBefore(what) => write!(f, "the text ends at byte {at}, where {what} is expected"),
            Why::Number => write!(f, "what begins at byte {at} is no number"),
            Why::Control(byte) => write!(f, "0x{byte:02X} at byte {at} must be escaped in a text"),
            Why::Escape => write!(f, "there is no such escape as at byte {at}"),
            Why::Surrogate => write!(f, "the escape at byte {at} is half a character"),
            Why::Twice(name) => write!(f, "the object that ends at byte {at} has the name `{name}` twice"),
            Why::TooDeep => write!(f, "more than {DEPTH_MAX} levels at byte {at}"),
            Why::TooMany => write!(f, "more than {VALUES_MAX} values at byte {at}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Reads the document that is a message; what is no JSON or beyond a limit is quarantined.
pub fn read(text: &str) -> Result<Value<'_>, Problem> {
    parse(text).map_err(|error| match error.is_limit() {
        true => Problem::quarantine("too-large", format!("the document has {error}")),
        false => Problem::quarantine("not-json", error.to_string()),
    })
}

/// Reads a document. A byte order mark before it is passed over.
pub fn parse(text: &str) -> Result<Value<'_>, ParseError> {
    let mut parser = Parser { text, at: 0, values: 0, elements: Vec::new(), members: Vec::new() };
    if text.starts_with('\u{FEFF}') {
        parser.at = '\u{FEFF}'.len_utf8();
    }
    parser.blanks();
    let value = parser.value(0)?;
    parser.blanks();
    if parser.at < text.len() { Err(parser.error(Why::Expected("the end"))) } else { Ok(value) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    values: usize,
    /// Of all arrays that are open; those of the innermost are the last. So each array is made once,
    /// in its size.
    elements: Vec<Value<'a>>,
    /// The same for objects.
    members: Vec<Member<'a>>,
}

impl<'a> Parser<'a> {
    fn error(&self, why: Why) -> ParseError {
        ParseError { at: self.at, why }
    }

    fn expected(&self, what: &'static str) -> ParseError {
        self.error(if self.at < self.text.len() { Why::Expected(what) } else { Why::EndsBefore(what) })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes over one byte, if it is the next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(self.error(Why::TooMany));
        }
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{' | b'[') if depth == DEPTH_MAX => Err(self.error(Why::TooDeep)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'n') => self.word("null", Value::Null),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value<'a>) -> Result<Value<'a>, ParseError> {
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value<'a>, ParseError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let number = number_end(rest.as_bytes()).and_then(|end| rest.get(..end));
        let number = number.ok_or_else(|| self.error(Why::Number))?;
        self.at += number.len();
        Ok(Value::Number(number))
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        self.at += 1;
        self.blanks();
        if self.take(b']') {
            return Ok(Value::Array(Vec::new()));
        }
        let first = self.elements.len();
        loop {
            let value = self.value(depth + 1)?;
            self.elements.push(value);
            self.blanks();
            if self.take(b']') {
                return Ok(Value::Array(self.elements.drain(first..).collect()));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `]`"));
            }
            self.blanks();
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        self.at += 1;
        self.blanks();
        if self.take(b'}') {
            return Ok(Value::Object(Vec::new()));
        }
        let first = self.members.len();
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a name in quotes"));
            }
            let name = self.string()?;
            self.blanks();
            if !self.take(b':') {
                return Err(self.expected("`:`"));
            }
            self.blanks();
            let value = self.value(depth + 1)?;
            self.members.push((name, value));
            self.blanks();
            if self.take(b'}') {
                let members: Vec<Member<'a>> = self.members.drain(first..).collect();
                return match name_twice(&members) {
                    Some(name) => Err(self.error(Why::Twice(shortened(name)))),
                    None => Ok(Value::Object(members)),
                };
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `}`"));
            }
            self.blanks();
        }
    }

    /// From its first quote to behind its last.
    fn string(&mut self) -> Result<Cow<'a, str>, ParseError> {
        self.at += 1;
        let plain = self.plain_text()?;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        while !self.take(b'"') {
            text.push(self.escape()?);
            text.push_str(self.plain_text()?);
        }
        Ok(Cow::Owned(text))
    }

    /// What stands before the next quote or backslash.
    fn plain_text(&mut self) -> Result<&'a str, ParseError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = find_special(rest.as_bytes());
        self.at += end.unwrap_or(rest.len());
        match self.peek() {
            None => Err(self.expected("`\"`")),
            Some(byte @ 0..0x20) => Err(self.error(Why::Control(byte))),
            Some(_) => Ok(end.and_then(|end| rest.get(..end)).unwrap_or_default()),
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let start = self.at;
        self.at += 1;
        let meant = match self.peek() {
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'u') => return self.unicode(start),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            _ => return Err(ParseError { at: start, why: Why::Escape }),
        };
        self.at += 1;
        Ok(meant)
    }

    /// `\u` and four digits, twice for a character beyond the first 65,536.
    fn unicode(&mut self, start: usize) -> Result<char, ParseError> {
        let half = ParseError { at: start, why: Why::Surrogate };
        self.at += 1;
        let first = self.four_digits(start)?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).ok_or(half);
        }
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u")) {
            return Err(half);
        }
        self.at += 2;
        let second = self.four_digits(start)?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(half);
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or(half)
    }

    fn four_digits(&mut self, start: usize) -> Result<u32, ParseError> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        number.ok_or(ParseError { at: start, why: Why::Escape })
    }
}

fn name_twice<'m>(members: &'m [Member<'_>]) -> Option<&'m str> {
    if members.len() <= FEW_NAMES {
        let before = members.iter().enumerate();
        let mut twice =
            before.filter(|(at, (name, _))| members.iter().take(*at).any(|(other, _)| other == name));
        return twice.next().map(|(_, (name, _))| name.as_ref());
    }
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    names.windows(2).find_map(|two| if two.first() == two.last() { two.first().copied() } else { None })
}

fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complaint(text: &str) -> String {
        parse(text).map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
    }

    #[test]
    fn numbers_keep_their_text_and_members_their_order() {
        let Ok(Value::Object(members)) = parse("\u{FEFF} {\"b\":1.50,\"a\":12345678901234567890e-7}") else {
            panic!("an object is expected")
        };
        assert_eq!(members[0], ("b".into(), Value::Number("1.50")));
        assert_eq!(members[1], ("a".into(), Value::Number("12345678901234567890e-7")));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let cases = [
            ("", "the text ends at byte 0, where a value is expected"),
            ("{", "the text ends at byte 1, where a name in quotes is expected"),
            ("[1,]", "a value is expected at byte 3"),
            ("[1 2]", "`,` or `]` is expected at byte 3"),
            ("{\"a\" 1}", "`:` is expected at byte 5"),
            ("{\"a\":1;}", "`,` or `}` is expected at byte 6"),
            ("{a:1}", "a name in quotes is expected at byte 1"),
            ("01", "the end is expected at byte 1"),
            ("-x", "what begins at byte 0 is no number"),
            ("nul", "a value is expected at byte 0"),
            ("\"a", "the text ends at byte 2, where `\"` is expected"),
            ("\"a\nb\"", "0x0A at byte 2 must be escaped in a text"),
            (r#""\x""#, "there is no such escape as at byte 1"),
            (r#""\u12""#, "there is no such escape as at byte 1"),
            (r#""\ud800x""#, "the escape at byte 1 is half a character"),
            (r#"{"a":1,"a":2}"#, "the object that ends at byte 13 has the name `a` twice"),
            ("1 2", "the end is expected at byte 2"),
        ];
        for (text, expected) in cases {
            assert_eq!(complaint(text), expected, "{text}");
        }
        let many: String = (0..20).map(|number| format!("\"{number}\":0,")).collect();
        assert!(parse(&format!("{{{many}\"x\":1}}")).is_ok());
        assert!(complaint(&format!("{{{many}\"7\":1}}")).contains("the name `7` twice"));
    }

    #[test]
    fn depth_and_number_of_values_are_limited() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        let error = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "more than 128 levels at byte 128");
        assert!(error.is_limit());
        let many = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(parse(&many(VALUES_MAX)).is_ok());
        assert!(parse(&many(VALUES_MAX + 1)).unwrap_err().is_limit());
    }

    /// What `serde_json` reads, where it does not change it.
    fn same(value: &Value<'_>, other: &serde_json::Value) -> bool {
        match (value, other) {
            (Value::Null, serde_json::Value::Null) => true,
            (Value::Bool(one), serde_json::Value::Bool(two)) => one == two,
            (Value::Number(one), serde_json::Value::Number(two)) => one
                .parse::<f64>()
                .ok()
                .zip(two.as_f64())
                .is_some_and(|(one, two)| (one - two).abs() <= two.abs() * 1e-15),
            (Value::Text(one), serde_json::Value::String(two)) => one == two,
            (Value::Array(one), serde_json::Value::Array(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
            }
            (Value::Object(one), serde_json::Value::Object(two)) => {
                one.len() == two.len()
                    && one
                        .iter()
                        .all(|(name, value)| two.get(name.as_ref()).is_some_and(|other| same(value, other)))
            }
            _ => false,
        }
    }

    fn json_like() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"a\"",
            "\"b\"",
            "\"",
            "\\",
            "\\u00e9",
            "\\ud83d\\ude00",
            "1",
            "0",
            "-",
            ".5",
            "e3",
            "true",
            "null",
            " ",
            "\n",
            "é",
            "\u{1}",
        ]);
        prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat())
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|value| value.to_string()),
            "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,4})?([eE][+-]?[0-9])?",
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(|all| format!("[ {} ]", all.join(" ,"))),
                prop::collection::btree_map("[a-c\"é]{0,3}", inner, 0..5).prop_map(|all| {
                    let name = |name: &String| serde_json::to_string(name).unwrap();
                    let members: Vec<_> =
                        all.iter().map(|(key, value)| format!("{} :{value}", name(key))).collect();
                    format!("{{{}\n}}", members.join(", "))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_takes_what_another_reader_takes(text in json_like()) {
            let other = serde_json::from_str::<serde_json::Value>(&text);
            match parse(&text) {
                // The other takes names that stand twice, and no number that a double cannot hold.
                Ok(value) => match other {
                    Ok(other) => prop_assert!(same(&value, &other), "{}", text),
                    Err(error) => prop_assert!(error.to_string().contains("out of range"), "{} {}", text, error),
                },
                Err(error) if other.is_ok() => prop_assert!(matches!(error.why, Why::Twice(_)), "{} {}", text, error),
                Err(_) => {}
            }
        }

        #[test]
        fn json_is_read_as_another_reader_does(text in json()) {
            let other: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert!(same(&parse(&text).unwrap(), &other));
        }
    }
}
