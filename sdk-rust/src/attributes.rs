//! Attributes: the names and values that travel beside a message.

/// Names and values in their order; a name may repeat.
///
/// Names are lower case. The host drops and counts what a plugin writes under a name
/// that begins with `portway.`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// No attributes.
    pub fn new() -> Self {
        Attributes::default()
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All values of a name.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Adds a value beside those that are there.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// Puts one value in place of all that the name had.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value.into()));
    }

    /// Names and values in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pairs themselves.
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}

impl From<Vec<(String, String)>> for Attributes {
    fn from(pairs: Vec<(String, String)>) -> Self {
        Attributes(pairs)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Attributes(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl<N: Into<String>, V: Into<String>, const COUNT: usize> From<[(N, V); COUNT]> for Attributes {
    fn from(pairs: [(N, V); COUNT]) -> Self {
        pairs.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_replaces_and_push_adds() {
        let mut attributes = Attributes::from([("a", "1"), ("b", "2"), ("a", "3")]);
        assert_eq!(attributes.get_all("a").collect::<Vec<_>>(), ["1", "3"]);
        attributes.set("a", "4");
        attributes.push("b", "5");
        assert_eq!(attributes, Attributes::from([("b", "2"), ("a", "4"), ("b", "5")]));
    }
}
