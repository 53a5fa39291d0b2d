//! What `validate` finds beyond the form of files: settings by their schemas, environments,
//! certificates, folders.

use std::fs;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DnType, KeyPair};

use super::Project;
use super::project::to_file;

#[tokio::test]
async fn settings_that_a_schema_does_not_take_have_their_place_and_keep_run_from_starting() {
    let project = Project::new("");
    let transform = "[[destination.transform]]\nplugin = \"oru-to-json\"\nsettings.othr = \"pass\"\n\
         [[destination.transform]]\nplugin = \"json-map\"\nsettings.rest = \"maybe\"\nsettings.rules = [{ from = \"/a\" }]\n";
    project.mllp("lab", "", &to_file("out", "", transform));
    for line in [&["validate"][..], &["run"]] {
        let refused = project.portway(line).await;
        assert_eq!(refused.code, Some(3), "{refused:?}");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        for words in [
            "interfaces/lab.toml:11:17: plugin `oru-to-json`: unknown setting `othr`",
            "hint: did you mean `other`?",
            "plugin `json-map`: the setting `rest` has a value that is not known",
            "hint: write one of `\"drop\"`, `\"keep\"`",
            "plugin `json-map`: the setting `to` is missing in `rules.0`",
        ] {
            assert!(said.contains(words), "`{words}` is not said: {said}");
        }
    }
}

#[tokio::test]
async fn an_environment_gives_values_that_the_process_can_change() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("out", "", "").replace("path = \"out\"", "path = \"${env:FOLDER}\""));
    let without = project.portway(&["validate"]).await;
    assert!(without.stdout.contains("`${env:FOLDER}` has no value"), "{without:?}");
    fs::create_dir(project.path().join("environments")).unwrap();
    project.write("environments/test.toml", "FOLDER = \"out\"\n");
    let with = project.portway(&["validate", "--env", "test"]).await;
    assert_eq!(with.code, Some(0), "{with:?}");
    let unknown = project.portway(&["validate", "--env", "prod"]).await;
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(unknown.stdout.contains("environments/prod.toml: cannot be read"), "{unknown:?}");
    project.write("environments/test.toml", "PORTWAY_SECRET_T = \"x\"\n");
    let secret = project.portway(&["validate", "--env", "test"]).await;
    assert!(secret.stdout.contains("environments/test.toml:1:1: a secret does not belong"), "{secret:?}");
}

#[tokio::test]
async fn commands_find_the_engine_of_the_environment_they_are_given() {
    let project = Project::new("[store]\npath = \"${env:DATA}/portway.db\"\n");
    fs::create_dir(project.path().join("environments")).unwrap();
    project.write("environments/north.toml", "DATA = \"north\"\n");
    let status = project.portway(&["status", "--env", "north"]).await;
    assert_eq!(status.code, Some(4), "{status:?}");
    assert!(status.stderr.contains("/north"), "it looks elsewhere: {status:?}");
}

/// A certificate that holds so many days and a half from now on, and its key.
fn write_pair(project: &Project, days: i64) {
    let mut params = CertificateParams::new(vec!["lab".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "lab");
    let now = SystemTime::now();
    let span = Duration::from_secs(days.unsigned_abs() * 86_400 + 43_200);
    params.not_before = (now - Duration::from_secs(400 * 86_400)).into();
    params.not_after = if days < 0 { now - span } else { now + span }.into();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    project.write("cert.pem", &certificate.pem());
    project.write("key.pem", &key.serialize_pem());
}

#[tokio::test]
async fn certificates_are_judged_by_their_days_and_their_key() {
    let project = Project::new("");
    project.mllp("lab", "tls = { certificate = \"cert.pem\", key = \"key.pem\" }\n", &to_file("out", "", ""));
    write_pair(&project, 100);
    let good = project.portway(&["validate"]).await;
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(!good.stdout.contains("warning"), "{good:?}");

    write_pair(&project, 10);
    let soon = project.portway(&["validate"]).await;
    assert_eq!(soon.code, Some(0), "a warning is no problem: {soon:?}");
    assert!(soon.stdout.contains("warning: interfaces/lab.toml:5:"), "{soon:?}");
    assert!(soon.stdout.contains("expires in 10 days"), "{soon:?}");
    assert!(soon.stdout.contains("no problems, 1 warning"), "{soon:?}");
    let json = project.portway(&["validate", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["warnings"][0]["code"], "certificate-expires", "{json}");
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(0), "{json}");

    write_pair(&project, -3);
    let expired = project.portway(&["validate"]).await;
    assert_eq!(expired.code, Some(3), "{expired:?}");
    assert!(expired.stdout.contains("expired 3 days ago"), "{expired:?}");

    write_pair(&project, 100);
    project.write("key.pem", &KeyPair::generate().unwrap().serialize_pem());
    let other = project.portway(&["validate"]).await;
    assert_eq!(other.code, Some(3), "{other:?}");
    assert!(other.stdout.contains("certificate") && other.stdout.contains("cannot be used"), "{other:?}");
}

#[tokio::test]
async fn certificates_that_are_shown_to_peers_are_judged_as_those_of_listeners() {
    let project = Project::new("");
    let destination = "[[destination]]\nname = \"ehr\"\n[destination.sender]\nplugin = \"mllp\"\n\
         [destination.sender.grants.peer]\ntype = \"tcp\"\nhost = \"127.0.0.1\"\nport = 1\n\
         tls = { certificate = \"cert.pem\", key = \"key.pem\" }\n";
    project.mllp("lab", "", destination);
    let validate = async || project.portway(&["validate"]).await;
    let missing = validate().await;
    assert_eq!(missing.code, Some(3), "{missing:?}");
    for what in ["the certificate", "the key"] {
        assert!(missing.stdout.contains(&format!("cannot read {what}")), "{what}: {missing:?}");
    }
    write_pair(&project, 100);
    let good = validate().await;
    assert!(good.code == Some(0) && !good.stdout.contains("warning"), "{good:?}");
    write_pair(&project, 10);
    let soon = validate().await;
    assert!(soon.code == Some(0) && soon.stdout.contains("expires in 10 days"), "{soon:?}");
    write_pair(&project, -3);
    let expired = validate().await;
    assert!(expired.code == Some(3) && expired.stdout.contains("expired 3 days ago"), "{expired:?}");
    write_pair(&project, 100);
    project.write("key.pem", &KeyPair::generate().unwrap().serialize_pem());
    let other = validate().await;
    assert!(other.code == Some(3) && other.stdout.contains("cannot be used"), "{other:?}");
    project.write("key.pem", "no key\n");
    let unreadable = validate().await;
    assert!(unreadable.code == Some(3) && unreadable.stdout.contains("as PEM"), "{unreadable:?}");
}

#[tokio::test]
async fn a_folder_that_a_source_is_granted_has_to_exist() {
    let project = Project::new("");
    let source = "[source]\nplugin = \"file\"\nsettings = { after = \"delete\" }\n\
         grants.inbox = { type = \"folder\", path = \"arrivals\" }\n";
    project.interface("files", &format!("{source}{}", to_file("out", "", "")));
    let refused = project.portway(&["validate"]).await;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.stdout.contains("there is no folder") && refused.stdout.contains("arrivals"),
        "{refused:?}"
    );
}
