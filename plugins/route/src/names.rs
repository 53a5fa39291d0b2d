//! Names of destinations in settings: one, or a list of them.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

/// Names of destinations; none at all is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub names: Vec<String>,
    /// Written as a text of its own, not as a list.
    pub is_single: bool,
}

impl Names {
    /// Whether a name is among them.
    pub fn hold(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str("no destination");
        }
        for (index, name) in self.names.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}`{name}`")?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a destination, or a list of names")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Names, E> {
        Ok(Names { names: vec![name.to_owned()], is_single: true })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = list.next_element()? {
            names.push(name);
        }
        Ok(Names { names, is_single: false })
    }
}
