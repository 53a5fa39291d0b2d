//! What is different between two projects: which interfaces come, change and go, and what of them.
//!
//! Where something stands in its file makes no difference, and neither does how it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use portway_config::{DestinationSettings, InterfaceSettings, PluginUse, Project, Role};

/// Interfaces that are different, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference(pub BTreeMap<String, Change>);

/// What is different of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    /// Its source is another one, or begins anew.
    pub source: bool,
    /// Destinations that are new.
    pub added: BTreeSet<String>,
    /// Destinations that begin anew.
    pub changed: BTreeSet<String>,
    /// Destinations that are gone.
    pub removed: BTreeSet<String>,
}

/// What became of an interface as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Added,
    Changed,
    Removed,
}

impl Difference {
    /// `is_other_plugin` tells of a plugin that an interface uses whether it is another one than before.
    pub fn between(
        old: &Project,
        new: &Project,
        is_other_plugin: impl Fn(&str, Role, &str) -> bool,
    ) -> Difference {
        let mut changes = BTreeMap::new();
        for interface in &new.interfaces {
            let name = interface.name.as_str();
            let is_other = |role, plugin: &str| is_other_plugin(name, role, plugin);
            let change = match old.interface(name) {
                None => Some(Change::whole(What::Added, interface)),
                Some(before) => Change::of(before, interface, is_other),
            };
            changes.extend(change.map(|change| (name.to_owned(), change)));
        }
        for interface in &old.interfaces {
            let name = interface.name.as_str();
            if new.interface(name).is_none() {
                changes.insert(name.to_owned(), Change::whole(What::Removed, interface));
            }
        }
        Difference(changes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A destination that is new or begins anew.
    pub fn begins(&self, interface: &str, destination: &str) -> bool {
        let change = self.0.get(interface);
        change
            .is_some_and(|change| change.added.contains(destination) || change.changed.contains(destination))
    }

    pub fn names(&self, what: What) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(_, change)| change.what == what).map(|(name, _)| name.as_str())
    }

    /// Interfaces whose source is another one or begins anew.
    pub fn sources(&self) -> BTreeSet<String> {
        self.0.iter().filter(|(_, change)| change.source).map(|(name, _)| name.clone()).collect()
    }

