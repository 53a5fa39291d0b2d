//! Secret values, and the surroundings a project is read in: the process environment and
//! the project's `secrets.toml`.

use std::collections::BTreeMap;
use std::fmt;

/// A value that is never shown: not by `Debug`, not in a problem, not in the API.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The value itself, for where it is used.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The environment variables of the process, taken once. Values are not shown.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Secrets in the environment have this before their name.
    pub const SECRET_PREFIX: &str = "PORTWAY_SECRET_";

    /// Those of this process; what is not UTF-8 is left out.
    pub fn of_process() -> Self {
        let pairs = std::env::vars_os();
        let texts =
            pairs.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Environment { variables: texts.collect() }
    }

    /// Exactly these.
    pub fn of_pairs<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Environment { variables: pairs.collect() }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// These, and the given ones where it has none of the name.
    pub(crate) fn with_defaults(&self, values: Vec<(String, String)>) -> Self {
        let mut variables: BTreeMap<String, String> = values.into_iter().collect();
        variables.extend(self.variables.clone());
        Environment { variables }
    }

    pub(crate) fn secret(&self, name: &str) -> Option<&str> {
        self.get(&format!("{}{name}", Self::SECRET_PREFIX))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.variables.len())
    }
}

/// What references in project files can name.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) environment: &'a Environment,
    /// From `secrets.toml`.
    pub(crate) secrets: &'a BTreeMap<String, Secret>,
}

impl Names<'_> {
    /// The environment wins, so that a deployment can override the file.
    pub(crate) fn secret(&self, name: &str) -> Option<&str> {
        self.environment.secret(name).or_else(|| self.secrets.get(name).map(Secret::reveal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let environment = Environment::of_pairs([("PORTWAY_SECRET_A", "hunter2")]);
        let shown = format!("{:?} {environment:?}", Secret::new("hunter2"));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(environment.secret("A"), Some("hunter2"));
    }
}
