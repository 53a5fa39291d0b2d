//! Projects, plugins and files that are refused with a sentence, before anything runs.

use std::fs;
use std::path::Path;

use super::project::{component, to_file};
use super::{Peer, Project};

/// A project whose one destination uses a transform of its own.
fn with_plugin(bytes: &[u8]) -> Project {
    let project = Project::new("[plugins.mine]\npath = \"mine.wasm\"\n");
    fs::write(project.path().join("mine.wasm"), bytes).unwrap();
    project.mllp("lab", "", &to_file("out", "", "[[destination.transform]]\nplugin = \"mine\"\n"));
    project
}

/// `validate` and `run` refuse it with these words, and with the exit code for problems.
async fn is_refused(project: &Project, words: &[&str]) {
    let validated = project.portway(&["validate"]).await;
    let run = project.portway(&["run"]).await;
    for word in words {
        assert!(validated.stdout.contains(word), "`{word}` is not said by `validate`: {validated:?}");
        assert!(run.stderr.contains(word), "`{word}` is not said by `run`: {run:?}");
    }
    assert_eq!((validated.code, run.code), (Some(3), Some(3)), "{validated:?} {run:?}");
    let json = project.portway(&["validate", "--json"]).await;
    let verdict: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let first = &verdict["problems"][0];
    assert!(first["file"].is_string() && first["line"].is_u64(), "{verdict}");
}

#[tokio::test]
async fn a_file_that_is_no_plugin_is_refused() {
    is_refused(
        &with_plugin(b"#!/bin/sh\n"),
        &["no WebAssembly component", "\n  hint: check that the path", "interfaces/lab.toml"],
    )
    .await;
    let module = b"\0asm\x01\0\0\0";
    is_refused(&with_plugin(module), &["core WebAssembly module, not a component", "wasm32-wasip2"]).await;
    let mut cut = fs::read(component("oru-to-json")).unwrap();
    cut.truncate(cut.len() / 2);
    is_refused(&with_plugin(&cut), &["no WebAssembly component"]).await;
    let project = with_plugin(b"");
    fs::remove_file(project.path().join("mine.wasm")).unwrap();
    is_refused(&project, &["cannot read plugin file", "mine.wasm"]).await;
}

#[tokio::test]
async fn a_plugin_for_another_contract_or_kind_is_refused() {
    let mut bytes = fs::read(component("oru-to-json")).unwrap();
    let (ours, other) = (b"contract = \"0.1\"", b"contract = \"0.9\"");
    let at = bytes.windows(ours.len()).position(|part| part == ours).expect("a manifest");
    bytes[at..at + other.len()].copy_from_slice(other);
    is_refused(&with_plugin(&bytes), &["built for contract 0.9, this engine knows 0.1", "SDK"]).await;
    let sender = fs::read(component("file-sender")).unwrap();
    is_refused(&with_plugin(&sender), &["`mine` is a sender, which cannot stand as a transform"]).await;
}

#[tokio::test]
async fn grants_that_do_not_fit_the_slots_are_refused() {
    let destination = |grants: &str| {
        format!("[[destination]]\nname = \"out\"\n[destination.sender]\nplugin = \"file\"\n{grants}\n")
    };
    let project = Project::new("");
    project.mllp("lab", "", &destination(""));
    is_refused(&project, &["needs a grant for its slot `folder`", "add `grants.folder"]).await;
    project.mllp(
        "lab",
        "",
        &destination("grants.folder = { type = \"tcp\", host = \"127.0.0.1\", port = 1 }"),
    );
    is_refused(&project, &["slot `folder` of plugin `file` takes a grant of type `folder`"]).await;
    let both = "grants.folder = { type = \"folder\", path = \"out\" }\ngrants.database = { type = \"folder\", path = \"out\" }";
    project.mllp("lab", "", &destination(both));
    is_refused(&project, &["plugin `file` has no slot `database`", "its slots are folder"]).await;
    let transform = "[[destination.transform]]\nplugin = \"oru-to-json\"\ngrants.web = { type = \"http\", url = \"http://127.0.0.1\" }\n";
    project.mllp("lab", "", &to_file("out", "", transform));
    is_refused(&project, &["plugin `oru-to-json` has no slot `web`", "it needs no grants"]).await;
}

#[tokio::test]
async fn settings_a_plugin_does_not_take_are_problems_of_the_project() {
    let project = Project::new("");
    let transform =
        "[[destination.transform]]\nplugin = \"oru-to-json\"\nsettings = { other = \"explode\" }\n";
    project.mllp("lab", "", &to_file("out", "", transform));
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    assert!(validated.stdout.contains("other"), "{validated:?}");
}

#[tokio::test]
async fn a_second_engine_on_one_project_is_refused() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("out", "", ""));
    let mut engine = project.run().await;
    let second = project.portway(&["run"]).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("is in use by another engine (process "), "{second:?}");
    assert!(
        second.stderr.contains("\n  hint: `portway explain store-in-use` says more\n"),
        "it does not name its page: {second:?}"
    );
    assert!(second.stderr.contains("stop the other engine"), "it does not say what to do: {second:?}");
    Peer::connect(engine.address("lab").await).await.send_all("PWa", [1]).await;
    engine.drained("lab", "out").await;
}

#[tokio::test]
async fn a_damaged_or_foreign_database_is_refused_and_left_as_it_is() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("out", "", ""));
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWa", 1..=50).await;
    engine.drained("lab", "out").await;
    engine.stop().await;
    let path = project.path().join("data/portway.db");
    let sound = fs::read(&path).unwrap();

    let mut damaged = sound.clone();
    let middle = damaged.len() / 2;
    damaged[4096..middle].fill(0xa5);
    store_is_refused(&project, &path, &damaged, "is damaged, or no store").await;
    store_is_refused(
        &project,
        &path,
        b"Dear diary, this is no database at all.\n",
        "is damaged, or no store",
    )
    .await;
    // A database of another program: the same file under another application id.
    let mut foreign = sound.clone();
    foreign[68..72].copy_from_slice(&[0x0f, 0x05, 0x51, 0x12]);
    store_is_refused(&project, &path, &foreign, "it belongs to another one").await;

    fs::write(&path, &sound).unwrap();
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWa", 51..=60).await;
    engine.drained("lab", "out").await;
    assert_eq!(project.delivered("out").len(), 60);
}

async fn store_is_refused(project: &Project, path: &Path, bytes: &[u8], words: &str) {
    fs::write(path, bytes).unwrap();
    let run = project.portway(&["run"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains(words), "`{words}` is not said: {run:?}");
    assert!(run.stderr.contains("hint:"), "it does not say what to do: {run:?}");
    assert!(fs::read(path).unwrap() == bytes, "the file was changed");
}

#[tokio::test]
async fn the_example_validates() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lab-results");
    let validated = std::process::Command::new(env!("CARGO_BIN_EXE_portway"))
        .args(["validate", "--project"])
        .arg(example)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&validated.stdout);
    assert!(validated.status.success(), "{stdout}{}", String::from_utf8_lossy(&validated.stderr));
    assert!(stdout.contains("1 interface, 2 destinations, no problems"), "{stdout}");
}
