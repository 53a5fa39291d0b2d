//! A sequence of bytes that is found however the stream is cut.
//!
//! The way of Knuth, Morris and Pratt: how much of the sequence the last bytes are is one number, which
//! is all that must be remembered between two chunks.

/// Bytes of a sequence.
pub const SEQUENCE_BYTES_MAX: usize = 16;

/// A sequence that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: Vec<u8>,
    first: u8,
    /// For each length that matched: the longest shorter one that matches as well.
    shorter: Vec<usize>,
}

impl Pattern {
    /// None: it is empty or too long.
    pub fn new(bytes: &[u8]) -> Option<Pattern> {
        let first = *bytes.first()?;
        if bytes.len() > SEQUENCE_BYTES_MAX {
            return None;
        }
        let longest = |length: usize| {
            let part = bytes.get(..length).unwrap_or(bytes);
            (0..length).rev().find(|shorter| bytes.get(..*shorter).is_some_and(|start| part.ends_with(start)))
        };
        let shorter = (0..=bytes.len()).map(|length| longest(length).unwrap_or(0)).collect();
        Some(Pattern { bytes: bytes.to_vec(), first, shorter })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn first(&self) -> u8 {
        self.first
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How much of it the bytes are that end in this one, where those before were `matched` of it.
    pub(crate) fn step(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(matched) == Some(&byte) {
                return matched + 1;
            }
            if matched == 0 {
                return 0;
            }
            matched = self.shorter.get(matched).copied().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn first_end(pattern: &Pattern, text: &[u8]) -> Option<usize> {
        let mut matched = 0;
        text.iter().position(|byte| {
            matched = pattern.step(matched, *byte);
            matched == pattern.len()
        })
    }

    #[test]
    fn a_sequence_has_a_length() {
        assert_eq!(Pattern::new(b""), None);
        assert!(Pattern::new(&[1; SEQUENCE_BYTES_MAX]).is_some());
        assert_eq!(Pattern::new(&[1; SEQUENCE_BYTES_MAX + 1]), None);
    }

    proptest! {
        #[test]
        fn it_is_found_where_a_plain_search_finds_it(pattern in "[ab]{1,5}", text in "[abc]{0,30}") {
            let found = first_end(&Pattern::new(pattern.as_bytes()).unwrap(), text.as_bytes());
            prop_assert_eq!(found, text.find(&pattern).map(|at| at + pattern.len() - 1));
        }
    }
}
