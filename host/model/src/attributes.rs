//! Names and values that travel with a message.
//!
//! Limits are those of the WIT type `attributes`; what is beyond them is refused
//! where attributes enter the host.

use serde::{Deserialize, Serialize};

/// Pairs a message may carry.
pub const PAIRS_MAX: usize = 64;
/// Bytes in a name.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes in a value.
pub const VALUE_BYTES_MAX: usize = 4096;
/// Names with this prefix are written by the host alone.
pub const HOST_PREFIX: &str = "portway.";

/// Name and value pairs in their order; a name may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attributes(Vec<(String, String)>);

/// Why attributes were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributesError {
    /// More than [`PAIRS_MAX`].
    #[error("{0} attributes, at most {PAIRS_MAX} are allowed")]
    TooMany(usize),
    /// Empty, too long, or not lower case.
    #[error("attribute name `{0}` is not 1 to {NAME_BYTES_MAX} bytes of lower-case ASCII")]
    Name(String),
    /// Longer than [`VALUE_BYTES_MAX`].
    #[error("value of attribute `{0}` is longer than {VALUE_BYTES_MAX} bytes")]
    Value(String),
    /// The stored bytes are damaged.
    #[error("stored attributes cannot be read")]
    Stored,
}

impl Attributes {
    /// Takes pairs that are within the limits.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, AttributesError> {
        if pairs.len() > PAIRS_MAX {
            return Err(AttributesError::TooMany(pairs.len()));
        }
        for (name, value) in &pairs {
            let lower = name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
            if name.is_empty() || name.len() > NAME_BYTES_MAX || !lower {
                return Err(AttributesError::Name(name.chars().take(NAME_BYTES_MAX).collect()));
            }
            if value.len() > VALUE_BYTES_MAX {
                return Err(AttributesError::Value(name.clone()));
            }
        }
        Ok(Attributes(pairs))
    }

    /// The pairs in order.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first value under `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Puts what a transform gave over these: a name given there replaces all its values.
    /// Fails if the result is beyond the limits.
    pub fn overlay(&self, given: &Attributes) -> Result<Attributes, AttributesError> {
        let kept = self.0.iter().filter(|(name, _)| given.get(name).is_none());
        Attributes::new(kept.chain(&given.0).cloned().collect())
    }

    /// As stored: for each text a length (u16, little endian) and its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.iter().map(|(n, v)| n.len() + v.len() + 4).sum());
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            // `new` keeps every text below 64 KiB.
            bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Reads what [`Attributes::to_bytes`] wrote.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, AttributesError> {
        let mut texts = Vec::new();
        while !bytes.is_empty() {
            texts.push(take_text(&mut bytes).ok_or(AttributesError::Stored)?);
        }
        if texts.len() % 2 != 0 {
            return Err(AttributesError::Stored);
        }
        let mut texts = texts.into_iter();
        let mut pairs = Vec::new();
        while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
            pairs.push((name, value));
        }
        Ok(Attributes(pairs))
    }
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(pairs: &[(&str, &str)]) -> Attributes {
        Attributes::new(pairs.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect()).unwrap()
    }

    #[test]
    fn stored_attributes_read_back_equal() {
        for case in [attributes(&[]), attributes(&[("a", ""), ("a", "é"), ("type", "ORU^R01")])] {
            assert_eq!(Attributes::from_bytes(&case.to_bytes()).unwrap(), case);
        }
    }

    #[test]
    fn damaged_stored_attributes_are_an_error_not_a_panic() {
        let bytes = attributes(&[("name", "value")]).to_bytes();
        for end in 1..bytes.len() {
            assert!(Attributes::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_given_name_replaces_all_its_values() {
        let under = attributes(&[("a", "1"), ("b", "2"), ("a", "3")]);
        let over = attributes(&[("a", "4")]);
        assert_eq!(under.overlay(&over).unwrap(), attributes(&[("b", "2"), ("a", "4")]));
    }

    #[test]
    fn names_and_values_beyond_the_limits_are_refused() {
        assert!(Attributes::new(vec![("Upper".into(), String::new())]).is_err());
        assert!(Attributes::new(vec![("a".into(), "x".repeat(VALUE_BYTES_MAX + 1))]).is_err());
        assert!(Attributes::new(vec![("a".into(), String::new()); PAIRS_MAX + 1]).is_err());
    }
}
