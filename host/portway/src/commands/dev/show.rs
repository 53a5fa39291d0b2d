//! What `portway dev` says: what runs, what changed, what is wrong.

use std::time::Duration;

use portway_config::{Problems, Project};

use crate::commands::show::counted;
use crate::output::says_more;
use crate::wiring::{Difference, Running, What};

/// Interfaces whose lines are shown at the start; of more the number is.
const INTERFACES_MAX: usize = 50;

/// What runs, where it listens and where it delivers.
pub(super) fn start(running: &Running, store: &str) -> String {
    let project = running.project();
    let mut lines: Vec<String> = project
        .interfaces
        .iter()
        .take(INTERFACES_MAX)
        .map(|interface| interface_line(running, interface.name.as_str()))
        .collect();
    if project.interfaces.len() > INTERFACES_MAX {
        lines.push(format!("… and {} more interfaces", project.interfaces.len() - INTERFACES_MAX));
    }
    if project.interfaces.is_empty() {
        lines.push("no interface runs".to_owned());
    }
    lines.push(format!("admin API and web page: http://{}/", running.admin_address()));
    lines.push(format!("messages are kept in {store}"));
    lines.push(format!("watching {}; Ctrl-C stops", project.dir.display()));
    lines.join("\n")
}

/// Where an interface listens, and where it delivers.
pub(super) fn interface_line(running: &Running, name: &str) -> String {
    let Some(interface) = running.project().interface(name) else { return name.to_owned() };
    let plugin = interface.source.as_ref().map(|source| source.plugin.value.as_str());
    let from = match (plugin, running.listens_on(name)) {
        (Some(plugin), Some(address)) => format!("listens on {address} ({plugin})"),
        (Some(plugin), None) => format!("looks for messages ({plugin})"),
        (None, _) => "takes what routes bring".to_owned(),
    };
    let to: Vec<&str> = interface.destinations.iter().map(|one| one.name.value.as_str()).collect();
    match to.as_slice() {
        [] => format!("{name}: {from}"),
        to => format!("{name}: {from}, delivers to {}", to.join(", ")),
    }
}

/// What became different, a line for each interface.
pub(super) fn changes(running: &Running, difference: &Difference) -> String {
    let line = |(name, change): (&String, &crate::wiring::Change)| match change.what {
        What::Removed => format!("{name}: removed"),
        What::Added => format!("{}: added", interface_line(running, name)),
        What::Changed if change.source => format!("{}: {change}", interface_line(running, name)),
        What::Changed => format!("{name}: {change}"),
    };
    difference.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Everything that is wrong, as `portway validate` says it.
pub(super) fn problems(problems: &Problems, what_follows: &str) -> String {
    let count = counted(problems.len() as u64, "problem");
    format!("{problems}\n{count}: {what_follows}\nhint: {}", says_more(&problems.codes()))
}

/// What is asked about deliveries that wait.
pub(super) fn question(interface: &str, destination: &str, waiting: u64) -> String {
    let deliveries = deliveries(waiting, "waits", "wait");
    format!(
        "{interface} → {destination} is removed, and {deliveries} for it\n  \
         d  dismiss them: they are not delivered\n  \
         k  keep them in the store, until the destination comes back\n  \
         u  undo: {interface} goes on as it was, until its file changes again\n\
         d, k or u?"
    )
}

/// So many deliveries, and what they do.
pub(super) fn deliveries(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 delivery {one}"),
        count => format!("{count} deliveries {many}"),
    }
}

/// How a build ended.
pub(super) fn built(plugin: &str, is_good: bool, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    match is_good {
        true => format!("plugin {plugin}: built in {seconds:.1} s"),
        false => format!("plugin {plugin}: its build failed; what runs goes on"),
    }
}

/// Parts of the project file that are taken later.
pub(super) fn later(parts: &[&str]) -> String {
    format!(
        "{} of {} changed: that is taken when `portway dev` starts again",
        parts.join(", "),
        Project::FILE
    )
}
