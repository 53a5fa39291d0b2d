//! What plugins say of their settings: each use is opened once, and nothing is delivered.

use portway_config::{Place, PluginSettings, PluginUse, Problem, Project, Role, Weight};
use portway_model::code::{self, plugin};
use portway_runtime::{CallError, CompileMode, Plugin, PluginKind, Runtime, RuntimeSettings, Unobserved};

use super::assemble::Plugins;
use super::catalog::PluginCatalog;
use super::openings::{self, Owner};

/// The problems that plugins find in their settings. Uses whose plugin cannot be found or loaded
/// are judged elsewhere.
pub async fn settings_problems(project: &Project, catalog: &PluginCatalog) -> Vec<Problem> {
    // Native code is kept where an engine keeps it, if there was one.
    let cache = project.data_dir().join("native-code");
    let settings = RuntimeSettings {
        cache_dir: cache.is_dir().then_some(cache),
        compile: CompileMode::InProcess,
        ..RuntimeSettings::default()
    };
    let Ok(runtime) = Runtime::new(settings) else {
        return Vec::new();
    };
    let mut plugins = Plugins::new(&runtime, catalog);
    problems_of(project, |_| true, &mut plugins).await
}

/// The same for some interfaces, with plugins that are loaded already.
pub(super) async fn problems_of(
    project: &Project,
    is_meant: impl Fn(&str) -> bool,
    plugins: &mut Plugins<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for interface in project.interfaces.iter().filter(|interface| is_meant(interface.name.as_str())) {
        let name = interface.name.as_str();
        if let Some(source) = &interface.source {
            let owner = Owner { interface: name, destination: "" };
            let plugin_use = source.plugin_use();
            problems.extend(of_use(project, &owner, Role::Source, &plugin_use, plugins).await);
        }
        for destination in &interface.destinations {
            let owner = Owner { interface: name, destination: destination.name.value.as_str() };
            let transforms = destination.transform.iter().map(|transform| (Role::Transform, transform));
            let senders = destination.sender.iter().map(|sender| (Role::Sender, sender));
            for (role, plugin_use) in transforms.chain(senders) {
                problems.extend(of_use(project, &owner, role, plugin_use, plugins).await);
            }
        }
    }
    problems
}

async fn of_use(
    project: &Project,
    owner: &Owner<'_>,
    role: Role,
    plugin_use: &PluginUse,
    plugins: &mut Plugins<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let plugin = &plugin_use.plugin;
    let Some(loaded) = load(plugins, role, plugin.value.as_str(), &plugin.place, &mut problems).await else {
        return problems;
    };
    let by_schema = plugins.catalog().check_settings(role, loaded.manifest(), plugin_use);
    if by_schema.iter().any(|problem| problem.weight == Weight::Problem) {
        // The catalog has said so; the plugin would say it once more.
        return problems;
    }
    let observer = std::sync::Arc::new(Unobserved);
    let opening = openings::of_use(owner, plugin_use, loaded.manifest(), &project.limits, observer);
    let checked = match loaded.kind() {
        PluginKind::Transform => {
            check(loaded.transformer(opening), async |opened| opened.check().await).await
        }
        PluginKind::HttpSender => {
            check(loaded.http_sender(opening), async |opened| opened.check().await).await
        }
        PluginKind::Sender => check(loaded.sender(opening), async |opened| opened.check().await).await,
        PluginKind::StreamSource => {
            check(loaded.stream_source(opening), async |opened| opened.check().await).await
        }
        PluginKind::PollSource => {
            check(loaded.poll_source(opening), async |opened| opened.check().await).await
        }
        PluginKind::Respond => check(loaded.responder(opening, 0), async |opened| opened.check().await).await,
        PluginKind::HttpSource => {
            check(loaded.http_source(opening), async |opened| opened.check().await).await
        }
    };
    problems.extend(refused(checked, &plugin_use.settings, &plugin.place));
    problems
}

async fn check<T, E>(
    opened: Result<T, E>,
    ask: impl AsyncFnOnce(T) -> Result<(), CallError>,
) -> Result<(), CallError> {
    match opened {
        Ok(opened) => ask(opened).await,
        // Grants and kinds are judged by the catalog.
        Err(_) => Ok(()),
    }
}

async fn load(
    plugins: &mut Plugins<'_>,
    role: Role,
    name: &str,
    place: &Place,
    problems: &mut Vec<Problem>,
) -> Option<Plugin> {
    match plugins.load(role, name).await {
        Ok(plugin) => Some(plugin),
        Err(error) if error.is_found_by_the_catalog() => None,
        Err(error) => {
            let problem = Problem::new(place.clone(), error.code(), error.to_string());
            problems.push(match error.hint() {
                Some(hint) => problem.hint(hint),
                None => problem,
            });
            None
        }
    }
}

fn refused(checked: Result<(), CallError>, settings: &PluginSettings, plugin: &Place) -> Option<Problem> {
    let place = settings.place_of("").unwrap_or(plugin).clone();
    match checked {
        Ok(()) => None,
        Err(CallError::Open(failure)) => Some(Problem::new(place, plugin::BAD_SETTINGS, failure.text)),
        Err(error) => {
            // A plugin of somebody else may have a code of its own, which no page explains.
            let code = code::registered(error.code()).unwrap_or(plugin::ERROR);
            Some(Problem::new(place, code, error.to_string()))
        }
    }
}
