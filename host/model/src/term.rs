//! Terms: what messages are found by, as numbers.
//!
//! A term stands for a name with a value. Different ones may share a number, so whoever finds
//! something by a term looks whether it is meant.

use crate::{Attributes, Key};

/// A name and a value, as a number that is the same for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The name under which the key is found.
    pub const KEY: &str = "key";

    /// Of a name with a value.
    pub fn of(name: &str, value: &str) -> Term {
        let bytes = name.bytes().chain([0]).chain(value.bytes());
        Term(bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    /// Of a message, under these names: its key, and attributes; each once.
    pub fn of_message(names: &[String], key: Option<&Key>, attributes: &Attributes) -> Vec<Term> {
        let mut terms = Vec::new();
        for name in names {
            if name == Term::KEY {
                terms.extend(key.map(|key| Term::of(Term::KEY, key.as_str())));
            } else {
                let values = attributes.pairs().iter().filter(|(own, _)| own == name);
                terms.extend(values.map(|(name, value)| Term::of(name, value)));
            }
        }
        terms.sort_unstable();
        terms.dedup();
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_term_for_each_value_it_is_found_by() {
        let pairs = [("a", "1"), ("b", "2"), ("a", "3"), ("a", "1")];
        let attributes = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let attributes = Attributes::new(attributes).unwrap();
        let names = ["key", "a", "c"].map(str::to_owned);
        let mut expected = vec![Term::of("key", "K"), Term::of("a", "1"), Term::of("a", "3")];
        expected.sort_unstable();
        assert_eq!(Term::of_message(&names, Key::new("K").as_ref(), &attributes), expected);
        assert_eq!(Term::of_message(&[], Key::new("K").as_ref(), &attributes), []);
        assert_ne!(Term::of("ab", "c"), Term::of("a", "bc"));
        // It is stored: it must be the same for ever.
        assert_eq!(Term::of("key", "4711").0, 0xed21_c9c6_71a9_5ef7);
    }
}
