//! The file source: every record once, whatever happens to the engine or to the file.

use std::fs;
use std::time::Duration;

use portway_model::MessageId;
use portway_store::ListMessages;

use super::project::{StoreKind, to_file};
use super::{Project, until};

on_both_stores!(
    a_file_of_300_000_rows_is_stored_row_by_row_once_over_kills,
    a_file_that_cannot_be_read_goes_aside_and_others_go_on,
    a_schedule_runs_and_is_skipped_while_a_message_waits,
);

const ROWS: usize = 300_000;
/// Kills in the middle of the file.
const KILLS: usize = 6;

fn project(store: StoreKind, settings: &str, destinations: &str) -> Project {
    let project = Project::on(store, "");
    for folder in ["in", "done", "failed"] {
        fs::create_dir(project.path().join(folder)).unwrap();
    }
    let grant =
        |slot: &str, path: &str| format!("grants.{slot} = {{ type = \"folder\", path = \"{path}\" }}\n");
    let grants = [grant("inbox", "in"), grant("done", "done"), grant("failed", "failed")].concat();
    let source = format!("[source]\nplugin = \"file\"\nsettings = {{ {settings} }}\n{grants}");
    project.interface("files", &format!("{source}{destinations}"));
    project
}

fn file_names(project: &Project, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(project.path().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The bodies of all messages, in the order of their numbers.
async fn bodies(project: &Project) -> Vec<String> {
    let store = project.open_store().await;
    let mut list = ListMessages { limit: 500, ..ListMessages::default() };
    let mut ids: Vec<MessageId> = Vec::new();
    loop {
        let page = store.list_messages(&list).await.unwrap();
        ids.extend(page.items.iter().map(|message| message.id));
        list.before = page.next;
        if list.before.is_none() {
            break;
        }
    }
    ids.reverse();
    let mut bodies = Vec::with_capacity(ids.len());
    for ids in ids.chunks(1_000) {
        let loaded = store.load_messages(ids).await.unwrap();
        bodies.extend(loaded.iter().map(|message| String::from_utf8(message.body.to_vec()).unwrap()));
    }
    bodies
}

async fn a_file_of_300_000_rows_is_stored_row_by_row_once_over_kills(store: StoreKind) {
    let settings = "split = \"csv\", header = \"left-out\", attributes = \"none\", settle = \"0ms\", interval = \"20ms\"";
    let project = project(store, settings, "");
    let mut text = String::from("id,note\r\n");
    for row in 0..ROWS {
        text.push_str(&format!("{row},\"row, {row}\"\r\n"));
    }
    project.write("rows.csv", &text);
    fs::rename(project.path().join("rows.csv"), project.path().join("in/rows.csv")).unwrap();
    let mut engine = project.run().await;
    for kill in 1..=KILLS {
        // Each life gets a part of the way.
        let part = ROWS as u64 / (KILLS as u64 + 2);
        engine.until_status("rows are stored", |status| (status.intake.stored >= part).then_some(())).await;
        engine.kill();
        assert_eq!(file_names(&project, "in"), ["rows.csv"], "kill {kill}");
        engine = project.run().await;
    }
    until("the file is moved", async || (file_names(&project, "done") == ["rows.csv"]).then_some(())).await;
    engine.stop().await;
    let stored = bodies(&project).await;
    assert_eq!(stored.len(), ROWS);
    for (row, body) in stored.iter().enumerate() {
        assert_eq!(*body, format!("{row},\"row, {row}\""));
    }
}

async fn a_file_that_cannot_be_read_goes_aside_and_others_go_on(store: StoreKind) {
    let settings = "split = \"json-array\", after_failure = \"move\", settle = \"0ms\", interval = \"20ms\"";
    let project = project(store, settings, &to_file("out", "", ""));
    let put = |name: &str, text: &str| {
        project.write(name, text);
        fs::rename(project.path().join(name), project.path().join("in").join(name)).unwrap();
    };
    put("bad.json", "[{\"id\":1},{\"id\":2},oops");
    put("good.json", "[{\"id\":3}]");
    let mut engine = project.run().await;
    engine.sent("files", "out", 3).await;
    until("both are moved", async || {
        (file_names(&project, "failed") == ["bad.json"] && file_names(&project, "done") == ["good.json"])
            .then_some(())
    })
    .await;
    let status = engine.status().await;
    let notices = &status.interfaces[0].notices;
    assert!(notices.iter().any(|notice| notice.code == "invalid-json"), "{notices:?}");
    let out = fs::read_to_string(project.path().join("out/out")).unwrap();
    assert_eq!(out, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
}

/// About the folder: it stores a message, as others here do on both stores.
#[tokio::test]
async fn a_folder_that_is_gone_is_said_and_found_again() {
    let project =
        project(StoreKind::Sqlite, "settle = \"0ms\", interval = \"20ms\"", &to_file("out", "", ""));
    let mut engine = project.run().await;
    let inbox = project.path().join("in");
    fs::rename(&inbox, project.path().join("away")).unwrap();
    let reason = engine
        .until_status("the source waits", |status| status.interfaces[0].poll.as_ref()?.reason.clone())
        .await;
    assert!(!reason.is_empty());
    fs::rename(project.path().join("away"), &inbox).unwrap();
    project.write("in/x.txt", "hello");
    engine.sent("files", "out", 1).await;
}

async fn a_schedule_runs_and_is_skipped_while_a_message_waits(store: StoreKind) {
    let project = Project::on(store, "");
    let destination =
        to_file("out", "retry = { attempts = 0, first_wait = \"1h\", longest_wait = \"1h\" }", "");
    project.interface(
        "tick",
        &format!("[source]\nplugin = \"schedule\"\nsettings = {{ every = \"1s\" }}\n{destination}"),
    );
    // Nothing can be delivered while a folder stands where the file belongs.
    fs::create_dir(project.path().join("out/out")).unwrap();
    let mut engine = project.run().await;
    let stored = |status: &portway_admin::views::Status| {
        let notices = &status.interfaces[0].notices;
        let skipped = notices.iter().find(|notice| notice.code == "run-skipped")?;
        (skipped.count >= 2).then_some(status.intake.stored)
    };
    assert_eq!(engine.until_status("runs are skipped", stored).await, 1);
    fs::remove_dir(project.path().join("out/out")).unwrap();
    let resumed = project.portway(&["resume", "tick", "out"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let line = until("a run after the skipped ones", async || {
        let text = fs::read_to_string(project.path().join("out/out")).ok()?;
        text.lines().nth(1).map(str::to_owned)
    })
    .await;
    assert!(line.starts_with("{\"scheduled\":\""), "{line}");
    tokio::time::timeout(Duration::from_secs(60), engine.stop()).await.unwrap();
}
