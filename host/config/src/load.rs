//! From a project folder to settings, and what whole files and projects have to hold to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portway_model::{Guarantee, OnQuarantine, Quarantined, code};

use crate::environments::read_environment;
use crate::files::{check_files, read_text};
use crate::interface::InterfaceFile;
use crate::project::ProjectFile;
use crate::reader::{Reader, shorten};
use crate::routes::Known;
use crate::secret::Names;
use crate::secrets::{SecretStanding, Secrets};
use crate::secrets_file::parse_secrets;
use crate::{
    At, Catalog, DestinationSettings, Environment, GrantSettings, InterfaceSettings, Name, Place,
    PluginByPath, Problem, Problems, Project, TraceSettings, Weight, catalog, ports, routes, tcp_grant,
};

/// Interfaces in a project.
const INTERFACES_MAX: usize = 10_000;

/// What could be read of a project, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Draft {
    project: Option<Project>,
    problems: Vec<Problem>,
    secrets: Vec<SecretStanding>,
}

impl Draft {
    /// What could be read: values that are wrong are replaced by their defaults, and what
    /// needs them is left out. None: not even that.
    pub fn project(&self) -> Option<&Project> {
        self.project.as_ref()
    }

    /// Adds what the plugins' manifests say of their uses.
    pub fn check_plugins(&mut self, catalog: &dyn Catalog) {
        if let Some(project) = &self.project {
            self.problems.extend(catalog::check(project, catalog));
        }
    }

    /// The secrets that are set or needed, by name.
    pub fn secrets(&self) -> &[SecretStanding] {
        &self.secrets
    }

    /// Adds a problem that only the caller can see.
    pub fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// All that is wrong so far.
    pub fn problems(&self) -> Problems {
        self.of_weight(Weight::Problem)
    }

    /// What a person should know, and with which the project runs.
    pub fn warnings(&self) -> Problems {
        self.of_weight(Weight::Warning)
    }

    fn of_weight(&self, weight: Weight) -> Problems {
        Problems::new(self.problems.iter().filter(|problem| problem.weight == weight).cloned().collect())
    }

    /// The project, if nothing is wrong with it.
    pub fn finish(self) -> Result<Project, Problems> {
        let problems = self.problems();
        match self.project {
            Some(project) if problems.is_empty() => Ok(project),
            _ => Err(problems),
        }
    }
}

/// A project that has no problems, but for those that only plugins' manifests can tell.
pub fn load(dir: &Path, environment: &Environment) -> Result<Project, Problems> {
    read(dir, environment).finish()
}

/// The same with the values of `environments/NAME.toml`, where one is named.
pub fn read_in(dir: &Path, environment: &Environment, name: Option<&str>) -> Draft {
    let Some(name) = name else {
        return read(dir, environment);
    };
    let (environment, problems) = read_environment(dir, environment, name);
    let mut draft = read_at(dir, &environment, Some(name));
    draft.problems.extend(problems);
    draft
}

/// Reads a project folder as far as it can be read.
pub fn read(dir: &Path, environment: &Environment) -> Draft {
    read_at(dir, environment, None)
}

/// With the secrets of a place.
fn read_at(dir: &Path, environment: &Environment, place: Option<&str>) -> Draft {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let mut problems = Vec::new();
    let secrets = Secrets::read(&dir, environment, place, &mut problems);
    let names = Names { environment, secrets: &secrets };
    let file = read_project_file(&dir, &names, &mut problems);
    let (interfaces, known) = read_interfaces(&dir, &names, &mut problems);
    problems.extend(routes::check(&interfaces, &known));
    let project = file.map(|file| Project::new(dir, file, interfaces));
    if let Some(project) = &project {
        problems.extend(ports::check(project));
        problems.extend(project.plugins.values().filter_map(PluginByPath::check));
        problems.extend(project.traces.iter().flat_map(TraceSettings::check));
        check_files(project, &mut problems);
    }
    Draft { project, problems, secrets: secrets.standings(environment) }
}

