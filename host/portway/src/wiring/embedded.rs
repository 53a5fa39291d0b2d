//! The first-party plugins inside this binary.

use portway_config::Role;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What the binary knows of a name written in a project.
pub enum FirstParty {
    Found(&'static [u8]),
    /// Its name is known, but this binary was built without it.
    NotBuilt,
    Unknown,
}

/// The names a project may write in a role without giving a path.
pub fn names(role: Role) -> Vec<&'static str> {
    EMBEDDED.iter().filter_map(|(file, _)| name_in(file, role)).collect()
}

/// The component behind a name in a role.
pub fn find(role: Role, name: &str) -> FirstParty {
    let entry = EMBEDDED.iter().find(|(file, _)| name_in(file, role) == Some(name));
    match entry {
        Some((_, Some(bytes))) => FirstParty::Found(bytes),
        Some((_, None)) => FirstParty::NotBuilt,
        None => FirstParty::Unknown,
    }
}

/// `mllp-source` is written `mllp` where a source stands; a transform is written as its file, and so
/// is a component that responds.
fn name_in(file: &'static str, role: Role) -> Option<&'static str> {
    match role {
        Role::Source => file.strip_suffix("-source").or_else(|| responds(file).then_some(file)),
        Role::Sender => file.strip_suffix("-sender"),
        Role::Transform => {
            let is_other = file.ends_with("-source") || file.ends_with("-sender") || responds(file);
            (!is_other).then_some(file)
        }
    }
}

fn responds(file: &str) -> bool {
    file.starts_with("respond-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_means_another_plugin_in_another_role() {
        assert_eq!(names(Role::Source), ["file", "http", "mllp", "schedule", "tcp", "respond-hello"]);
        assert_eq!(
            names(Role::Transform),
            [
                "csv-to-json",
                "filter",
                "hl7-to-json",
                "json-map",
                "json-to-csv",
                "look-up",
                "oru-to-json",
                "route"
            ]
        );
        assert_eq!(names(Role::Sender), ["file", "http", "mllp", "smtp", "tcp"]);
        assert!(matches!(find(Role::Transform, "http"), FirstParty::Unknown));
    }
}
