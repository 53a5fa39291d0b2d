//! Secrets, from where they are kept to what a plugin gets of them, and the record of it.

use std::path::Path;
use std::process::Command;

use super::Project;
use super::peer::post;
use super::process::Finished;
use super::project::{test_component, to_file};

/// A project whose one destination signs with the secret `KEY` and reads the secret `TOKEN`.
fn project() -> Project {
    let path = test_component("puppet-transform");
    let project = Project::new(&format!("[plugins.puppet]\npath = {:?}\n", path.display().to_string()));
    let puppet = "[[destination.transform]]\nplugin = \"puppet\"\n\
         grants.key = { type = \"sign\", secret = \"${secret:KEY}\" }\n\
         grants.pass = { type = \"reveal\", secret = \"${secret:TOKEN}\" }\n";
    let source = "[source]\nplugin = \"http\"\nlisten = \"127.0.0.1:0\"\npath = \"/in\"\n";
    project.interface("orders", &format!("{source}\n{}", to_file("out", "", puppet)));
    project
}

/// It needs no project.
fn make_identity(file: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
    let made = command.args(["secrets", "make-identity"]).arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&made.stdout);
    assert!(said.contains("its recipient is age1"), "{made:?}");
}

async fn set(project: &Project, identity: &Path, name: &str, value: &str) -> Finished {
    let identity = identity.display().to_string();
    project.portway_with_input(&["secrets", "set", name, "--identity", &identity], value).await
}

#[tokio::test]
async fn secrets_are_made_listed_and_removed_without_being_shown() {
    let project = project();
    let outside = tempfile::tempdir().unwrap();
    let identity = outside.path().join("identity");
    let named = identity.display().to_string();
    make_identity(&identity);

    let missing = project.portway(&["validate"]).await;
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.stdout.contains("`${secret:KEY}` has no value"), "{missing:?}");
    assert!(missing.stdout.contains("it was looked for in the environment variable"), "{missing:?}");

    let without = project.portway_with_input(&["secrets", "set", "KEY"], "hunter2").await;
    assert!(without.stderr.contains("no identity is named that opens `secrets.age`"), "{without:?}");
    assert!(without.stderr.contains("hint: name one with `--identity FILE`"), "{without:?}");
    let added = set(&project, &identity, "KEY", "hunter2\n").await;
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), "secrets.age: KEY added\n"), "{added:?}");
    let empty = set(&project, &identity, "TOKEN", "\n").await;
    assert!(empty.stderr.contains("there is no value on stdin"), "{empty:?}");
    set(&project, &identity, "TOKEN", "swordfish").await;
    set(&project, &identity, "OLD", "swordfish").await;

    let listed = project.portway(&["secrets", "list", "--identity", &named]).await;
    let lines: Vec<&str> = listed.stdout.lines().collect();
    let expected = ["KEY: from secrets.age", "OLD: from secrets.age, not used", "TOKEN: from secrets.age"];
    assert_eq!(lines, expected, "{listed:?}");
    let closed = project.portway(&["secrets", "list"]).await;
    assert!(closed.stdout.contains("KEY: NOT SET"), "{closed:?}");
    let valid = project.portway(&["validate", "--identity", &named]).await;
    assert_eq!(valid.code, Some(0), "{valid:?}");

    let removed = project.portway(&["secrets", "remove", "OLD", "--identity", &named]).await;
    assert_eq!(removed.stdout, "secrets.age: OLD removed\n");
    let again = project.portway(&["secrets", "remove", "OLD", "--identity", &named]).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    for said in [missing, without, added, empty, listed, valid, removed, again] {
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(!said.contains("hunter2") && !said.contains("swordfish"), "{said}");
    }
}

#[tokio::test]
async fn a_plugin_uses_what_it_is_granted_and_each_use_is_recorded() {
    let project = project();
    let outside = tempfile::tempdir().unwrap();
    let identity = outside.path().join("identity");
    let named = identity.display().to_string();
    make_identity(&identity);
    set(&project, &identity, "KEY", "key").await;
    set(&project, &identity, "TOKEN", "swordfish").await;
    let mut engine = project.run_line(&["run", "--identity", &named]).await;
    let address = engine.address("orders").await;
    let commands = "sign key hello\nreveal pass\nreveal other";
    for _ in 0..3 {
        assert_eq!(post(address, "/in", "", commands).await.0, 202);
    }
    engine.sent("orders", "out", 3).await;
    let written = std::fs::read_to_string(project.path().join("out/out")).unwrap();
    let signed = "9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b";
    assert_eq!(written, format!("{signed}; swordfish; Denied\n").repeat(3));

    let status = engine.status().await;
    let plugin = &status.interfaces[0].plugins[0];
    assert_eq!(plugin.destination.as_deref(), Some("out"));
    let uses: Vec<_> =
        plugin.secrets.iter().map(|one| (one.secret.as_str(), one.action.as_str(), one.count)).collect();
    assert_eq!(uses, [("KEY", "sign", 3), ("TOKEN", "reveal", 3)]);
    assert_eq!((plugin.notices[0].code.as_str(), plugin.notices[0].count), ("secret-denied", 3));
    let shown = project.portway(&["status"]).await;
    assert!(shown.stdout.contains("secret KEY: 3 × sign by puppet of out"), "{shown:?}");

    let ledger = std::fs::read_to_string(project.path().join("data/secret-uses.jsonl")).unwrap();
    assert_eq!(ledger.lines().count(), 4, "the first and the second use of each: {ledger}");
    for line in ledger.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["interface"], &line["destination"]), (&"orders".into(), &"out".into()), "{line}");
        assert!(line["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{line}");
    }
    engine.stop().await;
    let log = engine.log();
    assert!(log.contains("first use"), "{log}");
    for text in [&ledger, &log] {
        assert!(!text.contains("swordfish"), "{text}");
    }
}
