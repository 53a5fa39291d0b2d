//! Writing JSON on one line. Commas are the caller's.

use portway_search::{Block, find_in_blocks};

use crate::{Output, Value};

impl Value<'_> {
    /// The value on one line, for a text that holds JSON. It is at most three times as long as what it
    /// was read from (`\b` becomes `\u0008`), so there is no limit of its own.
    pub fn to_json(&self) -> String {
        let mut out = Output::in_memory();
        out.push_value(self);
        out.into_text()
    }
}

impl Output {
    /// A string with its quotes.
    pub fn push_text(&mut self, text: &str) {
        self.push_text_bytes(text.as_bytes());
    }

    /// The same of bytes that are UTF-8.
    pub fn push_text_bytes(&mut self, text: &[u8]) {
        if find_special(text).is_none() {
            return self.push_clean_text(text);
        }
        self.push_byte(b'"');
        self.push_text_part(text);
        self.push_byte(b'"');
    }

    /// Part of a string, without quotes. The bytes are UTF-8 together with those before and behind.
    pub fn push_text_part(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some((clean, special)) = find_special(rest).and_then(|at| rest.split_at_checked(at)) {
            self.push(clean);
            let Some((byte, after)) = special.split_first() else { break };
            self.push_escaped(*byte);
            rest = after;
        }
        self.push(rest);
    }

    /// The name of a member with its colon.
    pub fn push_name(&mut self, name: &str) {
        self.push_text(name);
        self.push_byte(b':');
    }

    /// A value of a message.
    pub fn push_value(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.push(b"null"),
            Value::Bool(true) => self.push(b"true"),
            Value::Bool(false) => self.push(b"false"),
            Value::Number(number) => self.push(number.as_bytes()),
            Value::Text(text) => self.push_text(text),
            Value::Array(elements) => {
                self.push_byte(b'[');
                for (number, element) in elements.iter().enumerate() {
                    if number > 0 {
                        self.push_byte(b',');
                    }
                    self.push_value(element);
                }
                self.push_byte(b']');
            }
            Value::Object(members) => {
                self.push_byte(b'{');
                for (number, (name, value)) in members.iter().enumerate() {
                    if number > 0 {
                        self.push_byte(b',');
                    }
                    self.push_name(name);
                    self.push_value(value);
                }
                self.push_byte(b'}');
            }
        }
    }

    /// One byte that JSON writes otherwise.
    fn push_escaped(&mut self, byte: u8) {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => return self.push(format!("\\u{byte:04x}").as_bytes()),
        };
        self.push(&[b'\\', short]);
    }
}

/// Whether a byte of a text cannot stand in a string as it is. Asked once for many texts together, it
/// costs less than once for each.
pub fn needs_escape(text: &[u8]) -> bool {
    find_special(text).is_some()
}

/// Where the first byte stands that cannot stand in a string as it is.
#[inline]
pub(crate) fn find_special(bytes: &[u8]) -> Option<usize> {
    let is_special = |block: Block| block.controls() | block.equal(b'"') | block.equal(b'\\');
    find_in_blocks(bytes, is_special)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse;

    fn written(value: &Value<'_>) -> String {
        let mut output = Output::default();
        output.push_value(value);
        String::from_utf8(output.finish().unwrap().into_bytes().unwrap()).unwrap()
    }

    #[test]
    fn a_document_without_blanks_is_written_as_it_was() {
        let text = r#"{"b":[1.50,-0,1e5,true,false,null,{}],"a":"\n\"\\\u0001é/","c":[]}"#;
        assert_eq!(written(&parse(text).unwrap()), text);
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in any::<String>()) {
            let json = written(&Value::Text(text.as_str().into()));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
