//! What an integration developer does with a project: begins it, tests it, tries messages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Project;
use super::process::Finished;
use super::project::{hostile_plugins, share_native_code, to_file};

/// The program in a folder, without a project.
fn portway_in(folder: &Path, line: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
    let output = command.args(line).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Every file below a folder with its bytes, but for the data of an engine.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true if entry.file_name() == "data" => {}
                true => folders.push(entry.path()),
                false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_new_project_of_every_kind_validates_and_passes_its_tests() {
    for kind in ["lab", "webhook", "files"] {
        let dir = tempfile::tempdir().unwrap();
        let made = portway_in(dir.path(), &["init", "feeds", "--from", kind]);
        assert_eq!(made.code, Some(0), "{kind}: {made:?}");
        assert!(made.stdout.contains("cd feeds\nportway validate\nportway test\nportway run"), "{made:?}");
        let project = dir.path().join("feeds");
        fs::create_dir(project.join("data")).unwrap();
        share_native_code(&project);
        let validated = portway_in(&project, &["validate"]);
        assert_eq!(validated.code, Some(0), "{kind}: {validated:?}");
        let tested = portway_in(&project, &["test"]);
        assert_eq!(tested.code, Some(0), "{kind}: {tested:?}");
        assert!(tested.stdout.contains("1 case: 1 passed"), "{kind}: {tested:?}");
        let ignored = fs::read_to_string(project.join(".gitignore")).unwrap();
        assert!(ignored.contains("/out/*\n!/out/.gitkeep\n") && project.join("out/.gitkeep").is_file());
        // What it made is what a test with `--update` would make.
        let before = files(&project);
        let updated = portway_in(&project, &["test", "--update"]);
        assert_eq!((updated.code, files(&project) == before), (Some(0), true), "{kind}: {updated:?}");
    }
}

#[test]
fn init_writes_over_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("README.md"), "mine").unwrap();
    fs::create_dir(dir.path().join("interfaces")).unwrap();
    let refused = portway_in(dir.path(), &["init"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("already has `README.md`, and nothing is written over"), "{refused:?}");
    assert_eq!(files(dir.path()), [(dir.path().join("README.md"), b"mine".to_vec())]);
    fs::remove_file(dir.path().join("README.md")).unwrap();
    let made = portway_in(dir.path(), &["init", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
    assert!(made["files"].as_array().unwrap().iter().any(|file| file == "interfaces/lab.toml"), "{made}");
    let again = portway_in(dir.path(), &["init"]);
    assert!(again.stderr.contains("`portway.toml`"), "{again:?}");
}

#[test]
fn schemas_are_printed_or_written_with_the_plugins_of_the_project() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path();
    fs::create_dir(project.join("interfaces")).unwrap();
    let component = super::project::component("oru-to-json").display().to_string();
    fs::write(project.join("portway.toml"), format!("[plugins.mine]\npath = {component:?}\n")).unwrap();
    let written = portway_in(project, &["schema", "--out", "schemas"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let printed = portway_in(project, &["schema", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    for name in ["portway.schema.json", "interface.schema.json", "case.schema.json"] {
        let text = fs::read_to_string(project.join("schemas").join(name)).unwrap();
        assert_eq!(printed[name], serde_json::from_str::<serde_json::Value>(&text).unwrap(), "{name}");
    }
    let mine = &printed["interface.schema.json"]["definitions"]["transform.mine"];
    assert!(mine["properties"]["other"]["enum"].is_array(), "{mine}");
}

#[test]
fn the_example_passes_its_test_cases() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lab-results");
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in files(&example) {
        let copy = dir.path().join(path.strip_prefix(&example).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, bytes).unwrap();
    }
    fs::create_dir_all(dir.path().join("out")).unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    share_native_code(dir.path());
    let tested = portway_in(dir.path(), &["test"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.stdout.contains("2 cases: 2 passed"), "{tested:?}");
}

const RESULT: &str =
    "MSH|^~\\&|LAB|N|EHR|N|20260101||ORU^R01|M1|P|2.5\nPID|1||P1\nOBX|1|NM|GLU||5.4|mmol/L\n";

/// A lab whose results go to a file and, where they are answered, to a web service.
fn lab() -> Project {
    let project = Project::new("");
    let api = "[[destination]]\nname = \"api\"\n[[destination.transform]]\nplugin = \"oru-to-json\"\n\
         [destination.sender]\nplugin = \"http\"\nsettings = { path = \"/results/{id}\" }\n\
         grants.api = { type = \"http\", url = \"http://127.0.0.1:9/v1\" }\n";
    let filter = "[[destination.transform]]\nplugin = \"filter\"\n\
         settings = { body = \"hl7\", rules = [{ name = \"adults\", only = { path = \"PID-3.1\", equals = \"P1\" } }] }\n";
    project.mllp("lab", "", &format!("{}{api}", to_file("archive", "", filter)));
    project
}

fn case(project: &Project, name: &str, files: &[(&str, &str)]) {
    for (file, text) in files {
        let path = project.path().join("tests/lab").join(name).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn expected(project: &Project, case: &str, file: &str) -> String {
    fs::read_to_string(project.path().join("tests/lab").join(case).join("expected").join(file)).unwrap()
}

#[tokio::test]
async fn a_case_is_made_by_update_and_says_what_changed_since() {
    let project = lab();
    case(&project, "one", &[("input-1.hl7", RESULT), ("input-2.hl7", &RESULT.replace("P1", "P2"))]);
    let new = project.portway(&["test"]).await;
    assert_eq!(new.code, Some(1), "{new:?}");
    assert!(new.stdout.contains("expected/archive/verdict.txt\n    came, and is not expected"), "{new:?}");
    let updated = project.portway(&["test", "--update"]).await;
    assert_eq!(updated.code, Some(0), "{updated:?}");
    assert!(updated.stdout.contains("1 case: 1 updated"), "{updated:?}");
    let verdicts = expected(&project, "one", "archive/verdict.txt");
    assert!(verdicts.starts_with("delivered\nfiltered: rule `adults`"), "{verdicts}");
    assert_eq!(expected(&project, "one", "archive/output.hl7"), RESULT);
    let source = expected(&project, "one", "source.txt");
    assert!(source.starts_with("message 1: ") && source.contains(", key P1, dedupe M1\n"), "{source}");
    assert!(expected(&project, "one", "api/output-2.json").contains("\n  "), "not for people");
    for _ in 0..2 {
        let again = project.portway(&["test", "lab", "--case", "one"]).await;
        assert_eq!(again.code, Some(0), "{again:?}");
    }

    let changed = RESULT.replace("5.4", "9.9");
    case(&project, "one", &[("input-1.hl7", &changed)]);
    let junit = project.path().join("junit.xml");
    let differs = project.portway(&["test", "--junit", junit.to_str().unwrap()]).await;
    assert_eq!(differs.code, Some(1), "{differs:?}");
    assert!(differs.stdout.contains("-OBX|1|NM|GLU||5.4|mmol/L\n"), "{differs:?}");
    assert!(differs.stdout.contains("+OBX|1|NM|GLU||9.9|mmol/L\n"), "{differs:?}");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("failures=\"1\"") && junit.contains("classname=\"lab\" name=\"one\""), "{junit}");
    let json = project.portway(&["test", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["differing"], &json["cases"][0]["result"]), (&1.into(), &"differs".into()), "{json}");
}

#[tokio::test]
async fn stated_answers_are_judged_by_the_sender_and_its_requests_compared() {
    let project = lab();
    let answers = "[[answer]]\ndestination = \"api\"\nstatus = 201\nbody = \"made\"\n\
         [[answer]]\ndestination = \"api\"\nstatus = 503\n[[answer]]\ndestination = \"api\"\nfails = \"timeout\"\n";
    let inputs = ["input-1.hl7", "input-2.hl7", "input-3.hl7"].map(|name| (name, RESULT));
    case(&project, "answered", &[&inputs[..], &[("case.toml", answers)]].concat());
    let updated = project.portway(&["test", "--update"]).await;
    assert_eq!(updated.code, Some(0), "{updated:?}");
    let verdicts = expected(&project, "answered", "api/verdict.txt");
    let lines: Vec<&str> = verdicts.lines().collect();
    assert!(lines[0].starts_with("delivered: 201") && lines[0].contains("made"), "{verdicts}");
    assert!(lines[1].starts_with("retry: 503"), "{verdicts}");
    assert!(lines[2].starts_with("retry: "), "{verdicts}");
    let request = expected(&project, "answered", "api/request-1.http");
    assert!(request.starts_with("POST api:/results/1\n"), "{request}");
    assert!(request.to_lowercase().contains("\nidempotency-key: rehearsal-1\n"), "{request}");
    let again = project.portway(&["test"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[tokio::test]
async fn a_case_has_a_clock_a_key_and_settings_of_its_own() {
    let project = lab();
    let text = "clock = 2026-02-03T04:05:06Z\nkey = \"K9\"\nattributes = { ward = \"7\" }\n\
         [[settings]]\nvalues = { dedupe = \"PID-3.1\" }\n\
         [[settings]]\ndestination = \"archive\"\ntransform = 1\nvalues = { rules = [{ only = { attribute = \"ward\", equals = \"8\" } }] }\n";
    case(&project, "own", &[("input.hl7", RESULT), ("case.toml", text)]);
    let updated = project.portway(&["test", "--update"]).await;
    assert_eq!(updated.code, Some(0), "{updated:?}");
    let source = expected(&project, "own", "source.txt");
    assert!(source.contains(", key K9, dedupe P1\n") && source.contains("  ward = 7\n"), "{source}");
    assert!(expected(&project, "own", "archive/verdict.txt").starts_with("filtered: "));
}

#[tokio::test]
async fn cases_that_cannot_be_run_are_broken_and_say_why() {
    let project = lab();
    case(&project, "empty", &[("notes.txt", "")]);
    case(&project, "wrong", &[("input.hl7", RESULT), ("case.toml", "clock = 5\n")]);
    case(
        &project,
        "elsewhere",
        &[("input.hl7", RESULT), ("case.toml", "[[answer]]\ndestination = \"apo\"\n")],
    );
    let other = project.path().join("tests/other/one");
    fs::create_dir_all(&other).unwrap();
    let broken = project.portway(&["test"]).await;
    assert_eq!(broken.code, Some(1), "{broken:?}");
    for words in [
        "there is no input: add a file `input.…`",
        "tests/lab/wrong/case.toml:1:9: `clock` is an integer",
        "has no destination `apo`",
        "there is no interface `other`",
        "4 cases: 4 broken",
    ] {
        assert!(broken.stdout.contains(words), "`{words}` is not said: {broken:?}");
    }
    let none = project.portway(&["test", "--case", "nope"]).await;
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.contains("there is no such test case"), "{none:?}");
}

#[tokio::test]
async fn try_shows_every_step_of_a_message_and_keeps_nothing() {
    let project = lab();
    project.write("result.hl7", RESULT);
    let file = project.path().join("result.hl7");
    let tried = project.portway(&["try", "lab", file.to_str().unwrap()]).await;
    assert_eq!(tried.code, Some(0), "{tried:?}");
    for words in [
        "source mllp\n",
        "    key P1\n    dedupe M1\n",
        "    | PID|1||P1\n",
        "destination archive\n  filter: goes on\n",
        "  sender file\n  delivered\n",
        "    > POST api:/results/1\n",
    ] {
        assert!(tried.stdout.contains(words), "`{words}` is not said: {}", tried.stdout);
    }
    assert!(fs::read_dir(project.path().join("out")).unwrap().next().is_none(), "something was sent");
    assert!(!project.path().join("data/portway.db").exists(), "something was stored");
    let json =
        project.portway(&["try", "lab", file.to_str().unwrap(), "--destination", "api", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let destinations = json["found"][0]["destinations"].as_array().unwrap();
    assert_eq!((destinations.len(), &destinations[0]["arrives"]), (1, &true.into()), "{json}");
    let missing = project.portway(&["try", "lab", file.to_str().unwrap(), "--destination", "apo"]).await;
    assert!(missing.stderr.contains("has no destination `apo`"), "{missing:?}");

    project.write("rubbish.hl7", "no message at all");
    let file = project.path().join("rubbish.hl7");
    let tried = project.portway(&["try", "lab", file.to_str().unwrap()]).await;
    assert_eq!(tried.code, Some(1), "{tried:?}");
}

#[tokio::test]
async fn try_shows_a_fault_with_the_plugins_own_text() {
    let project = Project::new(&hostile_plugins());
    let transform =
        "[[destination.transform]]\nplugin = \"hostile-transform\"\nsettings = { deed = \"trap\" }\n";
    project.mllp("lab", "", &to_file("out", "", transform));
    project.write("result.hl7", RESULT);
    let file = project.path().join("result.hl7");
    let tried = project.portway(&["try", "lab", file.to_str().unwrap()]).await;
    assert_eq!(tried.code, Some(1), "{tried:?}");
    assert!(tried.stdout.contains("hostile-transform: quarantined: "), "{tried:?}");
    assert!(tried.stdout.contains("this message is poison to me"), "{tried:?}");
}
