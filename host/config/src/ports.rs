//! Listeners: no two on one port, but HTTP sources with paths of their own; and the admin API on
//! loopback only.

use std::net::SocketAddr;

use portway_model::code;

use crate::{At, Place, Problem, Project, SourceSettings};

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
    let mut taken: Vec<Taken<'_>> = vec![Taken { address: admin, by: "the admin API".into(), source: None }];
    for interface in &project.interfaces {
        let Some(source) = &interface.source else { continue };
        let Some(listen) = &source.listen else { continue };
        let mut others = taken.iter().filter(|taken| overlap(taken.address, listen.value));
        problems.extend(others.find_map(|taken| taken.conflict(source, listen)));
        let by = format!("interface `{}`", interface.name);
        taken.push(Taken { address: listen.value, by, source: Some(source) });
    }
    problems
}

/// Who listens where.
struct Taken<'a> {
    address: SocketAddr,
    by: String,
    /// None: it is the admin API.
    source: Option<&'a SourceSettings>,
}

impl Taken<'_> {
    /// Why another source cannot listen there as well.
    fn conflict(&self, source: &SourceSettings, listen: &At<SocketAddr>) -> Option<Problem> {
        let paths = self.source.and_then(|other| other.path.as_ref()).zip(source.path.as_ref());
        let (Some((taken, path)), Some(other)) = (paths, self.source) else {
            return Some(in_use(listen, self.address, &self.by));
        };
        if self.address != listen.value {
            return Some(in_use(listen, self.address, &self.by));
        }
        if !source.listens_alike(other) {
            let text = format!("{} listens on `{}` with other settings", self.by, self.address);
            let hint = "write the same `tls`, `allow`, `connections_max` and times for both, or give each its own port";
            return Some(Problem::new(listen.place.clone(), code::LISTENERS_DIFFER, text).hint(hint));
        }
        if taken.value == path.value {
            let text = format!("{} takes the path `{}` on `{}`", self.by, path.value, self.address);
            let hint = "give each its own path, or its own port";
            return Some(Problem::new(path.place.clone(), code::PATH_TWICE, text).hint(hint));
        }
        None
    }
}

/// Whether two listeners cannot both be bound. Port 0 is a new one for each.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let same_address = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && same_address
}

fn in_use(listen: &At<SocketAddr>, address: SocketAddr, by: &str) -> Problem {
    let text = format!("`{}` is taken: {by} listens on `{address}`", listen.value);
    Problem::new(listen.place.clone(), code::PORT_TWICE, text)
        .hint("give each its own port; HTTP sources can share one if each has a `path`")
}
