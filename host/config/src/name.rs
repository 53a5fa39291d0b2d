//! Names of interfaces, destinations, plugins and grants.

use std::fmt;
use std::ops::Deref;

/// Lower-case letters, digits, `-` and `_`, begins with a letter or digit, at most 64.
///
/// Names stand in paths, in metrics and in the API, so that they need no escaping anywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Bytes in a name.
    pub const BYTES_MAX: usize = 64;
    pub(crate) const RULE: &str = "a name has lower-case letters, digits, `-` and `_`, begins with a letter or digit, and is at most 64 long";

    /// The same for schemas.
    pub(crate) const PATTERN: &str = "^[a-z0-9][a-z0-9_-]{0,63}$";

    pub fn new(text: &str) -> Option<Name> {
        let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let begins = text.bytes().next().is_some_and(word);
        let fits = begins && text.len() <= Name::BYTES_MAX;
        let good = fits && text.bytes().all(|byte| word(byte) || byte == b'-' || byte == b'_');
        good.then(|| Name(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_to_their_alphabet() {
        for good in ["a", "lab-results", "to_billing", "3m"] {
            assert!(Name::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "_a", "Lab", "a b", "a.b", "ä", &"x".repeat(65)] {
            assert!(Name::new(bad).is_none(), "{bad}");
        }
    }
}
