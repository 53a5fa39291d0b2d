//! Secret values, and the environment of the process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::secrets::Secrets;

/// A value that is never shown: not by `Debug`, not in a problem, not in the API. Its memory is
/// overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Bytes of a name.
    pub const NAME_BYTES_MAX: usize = 128;

    pub fn new(text: impl Into<String>) -> Self {
        Secret(Zeroizing::new(text.into()))
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
    variables: BTreeMap<String, Secret>,
}

impl Environment {
    /// Secrets in the environment have this before their name.
    pub const SECRET_PREFIX: &str = "PORTWAY_SECRET_";
    /// Names the file with the identities that open encrypted secrets.
    pub const IDENTITY: &str = "PORTWAY_IDENTITY";

    /// Those of this process; what is not UTF-8 is left out.
    pub fn of_process() -> Self {
        let pairs = std::env::vars_os();
        let texts = pairs.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, Secret::new(value.into_string().ok()?)))
        });
        Environment { variables: texts.collect() }
    }

    /// Exactly these.
    pub fn of_pairs<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), Secret::new(value)));
        Environment { variables: pairs.collect() }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(Secret::reveal)
    }

    /// These, with the file of identities that a command line names.
    #[must_use]
    pub fn with_identity(mut self, path: &Path) -> Self {
        let path = path.to_string_lossy().into_owned();
        self.variables.insert(Self::IDENTITY.to_owned(), Secret::new(path));
        self
    }

    /// These, and the given ones where it has none of the name.
    pub(crate) fn with_defaults(&self, values: Vec<(String, String)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name, Secret::new(value)));
        let mut variables: BTreeMap<String, Secret> = values.collect();
        variables.extend(self.variables.clone());
        Environment { variables }
    }

    pub(crate) fn secret(&self, name: &str) -> Option<&str> {
        self.get(&format!("{}{name}", Self::SECRET_PREFIX))
    }

    /// Names of the secrets that are set here.
    pub(crate) fn secret_names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().filter_map(|name| name.strip_prefix(Self::SECRET_PREFIX))
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
    pub(crate) secrets: &'a Secrets,
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
