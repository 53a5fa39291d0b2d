//! What only plugins' manifests can tell: asked of the caller, who knows them.

use portway_model::code;

use crate::problem::suggest;
use crate::{At, InterfaceSettings, Name, Place, PluginUse, Problem, Project, SourceSettings};

/// What a plugin is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Source,
    Transform,
    Sender,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Transform => "transform",
            Role::Sender => "sender",
        }
    }
}

/// The plugins a project can use.
pub trait Catalog {
    /// Names that can stand in this role, those by path included.
    fn names(&self, role: Role) -> Vec<String>;

    /// Whether a plugin of this name comes with Portway.
    fn is_first_party(&self, name: &str) -> bool;

    /// What is wrong with a source: its settings and grants, and where it listens.
    fn check_source(&self, source: &SourceSettings) -> Vec<Problem>;

    /// Whether what stands as a source answers requests itself, so that nothing is stored.
    fn responds(&self, _source: &SourceSettings) -> bool {
        false
    }

    /// What is wrong with settings and grants of a transform or sender.
    fn check_use(&self, role: Role, plugin_use: &PluginUse) -> Vec<Problem>;
}

/// Everything that a catalog finds wrong with a project.
pub(crate) fn check(project: &Project, catalog: &dyn Catalog) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, plugin) in &project.plugins {
        if catalog.is_first_party(name) && !plugin.replaces {
            let text = format!("a plugin `{name}` comes with Portway");
            let hint = "choose another name, or write `replaces = true` to take its place";
            problems.push(Problem::new(plugin.path.place.clone(), code::PLUGIN_NAME_TAKEN, text).hint(hint));
        }
    }
    for interface in &project.interfaces {
        check_interface(interface, catalog, &mut problems);
    }
    problems.extend(unreached(project, catalog));
    problems
}

/// Destinations of interfaces that store nothing, and routes into them.
fn unreached(project: &Project, catalog: &dyn Catalog) -> Vec<Problem> {
    let responds = |interface: &&InterfaceSettings| {
        interface.source.as_ref().is_some_and(|source| catalog.responds(source))
    };
    let mut problems = Vec::new();
    for interface in project.interfaces.iter().filter(responds) {
        let why = "its source answers requests itself and stores no message";
        for destination in &interface.destinations {
            let text = format!("destination `{}` gets nothing: {why}", destination.name.value);
            let hint = "remove it, or give it to an interface that stores messages";
            let place = destination.name.place.clone();
            problems.push(Problem::new(place, code::OPTION_UNUSED, text).hint(hint));
        }
        let all = project.interfaces.iter().flat_map(|one| &one.destinations);
        let routes = all.filter_map(|destination| destination.route.as_ref());
        for route in routes.filter(|route| route.value == interface.name) {
            let text = format!("a route leads to interface `{}`: {why}", interface.name);
            let hint = "let it lead to an interface without such a source";
            problems.push(Problem::new(route.place.clone(), code::OPTION_UNUSED, text).hint(hint));
        }
    }
    problems
}

fn check_interface(interface: &InterfaceSettings, catalog: &dyn Catalog, problems: &mut Vec<Problem>) {
    if let Some(source) = &interface.source {
        match unknown(&source.plugin, Role::Source, catalog) {
            Some(problem) => problems.push(problem),
            None => problems.extend(catalog.check_source(source)),
        }
    }
    for destination in &interface.destinations {
        let transforms = destination.transform.iter().map(|transform| (Role::Transform, transform));
        let senders = destination.sender.iter().map(|sender| (Role::Sender, sender));
        for (role, plugin_use) in transforms.chain(senders) {
            match unknown(&plugin_use.plugin, role, catalog) {
                Some(problem) => problems.push(problem),
                None => problems.extend(catalog.check_use(role, plugin_use)),
            }
        }
    }
}

fn unknown(plugin: &At<Name>, role: Role, catalog: &dyn Catalog) -> Option<Problem> {
    let names = catalog.names(role);
    if names.iter().any(|name| name == plugin.value.as_str()) {
        return None;
    }
    let text = format!("there is no {} `{}`", role.as_str(), plugin.value);
    let hint = suggest(&plugin.value, names.iter().map(String::as_str));
    let own = "a plugin of your own is named under `plugins` in `portway.toml`";
    let place = Place::clone(&plugin.place);
    Some(Problem::new(place, code::PLUGIN_UNKNOWN, text).hint(format!("{hint}; {own}")))
}
