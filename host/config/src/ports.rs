//! Listeners: no two on one port, and the admin API on loopback only.

use std::net::SocketAddr;

use portway_model::code;

use crate::{At, Place, Problem, Project};

/// What is wrong with where a project listens.
pub(crate) fn check(project: &Project) -> Vec<Problem> {
    let mut problems = Vec::new();
    let admin = project.admin.address();
    let admin_place = project.admin.listen.as_ref().map(|listen| listen.place.clone());
    if !admin.ip().is_loopback() {
        let place = admin_place.clone().unwrap_or_else(|| Place::of_file(Project::FILE));
        let text = format!("`admin.listen` is `{admin}`, which is not a loopback address");
        problems.push(
            Problem::new(place, code::NOT_LOOPBACK, text)
                .hint("write such as `\"127.0.0.1:8620\"`; reach it from elsewhere over SSH"),
        );
    }
    let mut taken: Vec<(SocketAddr, String)> = vec![(admin, "the admin API".to_owned())];
    for interface in &project.interfaces {
        let Some(listen) = interface.source.as_ref().map(|source| &source.listen) else { continue };
        if let Some((address, by)) = taken.iter().find(|(address, _)| overlap(*address, listen.value)) {
            problems.push(in_use(listen, *address, by));
        }
        taken.push((listen.value, format!("interface `{}`", interface.name)));
    }
    problems
}

/// Whether two listeners cannot both be bound. Port 0 is a new one for each.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let same_address = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && same_address
}

fn in_use(listen: &At<SocketAddr>, address: SocketAddr, by: &str) -> Problem {
    let text = format!("`{}` is taken: {by} listens on `{address}`", listen.value);
    Problem::new(listen.place.clone(), code::PORT_TWICE, text).hint("give each its own port")
}
