//! What is to run of a project that may have problems: interfaces without one as they are written,
//! others as they run.

use std::collections::{BTreeMap, BTreeSet};

use portway_config::{Draft, InterfaceSettings, Problems, Project};
use portway_model::code;

/// Problems that interfaces have with each other.
const TOGETHER: [&str; 6] = [
    code::INTERFACE_UNFED,
    code::LISTENERS_DIFFER,
    code::PATH_TWICE,
    code::PORT_TWICE,
    code::ROUTE_LOOP,
    code::UNKNOWN_ROUTE,
];

/// A project that can run.
#[derive(Debug)]
pub(super) struct Composed {
    pub project: Project,
    /// Interfaces that go on as they are, whatever their files say.
    pub kept: BTreeSet<String>,
}

/// Interfaces that go on as they are until their files say something else than this; none: until
/// there is a file again.
pub(super) type HeldBack = BTreeMap<String, Option<InterfaceSettings>>;

/// Nothing can be run otherwise than it is: a problem concerns more than single interfaces.
#[derive(Debug)]
pub(super) struct Whole(pub Problems);

/// `running`: what runs now.
pub(super) fn compose(draft: &Draft, running: Option<&Project>, held: &HeldBack) -> Result<Composed, Whole> {
    let problems = draft.problems();
    let mut bad = BTreeSet::new();
    // What is wrong between interfaces is judged below: what is to run may be another mixture.
    for problem in problems.iter().filter(|problem| !TOGETHER.contains(&problem.code)) {
        match interface_of(&problem.place.file) {
            Some(name) => bad.insert(name.to_owned()),
            None => return Err(Whole(problems)),
        };
    }
    let Some(written) = draft.project() else { return Err(Whole(problems)) };
    loop {
        let composed = mix(written, running, &bad, held);
        let together = composed.project.check_together();
        if together.is_empty() {
            return Ok(composed);
        }
        let more: BTreeSet<String> = together
            .iter()
            .filter_map(|problem| interface_of(&problem.place.file))
            .map(str::to_owned)
            .collect();
        if more.is_subset(&bad) {
            return Err(Whole(together));
        }
        bad.extend(more);
    }
}

/// Interfaces that are neither bad nor held back as they are written, others as they run.
fn mix(written: &Project, running: Option<&Project>, bad: &BTreeSet<String>, held: &HeldBack) -> Composed {
    let is_held =
        |name: &str, now: Option<&InterfaceSettings>| held.get(name).is_some_and(|held| held.as_ref() == now);
    let mut interfaces = BTreeMap::new();
    let mut kept = BTreeSet::new();
    for interface in &written.interfaces {
        let name = interface.name.as_str();
        if !bad.contains(name) && !is_held(name, Some(interface)) {
            interfaces.insert(name.to_owned(), interface.clone());
        }
    }
    for interface in running.iter().flat_map(|running| &running.interfaces) {
        let name = interface.name.as_str();
        let is_gone = written.interface(name).is_none() && !bad.contains(name);
        if !interfaces.contains_key(name) && (!is_gone || is_held(name, None)) {
            kept.insert(name.to_owned());
            interfaces.insert(name.to_owned(), interface.clone());
        }
    }
    let mut project = Project { interfaces: interfaces.into_values().collect(), ..written.clone() };
    if let Some(running) = running {
        // These are taken when the engine starts.
        project.store = running.store.clone();
        project.admin = running.admin.clone();
        project.limits = running.limits.clone();
    }
    Composed { project, kept }
}

/// The interface whose file this is.
pub(super) fn interface_of(file: &str) -> Option<&str> {
    file.strip_prefix(Project::INTERFACES)?.strip_prefix('/')?.strip_suffix(".toml")
}

/// What of `portway.toml` is different and is taken at the next start only.
pub(super) fn later(written: &Project, running: &Project) -> Vec<&'static str> {
    let mut later = Vec::new();
    later.extend((written.store != running.store).then_some("[store]"));
    later.extend((written.admin != running.admin).then_some("[admin]"));
    later.extend((written.limits != running.limits).then_some("[limits]"));
    later
}

#[cfg(test)]
mod tests {
    use portway_config::Environment;

    use super::*;

    fn read(files: &[(&str, &str)]) -> Draft {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("interfaces")).unwrap();
        std::fs::write(dir.path().join("portway.toml"), "").unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        portway_config::read(dir.path(), &Environment::default())
    }

    fn fed(more: &str) -> String {
        format!("{more}[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:0\"\n")
    }

    fn to(route: &str) -> String {
        format!("[[destination]]\nname = \"to\"\nroute = \"{route}\"\n")
    }

    fn running() -> Project {
        let files = [("interfaces/a.toml", fed("") + &to("b")), ("interfaces/b.toml", String::new())];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        read(&files).finish().unwrap()
    }

    fn shown(composed: &Composed) -> (Vec<&str>, Vec<&str>) {
        let names = composed.project.interfaces.iter().map(|one| one.name.as_str()).collect();
        (names, composed.kept.iter().map(String::as_str).collect())
    }

    #[test]
    fn a_file_with_a_problem_goes_on_as_it_was_and_others_change() {
        let running = running();
        let other = fed("dedupe_window = \"1h\"\n");
        let draft = read(&[
            ("interfaces/a.toml", "nonsense"),
            ("interfaces/b.toml", ""),
            ("interfaces/c.toml", &other),
            ("interfaces/d.toml", "nonsense"),
        ]);
        let composed = compose(&draft, Some(&running), &HeldBack::new()).unwrap();
        assert_eq!(shown(&composed), (vec!["a", "b", "c"], vec!["a"]));
        assert_eq!(composed.project.interface("a"), running.interface("a"));
    }

    #[test]
    fn what_others_need_is_not_taken_away() {
        // The file of `a` cannot be read, so it goes on; it leads to `b`, whose file is gone.
        let draft = read(&[("interfaces/a.toml", "nonsense")]);
        let Whole(problems) = compose(&draft, Some(&running()), &HeldBack::new()).unwrap_err();
        assert!(problems.to_string().contains("no interface `b`"), "{problems}");
    }

    #[test]
    fn a_route_that_leads_nowhere_keeps_its_own_interface_back_only() {
        let (a, c) = (fed("") + &to("nowhere"), fed("dedupe_window = \"1h\"\n"));
        let draft = read(&[("interfaces/a.toml", &a), ("interfaces/b.toml", ""), ("interfaces/c.toml", &c)]);
        let composed = compose(&draft, Some(&running()), &HeldBack::new()).unwrap();
        assert_eq!(shown(&composed), (vec!["a", "b", "c"], vec!["a", "b"]));
    }

    #[test]
    fn a_problem_of_the_project_file_changes_nothing() {
        let draft = read(&[("portway.toml", "nonsense")]);
        assert!(compose(&draft, Some(&running()), &HeldBack::new()).is_err());
        assert!(compose(&draft, None, &HeldBack::new()).is_err());
    }

    #[test]
    fn what_is_held_back_goes_on_until_its_file_says_something_else() {
        let running = running();
        let held = HeldBack::from([("a".to_owned(), None), ("b".to_owned(), None)]);
        let gone = read(&[]);
        let composed = compose(&gone, Some(&running), &held).unwrap();
        assert_eq!(shown(&composed), (vec!["a", "b"], vec!["a", "b"]));
        let back = fed("dedupe_window = \"1h\"\n") + &to("b");
        let back = read(&[("interfaces/a.toml", &back)]);
        let composed = compose(&back, Some(&running), &held).unwrap();
        assert_eq!(shown(&composed).1, ["b"]);
    }
}
