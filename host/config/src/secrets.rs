//! Where the secrets of a project come from: the environment, `secrets.toml`, an encrypted file;
//! and what of it was asked for.
//!
//! The first that has a name wins, in this order, so that a deployment overrides a machine and a
//! machine what everybody shares. How each is read is in `secrets_file` and `encrypted`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::encrypted::{self, EncryptedFile};
use crate::secrets_file::read_secrets;
use crate::{Environment, Name, Problem, Project, Secret};

/// What could be read of the two files, and which names were asked for.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    layers: Vec<Layer>,
    /// The place the project is read for, as on the command line.
    place: Option<String>,
    asked: RefCell<BTreeSet<String>>,
}

/// One file that secrets may stand in.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) shown: String,
    pub(crate) found: Found,
}

/// What became of such a file.
#[derive(Debug)]
pub(crate) enum Found {
    Read(BTreeMap<String, Secret>),
    NoFile,
    /// It is there, and nobody said with which identity it is opened.
    Locked,
    /// It was reported.
    Unusable,
}

/// Where a name stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretStanding {
    pub name: String,
    /// Where its value is from: `environment`, or a file. The first counts; empty: it is not set.
    pub from: Vec<String>,
    /// Something in the project needs it.
    pub is_used: bool,
}

impl Secrets {
    /// Reads both files; the encrypted one is the one of the place.
    pub(crate) fn read(
        dir: &Path,
        environment: &Environment,
        place: Option<&str>,
        problems: &mut Vec<Problem>,
    ) -> Secrets {
        let mut layers =
            vec![Layer { shown: Project::SECRETS.to_owned(), found: read_secrets(dir, problems) }];
        // The name of a place becomes a path; one that is none was reported.
        if place.is_none_or(|place| Name::new(place).is_some()) {
            let file = EncryptedFile::of(dir, place);
            let found = encrypted::read_layer(&file, environment, problems);
            layers.push(Layer { shown: file.shown().to_owned(), found });
        }
        Secrets { layers, place: place.map(str::to_owned), asked: RefCell::default() }
    }

    #[cfg(test)]
    pub(crate) fn of_file(values: impl IntoIterator<Item = (&'static str, &'static str)>) -> Secrets {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), Secret::new(value)));
        let layer = Layer { shown: Project::SECRETS.to_owned(), found: Found::Read(values.collect()) };
        Secrets { layers: vec![layer], ..Secrets::default() }
    }

    /// The value of a name: of the environment, else of the first file that has it.
    pub(crate) fn get<'s>(&'s self, name: &str, environment: &'s Environment) -> Option<&'s str> {
        self.asked.borrow_mut().insert(name.to_owned());
        let of_files = || self.layers.iter().find_map(|layer| layer.get(name));
        environment.secret(name).or_else(of_files)
    }

    /// What to do about a name that is nowhere: where it was looked for, and how it is set.
    pub(crate) fn hint(&self, name: &str) -> String {
        let mut places = vec![format!("the environment variable `{}{name}`", Environment::SECRET_PREFIX)];
        places.extend(self.layers.iter().map(Layer::looked));
        let of_place = self.place.as_ref().map(|place| format!(" --env {place}")).unwrap_or_default();
        format!(
            "it was looked for in {}; set it with `portway secrets set {name}{of_place}`",
            places.join(", ")
        )
    }

    /// Every name that is set or was asked for.
    pub(crate) fn standings(&self, environment: &Environment) -> Vec<SecretStanding> {
        let asked = self.asked.borrow();
        let mut names: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
        names.extend(environment.secret_names());
        names.extend(self.layers.iter().flat_map(Layer::names));
        let standing = |name: &str| {
            let of_environment = environment.secret(name).map(|_| "environment".to_owned());
            let with_it = self.layers.iter().filter(|layer| layer.get(name).is_some());
            let of_files = with_it.map(|layer| layer.shown.clone());
            let from = of_environment.into_iter().chain(of_files).collect();
            SecretStanding { name: name.to_owned(), from, is_used: asked.contains(name) }
        };
        names.into_iter().map(standing).collect()
    }
}

impl Layer {
    fn get(&self, name: &str) -> Option<&str> {
        match &self.found {
            Found::Read(values) => values.get(name).map(Secret::reveal),
            Found::NoFile | Found::Locked | Found::Unusable => None,
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let values = match &self.found {
            Found::Read(values) => Some(values),
            Found::NoFile | Found::Locked | Found::Unusable => None,
        };
        values.into_iter().flat_map(|values| values.keys().map(String::as_str))
    }

    fn looked(&self) -> String {
        let why = match self.found {
            Found::Read(_) => return format!("`{}`", self.shown),
            Found::NoFile => "there is none".to_owned(),
            Found::Locked => format!("not opened: name an identity with `{}`", Environment::IDENTITY),
            Found::Unusable => "not read".to_owned(),
        };
        format!("`{}` ({why})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_says_where_a_value_is_from_and_whether_it_is_needed() {
        let environment = Environment::of_pairs([("PORTWAY_SECRET_A", "1"), ("HOME", "/")]);
        let secrets = Secrets::of_file([("A", "2"), ("B", "3")]);
        assert_eq!(secrets.get("A", &environment), Some("1"));
        assert_eq!(secrets.get("C", &environment), None);
        let standings = secrets.standings(&environment);
        let shown: Vec<_> =
            standings.iter().map(|one| (one.name.as_str(), one.from.join("+"), one.is_used)).collect();
        let both = "environment+secrets.toml".to_owned();
        let file = "secrets.toml".to_owned();
        assert_eq!(shown, [("A", both, true), ("B", file, false), ("C", String::new(), true)]);
    }
}
