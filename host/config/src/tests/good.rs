//! Projects that load.

use portway_model::{Quarantined, Retention, Tier};

use super::project;
use crate::{ByteSize, Catalog, Environment, GrantSettings, PluginUse, Problem, Role, load, read};

const LAB: &str = r#"
durability = "relaxed"
dedupe_window = "0s"
retention = "1w"
[source]
plugin = "mllp"
listen = "${env:HOST}:2575"
allow = ["10.0.0.0/8", "::1"]
settings = { key = "PID-3.1", site = "${env:HOST}" }

[[destination]]
name = "archive"
order = "strict"
timeout = "5s"
on_quarantine = "hold"
[[destination.transform]]
plugin = "oru-to-json"
[destination.sender]
plugin = "file"
settings = { mode = "append", file = "results.ndjson" }
grants.folder = { type = "folder", path = "out" }

[[destination]]
name = "to-billing"
route = "billing"
"#;

fn lab_project() -> tempfile::TempDir {
    let dir = project(&[
        ("portway.toml", "[limits]\nmessage_bytes_max = \"1MB\"\n"),
        ("interfaces/lab.toml", LAB),
        ("interfaces/billing.toml", "quarantined = \"purge\"\n"),
        ("interfaces/README.md", "not an interface"),
    ]);
    std::fs::create_dir(dir.path().join("out")).unwrap();
    dir
}

#[test]
fn a_project_loads_with_its_defaults() {
    let dir = lab_project();
    let project = load(dir.path(), &Environment::of_pairs([("HOST", "127.0.0.1")])).unwrap();
    assert_eq!(project.limits.message_bytes_max, ByteSize::mb(1));
    assert_eq!(project.data_dir(), dir.path().join("data"));
    assert_eq!(project.store.retention, Tier::SevenWeeks);
    assert_eq!(project.admin.address().port(), 8620);
    let names: Vec<_> = project.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["billing", "lab"]);
    let lab = project.interface("lab").unwrap();
    assert_eq!(
        project.retention(lab),
        Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep },
        "its own"
    );
    let billing = project.retention(project.interface("billing").unwrap());
    assert_eq!(billing, Retention { tier: Tier::SevenWeeks, quarantined: Quarantined::Purge }, "the store's");
    assert_eq!(lab.dedupe_window, None);
    let source = lab.source.as_ref().unwrap();
    assert_eq!(source.listen.as_ref().unwrap().value.to_string(), "127.0.0.1:2575");
    assert_eq!(source.settings.to_text(), r#"{"key":"PID-3.1","site":"127.0.0.1"}"#);
    assert_eq!(source.settings.place_of("/key").unwrap().line, 9);
    let sender = lab.destinations[0].sender.as_ref().unwrap();
    let GrantSettings::Folder(folder) = &sender.grants.values().next().unwrap().value else { panic!() };
    assert_eq!(folder.path.as_path(), dir.path().join("out"));
}

#[test]
fn secrets_come_from_a_private_file_and_the_environment_wins() {
    use std::os::unix::fs::PermissionsExt;
    let dir = project(&[
        ("portway.toml", ""),
        (
            "interfaces/a.toml",
            "[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:1\"\n[[destination]]\nname = \"d\"\n[destination.sender]\nplugin = \"http\"\ngrants.api = { type = \"http\", url = \"http://h/\", credentials = { type = \"basic\", user = \"${secret:U}\", password = \"${secret:P}\" } }\n",
        ),
        ("secrets.toml", "U = \"file-user\"\nP = \"file-password\"\n"),
    ]);
    let open = load(dir.path(), &Environment::default()).unwrap_err().to_string();
    assert!(open.contains("secrets.toml: can be read by others than its owner"), "{open}");
    assert!(!open.contains("file-"), "{open}");
    let path = dir.path().join("secrets.toml");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let environment = Environment::of_pairs([("PORTWAY_SECRET_P", "environment-password")]);
    let project = load(dir.path(), &environment).unwrap();
    let sender = project.interfaces[0].destinations[0].sender.as_ref().unwrap();
    let GrantSettings::Http(http) = &sender.grants.values().next().unwrap().value else { panic!() };
    let Some(crate::CredentialSettings::Basic(basic)) = &http.credentials else { panic!() };
    assert_eq!((basic.user.reveal(), basic.password.reveal()), ("file-user", "environment-password"));
    assert!(!format!("{project:?}").contains("-password"));
}

/// Knows one plugin of each role, and has something against every sender.
struct Few;

impl Catalog for Few {
    fn names(&self, role: Role) -> Vec<String> {
        vec![
            match role {
                Role::Source => "mllp",
                Role::Transform => "oru-to-jsom",
                Role::Sender => "file",
            }
            .to_owned(),
        ]
    }

    fn is_first_party(&self, name: &str) -> bool {
        name == "file"
    }

    fn check_source(&self, _: &crate::SourceSettings) -> Vec<Problem> {
        Vec::new()
    }

    fn check_use(&self, _: Role, plugin_use: &PluginUse) -> Vec<Problem> {
        let place = plugin_use.settings.place_of("/mode/deep").unwrap();
        vec![Problem::new(place.clone(), "bad-value", "`mode` is not what it was")]
    }
}

#[test]
fn a_catalog_adds_what_manifests_know() {
    let dir = lab_project();
    let mut draft = read(dir.path(), &Environment::of_pairs([("HOST", "127.0.0.1")]));
    assert!(draft.problems().is_empty(), "{}", draft.problems());
    draft.check_plugins(&Few);
    let problems = draft.finish().unwrap_err().to_string();
    assert!(problems.contains("interfaces/lab.toml:17:10: there is no transform `oru-to-json`\n  hint: did you mean `oru-to-jsom`?"), "{problems}");
    assert!(problems.contains("interfaces/lab.toml:20:21: `mode` is not what it was"), "{problems}");
}