    /// Destinations that are gone, with their interfaces.
    pub fn gone(&self) -> Vec<(String, String)> {
        let of = |(name, change): (&String, &Change)| {
            change.removed.iter().map(|destination| (name.clone(), destination.clone())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}

impl Change {
    fn whole(what: What, interface: &InterfaceSettings) -> Change {
        let all = names(interface);
        let (added, removed) = match what {
            What::Added | What::Changed => (all, BTreeSet::new()),
            What::Removed => (BTreeSet::new(), all),
        };
        let source = interface.source.is_some();
        Change { what, source, added, changed: BTreeSet::new(), removed }
    }

    /// None: nothing is different.
    fn of(
        old: &InterfaceSettings,
        new: &InterfaceSettings,
        is_other: impl Fn(Role, &str) -> bool,
    ) -> Option<Change> {
        let uses_other = |role, plugin: &PluginUse| is_other(role, plugin.plugin.value.as_str());
        let source_uses_other =
            new.source.as_ref().is_some_and(|source| is_other(Role::Source, source.plugin.value.as_str()));
        let begins_anew = |before: &DestinationSettings, now: &DestinationSettings| {
            before != now
                || now.transform.iter().any(|transform| uses_other(Role::Transform, transform))
                || now.sender.iter().any(|sender| uses_other(Role::Sender, sender))
        };
        let before: BTreeMap<&str, &DestinationSettings> =
            old.destinations.iter().map(|one| (one.name.value.as_str(), one)).collect();
        let (mut added, mut changed) = (BTreeSet::new(), BTreeSet::new());
        for destination in &new.destinations {
            let name = destination.name.value.as_str();
            match before.get(name) {
                None => drop(added.insert(name.to_owned())),
                Some(before) if begins_anew(before, destination) => drop(changed.insert(name.to_owned())),
                Some(_) => {}
            }
        }
        let source = old.source != new.source || source_uses_other;
        let removed = names(old).difference(&names(new)).cloned().collect();
        let change = Change { what: What::Changed, source, added, changed, removed };
        let is_other_itself = InterfaceSettings { source: None, destinations: Vec::new(), ..old.clone() }
            != InterfaceSettings { source: None, destinations: Vec::new(), ..new.clone() };
        (is_other_itself || change.is_something()).then_some(change)
    }

    fn is_something(&self) -> bool {
        self.source || !self.added.is_empty() || !self.changed.is_empty() || !self.removed.is_empty()
    }
}

fn names(interface: &InterfaceSettings) -> BTreeSet<String> {
    interface.destinations.iter().map(|one| one.name.value.as_str().to_owned()).collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.what {
            What::Added => return f.write_str("added"),
            What::Removed => return f.write_str("removed"),
            What::Changed => "changed",
        };
        let mut parts = Vec::new();
        parts.extend(self.source.then(|| "its source".to_owned()));
        let of = |word: &str, names: &BTreeSet<String>| {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            (!all.is_empty()).then(|| format!("{word} {}", all.join(", ")))
        };
        parts.extend(of("added", &self.added));
        parts.extend(of("changed", &self.changed));
        parts.extend(of("removed", &self.removed));
        if parts.is_empty() { f.write_str(word) } else { write!(f, "{word}: {}", parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use portway_config::Environment;

    use super::*;

    const SOURCE: &str = "[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:0\"\n";

    fn to(name: &str, file: &str) -> String {
        format!(
            "[[destination]]\nname = \"{name}\"\n[destination.sender]\nplugin = \"file\"\n\
             settings = {{ file = \"{file}\" }}\n"
        )
    }

    fn project(interfaces: &[(&str, String)]) -> Project {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("interfaces")).unwrap();
        std::fs::write(dir.path().join("portway.toml"), "").unwrap();
        for (name, text) in interfaces {
            std::fs::write(dir.path().join(format!("interfaces/{name}.toml")), text).unwrap();
        }
        portway_config::load(dir.path(), &Environment::default()).unwrap()
    }

    fn check(old: &[(&str, String)], new: &[(&str, String)], wanted: &[(&str, &str)]) {
        let found = Difference::between(&project(old), &project(new), |_, _, _| false);
        let found: Vec<_> =
            found.0.iter().map(|(name, change)| (name.as_str(), change.to_string())).collect();
        let found: Vec<_> = found.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn only_what_runs_otherwise_is_different() {
        let lab = SOURCE.to_owned() + &to("a", "1") + &to("b", "1");
        let moved =
            format!("# a comment\n\n{}{}{}", SOURCE.replace("\n", "\n\n"), to("b", "1"), to("a", "1"));
        check(&[("lab", lab.clone())], &[("lab", moved)], &[]);
        let other = SOURCE.to_owned() + &to("a", "1") + &to("b", "2") + &to("c", "1");
        check(&[("lab", lab.clone())], &[("lab", other)], &[("lab", "changed: added c; changed b")]);
        let other = SOURCE.replace("mllp", "tcp") + &to("b", "1");
        check(&[("lab", lab.clone())], &[("lab", other)], &[("lab", "changed: its source; removed a")]);
        let other = "dedupe_window = \"1h\"\n".to_owned() + &lab;
        check(&[("lab", lab.clone())], &[("lab", other)], &[("lab", "changed")]);
        check(&[("a", lab.clone())], &[("b", lab)], &[("a", "removed"), ("b", "added")]);
    }

    #[test]
    fn another_plugin_of_the_same_name_begins_what_uses_it_anew() {
        let project = project(&[("lab", SOURCE.to_owned() + &to("a", "1"))]);
        let of = |role| Difference::between(&project, &project, |_, other, _| other == role);
        assert_eq!(of(Role::Source).0["lab"].to_string(), "changed: its source");
        assert_eq!(of(Role::Sender).0["lab"].to_string(), "changed: changed a");
        assert!(of(Role::Transform).is_empty());
    }
}
