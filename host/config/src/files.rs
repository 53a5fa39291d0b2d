//! Files that a project consists of or names: read within a limit, or looked whether they are there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use portway_model::code;

use crate::{At, GrantSettings, Name, Problem, Project, ProjectPath};

/// Bytes in one project file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files and folders that a project names are there and can be read.
pub(crate) fn check_files(project: &Project, problems: &mut Vec<Problem>) {
    for plugin in project.plugins.values() {
        check_file(&plugin.path, "plugin", problems);
    }
    let roots = project.traces.as_ref().and_then(|traces| traces.tls_roots.as_ref());
    roots.iter().for_each(|roots| check_file(roots, "authorities", problems));
    for interface in &project.interfaces {
        if let Some(tls) = interface.source.as_ref().and_then(|source| source.tls.as_ref()) {
            check_file(&tls.certificate, "certificate", problems);
            check_file(&tls.key, "key", problems);
            tls.clients.iter().for_each(|clients| check_file(clients, "authorities", problems));
        }
        if let Some(source) = &interface.source {
            check_grants(&source.grants, problems);
        }
        for destination in &interface.destinations {
            let uses = destination.transform.iter().chain(&destination.sender);
            uses.for_each(|plugin_use| check_grants(&plugin_use.grants, problems));
        }
    }
}

fn check_grants(grants: &BTreeMap<Name, At<GrantSettings>>, problems: &mut Vec<Problem>) {
    for grant in grants.values() {
        match &grant.value {
            GrantSettings::Http(http) => {
                http.tls_roots.iter().for_each(|roots| check_file(roots, "authorities", problems));
            }
            GrantSettings::Tcp(tcp) => {
                let tls = tcp.tls.settings();
                let file = |file: Option<&At<ProjectPath>>, what: &str, problems: &mut Vec<Problem>| {
                    file.into_iter().for_each(|file| check_file(file, what, problems));
                };
                file(tls.and_then(|tls| tls.roots.as_ref()), "authorities", problems);
                file(tls.and_then(|tls| tls.certificate.as_ref()), "certificate", problems);
                file(tls.and_then(|tls| tls.key.as_ref()), "key", problems);
            }
            GrantSettings::Reveal(_) | GrantSettings::Sign(_) | GrantSettings::State(_) => {}
            GrantSettings::Folder(folder) if folder.path.as_path().is_dir() => {}
            GrantSettings::Folder(folder) => {
                let text = format!("there is no folder `{}`", folder.path.as_path().display());
                let place = folder.path.place.clone();
                let problem = Problem::new(place, code::FILE_UNREADABLE, text);
                problems.push(problem.hint("create it, or correct the path"));
            }
        }
    }
}

fn check_file(path: &At<ProjectPath>, what: &str, problems: &mut Vec<Problem>) {
    // A pipe would block the open; anything but a regular file is refused before it.
    let opened = regular(path.as_path()).and_then(|_| File::open(path.as_path()));
    if let Err(error) = opened {
        let text = format!("cannot read the {what} `{}`: {error}", path.as_path().display());
        let problem = Problem::new(path.place.clone(), code::FILE_UNREADABLE, text);
        problems.push(problem.hint("correct the path or the file's mode"));
    }
}

fn regular(path: &Path) -> std::io::Result<std::fs::Metadata> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() { Ok(metadata) } else { Err(std::io::Error::other("not a regular file")) }
}

/// The text of a project file, or why there is none, as a fragment.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    regular(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(unreadable)?.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count() + 1;
        format!("is not UTF-8 in line {line}")
    })
}
