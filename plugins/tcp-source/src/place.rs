//! Keys: a value at a fixed place of a message, or one that a pattern finds.

use portway_sdk::{Failure, log};
use regex_lite::{Regex, RegexBuilder};

use crate::{PlaceSettings, settings::unfit};

/// The first bytes of a message, in which a key is looked for.
pub const KEY_REACH_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a key, by the contract.
const KEY_BYTES_MAX: usize = 256;
/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// Where a value stands.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Pattern(Regex),
    Fixed { offset: usize, length: usize },
}

/// The start of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub bytes: &'a [u8],
    pub is_whole: bool,
}

impl Place {
    /// `name` is the setting's, for a failure.
    pub(crate) fn new(settings: &PlaceSettings, name: &str) -> Result<Place, Failure> {
        match (&settings.pattern, settings.offset, settings.length) {
            (Some(pattern), None, None) => {
                let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
                let unusable = |error| unfit(name, &format!("`{pattern}` is no usable pattern: {error}"));
                built.map(Place::Pattern).map_err(unusable)
            }
            (None, Some(offset), Some(length)) => {
                let fits = offset < KEY_REACH_BYTES_MAX && (1..=KEY_BYTES_MAX).contains(&length);
                if !fits {
                    let why = format!(
                        "`offset` is below {KEY_REACH_BYTES_MAX}, and `length` is between 1 and {KEY_BYTES_MAX}"
                    );
                    return Err(unfit(name, &why));
                }
                Ok(Place::Fixed { offset, length })
            }
            _ => Err(unfit(name, "write `pattern`, or `offset` and `length`")),
        }
    }

    /// How many of a message's first bytes are looked at.
    pub(crate) fn reach(&self) -> usize {
        match self {
            Place::Pattern(_) => KEY_REACH_BYTES_MAX,
            Place::Fixed { offset, length } => offset + length,
        }
    }

    /// The value, without blanks around it; none where it is empty. With a pattern that may match
    /// further behind, a notice is due.
    pub(crate) fn find(&self, head: Head<'_>, said: &mut Said) -> Option<String> {
        let found = match self {
            Place::Fixed { offset, length } => {
                let rest = head.bytes.get(*offset..)?;
                text_of(rest.get(..*length).unwrap_or(rest))
            }
            Place::Pattern(pattern) => {
                let text = text_of(whole_characters(head));
                let captures = pattern.captures(&text);
                let value = captures.and_then(|captures| captures.get(1).or_else(|| captures.get(0)));
                match value {
                    Some(value) => value.as_str().to_owned(),
                    None => {
                        if !head.is_whole {
                            said.out_of_reach(pattern.as_str());
                        }
                        return None;
                    }
                }
            }
        };
        let value = found.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
        (!value.is_empty()).then(|| shortened(value))
    }
}

/// What was said on this connection already; each of these once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    junk: bool,
    reach: bool,
}

impl Said {
    pub(crate) fn junk(&mut self, at: u64) {
        if !std::mem::replace(&mut self.junk, true) {
            log::notice(
                "bytes-before-start",
                format!("bytes at byte {at} without a start before them were passed over"),
            );
        }
    }

    fn out_of_reach(&mut self, pattern: &str) {
        if !std::mem::replace(&mut self.reach, true) {
            log::notice(
                "key-out-of-reach",
                format!(
                    "`{pattern}` was not found in the first {KEY_REACH_BYTES_MAX} bytes of a message; it has no key"
                ),
            );
        }
    }
}

/// The head without a character that is cut off.
fn whole_characters(head: Head<'_>) -> &[u8] {
    match std::str::from_utf8(head.bytes) {
        Err(error) if !head.is_whole && error.error_len().is_none() => {
            head.bytes.get(..error.valid_up_to()).unwrap_or(head.bytes)
        }
        _ => head.bytes,
    }
}

/// UTF-8, and what is none with one character a byte.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// As long as a key may be; a digest of the whole still tells keys apart.
fn shortened(text: &str) -> String {
    if text.len() <= KEY_BYTES_MAX {
        return text.to_owned();
    }
    let digest = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    let end = text.floor_char_boundary(KEY_BYTES_MAX - 33);
    format!("{}#{digest:032x}", text.get(..end).unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(json: &str) -> Result<Place, String> {
        let settings = portway_sdk::parse_settings(json).map_err(|failure| failure.text)?;
        Place::new(&settings, "key").map_err(|failure| failure.text)
    }

    fn find(json: &str, bytes: &[u8], is_whole: bool) -> Option<String> {
        place(json).unwrap().find(Head { bytes, is_whole }, &mut Said::default())
    }

    #[test]
    fn a_value_is_found_by_pattern_or_place() {
        assert_eq!(find(r#"{"pattern":"ID=(\\d+)"}"#, b"x ID=42;", true).as_deref(), Some("42"));
        assert_eq!(find(r#"{"pattern":"[A-Z]\\d"}"#, b"x A7", true).as_deref(), Some("A7"));
        assert_eq!(find(r#"{"pattern":"(a)|b"}"#, b"b", true).as_deref(), Some("b"));
        assert_eq!(find(r#"{"pattern":"ID=(\\d*)"}"#, b"ID=", true), None);
        let fixed = r#"{"offset":2,"length":5}"#;
        assert_eq!(find(fixed, b"xx  42 yy", true).as_deref(), Some("42"));
        assert_eq!(find(fixed, b"xxM\xFCl", true).as_deref(), Some("Mül"));
        assert_eq!(find(fixed, b"xx", true), None);
        assert_eq!(find(fixed, b"xx\0\0\0  ", true), None);
    }

    #[test]
    fn a_character_that_is_cut_off_spoils_no_text() {
        let cut = "ä=ü".as_bytes();
        assert_eq!(find(r#"{"pattern":"^(.)="}"#, &cut[..4], false).as_deref(), Some("ä"));
    }

    #[test]
    fn a_long_value_is_cut_but_still_tells_apart() {
        let key = |last: &str| {
            find(r#"{"pattern":".*"}"#, format!("{}{last}", "ü".repeat(300)).as_bytes(), true).unwrap()
        };
        assert!(key("a").len() <= KEY_BYTES_MAX);
        assert_ne!(key("a"), key("b"));
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        for (json, expected) in [
            ("{}", "write `pattern`, or"),
            (r#"{"offset":1}"#, "write `pattern`, or"),
            (r#"{"pattern":"a","offset":1,"length":1}"#, "write `pattern`, or"),
            (r#"{"pattern":"("}"#, "no usable pattern"),
            (r#"{"offset":65536,"length":1}"#, "`offset` is below"),
            (r#"{"offset":0,"length":257}"#, "between 1 and 256"),
        ] {
            assert!(place(json).unwrap_err().contains(expected), "{json}");
        }
    }
}