/// The problems of one file's text, by the name it would have in a project. References are
/// resolved against nothing. Never panics, whatever the text.
pub fn check_text(file_name: &str, text: &str) -> Problems {
    let environment = Environment::default();
    let secrets = Secrets::default();
    let names = Names { environment: &environment, secrets: &secrets };
    let base = Path::new("");
    let problems = match file_name {
        Project::FILE => Reader::file(file_name, text, &names, base, ProjectFile::read_table).1,
        Project::SECRETS => parse_secrets(file_name, text).1,
        _ => {
            let (file, mut problems) = Reader::file(file_name, text, &names, base, InterfaceFile::read_table);
            if let (Some(file), Some(name)) = (file, Name::new("checked")) {
                let interface = InterfaceSettings::new(name, Place::of_file(file_name), file);
                check_interface(&interface, &mut problems);
            }
            problems
        }
    };
    Problems::new(problems)
}

fn read_project_file(dir: &Path, names: &Names<'_>, problems: &mut Vec<Problem>) -> Option<ProjectFile> {
    let text = match read_text(&dir.join(Project::FILE)) {
        Ok(text) => text,
        Err(why) => {
            let hint = format!("a project is a folder with a file `{}`; it may be empty", Project::FILE);
            problems.push(Problem::new(Place::of_file(Project::FILE), code::FILE_UNREADABLE, why).hint(hint));
            String::new()
        }
    };
    let (file, found) = Reader::file(Project::FILE, &text, names, dir, ProjectFile::read_table);
    problems.extend(found);
    file
}

fn read_interfaces(
    dir: &Path,
    names: &Names<'_>,
    problems: &mut Vec<Problem>,
) -> (Vec<InterfaceSettings>, Known) {
    let mut interfaces = Vec::new();
    let mut known = Known::default();
    for path in list_interface_files(dir, problems) {
        let file_name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default().into_owned();
        let shown = format!("{}/{file_name}", Project::INTERFACES);
        let place = Place::of_file(&shown);
        let Some(name) = file_name.strip_suffix(".toml").and_then(Name::new) else {
            let text = format!("`{}` is not the name of an interface", shorten(&file_name));
            problems.push(Problem::new(place, code::BAD_VALUE, text).hint(Name::RULE));
            continue;
        };
        known.names.insert(name.clone());
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(why) => {
                problems.push(Problem::new(place, code::FILE_UNREADABLE, why));
                continue;
            }
        };
        let (file, found) = Reader::file(&shown, &text, names, dir, InterfaceFile::read_table);
        if !found.is_empty() {
            known.unclear.insert(name.clone());
        }
        problems.extend(found);
        if let Some(file) = file {
            let interface = InterfaceSettings::new(name, place, file);
            check_interface(&interface, problems);
            interfaces.push(interface);
        }
    }
    (interfaces, known)
}

/// The files under `interfaces/`, by name. Other files than TOML are looked over: only a
/// name that is nearly right is worth a word.
fn list_interface_files(dir: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let folder = dir.join(Project::INTERFACES);
    let place = Place::of_file(Project::INTERFACES);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) => {
            let hint = "interfaces are files such as `interfaces/lab.toml`";
            let text = format!("cannot be listed: {error}");
            problems.push(Problem::new(place, code::FILE_UNREADABLE, text).hint(hint));
            return Vec::new();
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) if entry.path().extension().is_some_and(|extension| extension == "toml") => {
                files.push(entry.path());
            }
            Ok(_) => {}
            Err(error) => {
                let text = format!("cannot be listed: {error}");
                problems.push(Problem::new(place.clone(), code::FILE_UNREADABLE, text));
            }
        }
    }
    if files.len() > INTERFACES_MAX {
        let text = format!("{} interfaces, at most {INTERFACES_MAX} are taken", files.len());
        problems.push(Problem::new(place, code::OUTSIDE_LIMITS, text));
        files.truncate(INTERFACES_MAX);
    }
    files.sort();
    files
}

