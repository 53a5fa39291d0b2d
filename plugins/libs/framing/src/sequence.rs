//! Bytes in settings, written as a text with escapes, and bytes for people.

use std::fmt::Write;

use serde::{Deserialize, Deserializer, de::Error};

/// Bytes, written as a text in which `\x06`, `\r`, `\n`, `\t`, `\0` and `\\` are escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence(pub Vec<u8>);

impl AsRef<[u8]> for Sequence {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Sequence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sequence, D::Error> {
        let text = String::deserialize(deserializer)?;
        bytes_of(&text).map(Sequence).map_err(D::Error::custom)
    }
}

fn bytes_of(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, length) = escaped(after).ok_or_else(|| {
            format!("`{text}` has an escape that is none of `\\x06`, `\\r`, `\\n`, `\\t`, `\\0` and `\\\\`")
        })?;
        bytes.push(byte);
        rest = after.get(length..).unwrap_or("");
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// What an escape means, and how long it is behind its backslash.
fn escaped(after: &str) -> Option<(u8, usize)> {
    match after.bytes().next()? {
        b'\\' => Some((b'\\', 1)),
        b'r' => Some((b'\r', 1)),
        b'n' => Some((b'\n', 1)),
        b't' => Some((b'\t', 1)),
        b'0' => Some((0, 1)),
        b'x' => {
            let digits =
                after.get(1..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            u8::from_str_radix(digits, 16).ok().map(|byte| (byte, 3))
        }
        _ => None,
    }
}

/// Bytes for people, in the way they are written in settings; the first of them.
pub fn shown(bytes: &[u8], max: usize) -> String {
    let mut text = String::new();
    for &byte in bytes.iter().take(max) {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => _ = write!(text, "\\x{byte:02X}"),
        }
    }
    if bytes.len() > max {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(bytes_of(r"\x02A\r\n\t\0\\\xfF").unwrap(), b"\x02A\r\n\t\0\\\xFF");
        assert_eq!(bytes_of("ü").unwrap(), "ü".as_bytes());
        for text in [r"\", r"\x", r"\x0", r"\xg0", r"\a", r"a\x1", r"\xü", r"\x+1"] {
            assert!(bytes_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn many_bytes_are_shown_in_part() {
        assert_eq!(shown(b"ab\x06\\\r", 9), "ab\\x06\\\\\\r");
        assert_eq!(shown(b"abc", 2), "ab…");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(bytes_of(&shown(&bytes, 40)).unwrap(), bytes);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = bytes_of(&text);
        }
    }
}