/// What the options of one interface do not say of themselves.
fn check_interface(interface: &InterfaceSettings, problems: &mut Vec<Problem>) {
    let mut names: BTreeMap<&Name, &Place> = BTreeMap::new();
    if let Some(source) = &interface.source {
        check_grants(&source.grants, problems);
    }
    for destination in &interface.destinations {
        let name = &destination.name;
        if let Some(first) = names.get(&name.value) {
            let text = format!("there are two destinations `{}`", name.value);
            let hint = format!("the other is in line {}; give each its own name", first.line);
            problems.push(Problem::new(name.place.clone(), code::NAME_TWICE, text).hint(hint));
        }
        names.insert(&name.value, &name.place);
        let purges = interface.quarantined == Quarantined::Purge;
        if purges && destination.on_quarantine == OnQuarantine::Hold {
            let text = format!("destination `{}` holds lanes for what its interface purges", name.value);
            let hint = "remove `quarantined = \"purge\"`, or `on_quarantine = \"hold\"`";
            problems.push(Problem::new(name.place.clone(), code::BAD_VALUE, text).hint(hint));
        }
        check_destination(destination, problems);
    }
}

/// What the grants of a plugin do not say of themselves.
fn check_grants(grants: &BTreeMap<Name, At<GrantSettings>>, problems: &mut Vec<Problem>) {
    for grant in grants.values() {
        if let GrantSettings::Tcp(tcp) = &grant.value {
            tcp_grant::check(&grant.place, tcp, problems);
        }
    }
}

fn check_destination(destination: &DestinationSettings, problems: &mut Vec<Problem>) {
    let At { value: name, place } = &destination.name;
    for plugin_use in destination.transform.iter().chain(&destination.sender) {
        check_grants(&plugin_use.grants, problems);
    }
    if let (Some(_), Some(route)) = (&destination.sender, &destination.route) {
        let text = format!("destination `{name}` has a sender and a route");
        let problem = Problem::new(route.place.clone(), code::TWO_TARGETS, text);
        problems.push(problem.hint("remove one; two ways are two destinations"));
    }
    if destination.sender.is_none() && destination.route.is_none() {
        let text = format!("destination `{name}` leads nowhere");
        let hint = "add `[destination.sender]`, or `route = \"…\"` to another interface";
        problems.push(Problem::new(place.clone(), code::NO_TARGET, text).hint(hint));
    }
    if destination.transform.len() > DestinationSettings::TRANSFORMS_MAX {
        let text = format!("destination `{name}` has {} transforms", destination.transform.len());
        let hint = format!("at most {} are taken", DestinationSettings::TRANSFORMS_MAX);
        problems.push(Problem::new(place.clone(), code::OUTSIDE_LIMITS, text).hint(hint));
    }
    check_state(destination, problems);
    if destination.route.is_some() && destination.guarantee == Guarantee::AtMostOnce {
        let text = format!("destination `{name}` routes with `guarantee = \"at-most-once\"`");
        let problem = Problem::new(place.clone(), code::BAD_VALUE, text);
        problems.push(problem.hint("remove `guarantee`: a route delivers exactly once"));
    }
    if destination.route.is_some() && destination.save_output {
        let text = format!("destination `{name}` routes, so `save_output` keeps nothing");
        let problem = Problem::new(place.clone(), code::OPTION_UNUSED, text);
        problems.push(problem.hint("remove it: what the route carries is a message of the other interface"));
    }
    if destination.retry.first_wait > destination.retry.longest_wait {
        let text = format!("destination `{name}` waits longer at first than at most");
        let problem = Problem::new(place.clone(), code::BAD_VALUE, text);
        problems.push(problem.hint("raise `longest_wait`, or lower `first_wait`"));
    }
}

/// Plugins of one destination keep their state under different names.
fn check_state(destination: &DestinationSettings, problems: &mut Vec<Problem>) {
    let mut names: Vec<Name> = Vec::new();
    for plugin_use in destination.transform.iter().chain(&destination.sender) {
        for grant in plugin_use.grants.values() {
            let GrantSettings::State(state) = &grant.value else { continue };
            let name = state.space(plugin_use);
            if names.contains(name) {
                let text =
                    format!("two plugins of destination `{}` keep a state `{name}`", destination.name.value);
                let hint = "add `name = \"…\"` to the grant of one of them";
                problems.push(Problem::new(grant.place.clone(), code::NAME_TWICE, text).hint(hint));
            }
            names.push(name.clone());
        }
    }
}
