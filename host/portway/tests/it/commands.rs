//! The commands against a real API on loopback, in front of an engine that only remembers.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use clap::Parser;
use expect_test::{Expect, expect};
use portway::cli::Cli;
use portway::commands::dispatch;
use portway::output::{Exit, Format, Output};
use portway_admin::views::{self, Time};
use portway_admin::{
    Action, AdminServer, AdminSettings, BulkAction, ConfirmRetention, Control, ControlError,
    ControlErrorKind, DestinationAction, DrainOrder, Edit, LaneAction, RemoveState, params,
};
use portway_model::{DeliveryState, MessageId, MessageStatus, Timestamp};

/// What a command printed.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a command line: how it ended, stdout, stderr.
async fn portway(line: &[&str]) -> (Exit, String, String) {
    let cli = Cli::try_parse_from([&["portway"], line].concat()).unwrap();
    let (stdout, stderr) = (Buffer::default(), Buffer::default());
    let mut output = Output::to(cli.format(), Box::new(stdout.clone()), Box::new(stderr.clone()));
    let exit = dispatch(cli.command, &mut output, async |_| {}).await;
    (exit, stdout.text(), stderr.text())
}

/// A project with an engine that answers.
struct Running {
    dir: tempfile::TempDir,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start() -> Running {
        let dir = project();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        let settings = AdminSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            connections_max: 4,
            data_dir: dir.path().join("data"),
            message_bytes_max: 1_000,
        };
        let server = AdminServer::bind(settings, Arc::new(Engine)).await.unwrap();
        Running { dir, task: tokio::spawn(server.run(std::future::pending())) }
    }

    async fn portway(&self, line: &[&str]) -> (Exit, String, String) {
        let dir = self.dir.path().to_str().unwrap();
        portway(&[line, &["--project", dir]].concat()).await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("interfaces")).unwrap();
    std::fs::write(dir.path().join("portway.toml"), "").unwrap();
    dir
}

fn time(millis: u64) -> Time {
    Time(Timestamp(millis))
}

/// One quarantined message, number 7, and a destination that is stopped.
struct Engine;

#[async_trait]
impl Control for Engine {
    async fn health(&self) -> views::Health {
        views::Health { state: views::EngineState::Running, intake_open: true }
    }

    async fn status(&self) -> Result<views::Status, ControlError> {
        Err(ControlError::new(ControlErrorKind::Unavailable, "store-unavailable", "the store cannot be read"))
    }

    async fn list_messages(&self, list: params::ListMessages) -> Result<views::MessagePage, ControlError> {
        let items = if list.interface.as_deref() == Some("lab & co") { vec![message()] } else { Vec::new() };
        Ok(views::MessagePage { items, next: Some(MessageId(7)) })
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<views::MessageDetail>, ControlError> {
        let detail = views::MessageDetail {
            message: message(),
            attributes: vec![("hl7.type".into(), "ORU^R01".into())],
            deliveries: vec![views::Delivery {
                destination: "api".into(),
                state: DeliveryState::Quarantined,
                lane: 3,
                round: 1,
                attempts: 1,
                due_at: None,
                finished_at: Some(time(4_000)),
                reason: Some("http-400: \u{1b}[2Jno such patient".into()),
            }],
            attempts: vec![views::Attempt {
                destination: "api".into(),
                round: 0,
                number: 1,
                started_at: time(2_000),
                took_ms: 5,
                outcome: "quarantined".into(),
                text: "http-400: no such patient".into(),
            }],
            outputs: vec![views::Output {
                destination: "api".into(),
                round: 0,
                attempt: 1,
                saved_at: time(2_000),
                key: None,
                attributes: Vec::new(),
                body: "kept".into(),
                body_bytes: 4,
            }],
            actions: vec![views::ActionRecord {
                at: time(3_000),
                destination: None,
                action: "resend".into(),
                author: "ann".into(),
                reason: "patient added".into(),
            }],
            edits: vec![MessageId(9)],
        };
        Ok((id == MessageId(7)).then_some(detail))
    }

    async fn get_output(&self, _: MessageId, _: &str) -> Result<Bytes, ControlError> {
        Ok(Bytes::from_static(b"made"))
    }

    async fn get_body(&self, id: MessageId) -> Result<Option<Bytes>, ControlError> {
        Ok((id == MessageId(7)).then(|| Bytes::from_static(b"MSH|\rPID|\xff\r")))
    }

    async fn act(&self, action: Action) -> Result<views::ActionDone, ControlError> {
        if action.reason == "nothing fits" {
            let text = "none of the message's deliveries can be sent again";
            return Err(ControlError::new(ControlErrorKind::Conflict, "nothing-to-do", text));
        }
        let destinations = vec![action.destination.unwrap_or_else(|| "api".into())];
        Ok(views::ActionDone { message: action.message, action: action.kind.as_str().into(), destinations })
    }

    async fn act_on_destination(&self, _: DestinationAction) -> Result<(), ControlError> {
        Ok(())
    }

    async fn list_state(
        &self,
        _: &str,
        _: &str,
        list: params::ListState,
    ) -> Result<views::StatePage, ControlError> {
        let space = list.space.unwrap_or_else(|| "counter".into());
        let key = views::StateKey { space, key: format!("{}1", list.prefix) };
        Ok(views::StatePage { keys: vec![key.clone()], next: Some(key) })
    }

    async fn get_state(
        &self,
        _: &str,
        _: &str,
        state: params::GetState,
    ) -> Result<views::StateValue, ControlError> {
        let space = state.space.unwrap_or_else(|| "counter".into());
        let (value, encoding) = ("YQBi".into(), "base64".into());
        Ok(views::StateValue { space, key: state.key, bytes: 3, value, encoding })
    }

    async fn remove_state(&self, remove: RemoveState) -> Result<views::StateRemoved, ControlError> {
        let RemoveState { interface, destination, space, key, .. } = remove;
        let space = space.unwrap_or_else(|| "counter".into());
        Ok(views::StateRemoved { interface, destination, space, key })
    }

    async fn list_destination_actions(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Vec<views::DestinationActionRecord>, ControlError> {
        Ok(Vec::new())
    }

    async fn edit(&self, edit: Edit) -> Result<views::Edited, ControlError> {
        Ok(views::Edited { message: MessageId(43), of: edit.message })
    }

    async fn act_all(&self, _: BulkAction) -> Result<Vec<views::BulkItem>, ControlError> {
        Ok(Vec::new())
    }

    async fn act_on_lane(&self, action: LaneAction) -> Result<views::ActionDone, ControlError> {
        let destinations = vec![action.destination];
        Ok(views::ActionDone { message: MessageId(42), action: "dismiss".into(), destinations })
    }

    async fn list_retention(&self) -> Result<views::Retentions, ControlError> {
        Ok(retentions())
    }

    async fn confirm_retention(
        &self,
        confirm: ConfirmRetention,
    ) -> Result<views::RetentionConfirmed, ControlError> {
        let ConfirmRetention { interface, author, reason } = confirm;
        assert!(!author.is_empty());
        let in_force = reason != "later";
        Ok(views::RetentionConfirmed { interface, to: window("1w"), in_force })
    }

    async fn drain(&self, _: DrainOrder) -> Result<(), ControlError> {
        Ok(())
    }

    async fn backup(&self, target: &Path) -> Result<views::Backup, ControlError> {
        assert!(target.is_absolute());
        let name = target.file_name().unwrap().to_string_lossy().into_owned();
        Ok(views::Backup { file: name, bytes: 3 << 20, took_ms: 1_500 })
    }

    async fn list_refusals(&self) -> Result<Vec<views::Refused>, ControlError> {
        Ok(Vec::new())
    }
}

fn message() -> views::Message {
    views::Message {
        id: MessageId(7),
        interface: "lab".into(),
        status: MessageStatus::Quarantined,
        received_at: time(1_000),
        stored_at: time(1_001),
        occurred_at: None,
        key: Some("P1".into()),
        dedupe: None,
        body_bytes: 11,
        origin: Some(MessageId(5)),
        origin_kind: Some("route".into()),
    }
}

fn check(found: &str, wanted: Expect) {
    wanted.assert_eq(found);
}

#[tokio::test]
async fn an_upgrade_of_a_store_that_is_not_there_is_nothing_to_do() {
    let project = project();
    let dir = project.path().to_str().unwrap();
    let (exit, stdout, stderr) = portway(&["upgrade", "--check", "--project", dir]).await;
    assert_eq!((exit, stderr.as_str()), (Exit::Done, ""));
    assert!(stdout.ends_with(": there is no store yet; `portway run` makes it\n"), "{stdout}");
    let (exit, stdout, _) = portway(&["--json", "upgrade", "--check", "--project", dir]).await;
    assert_eq!(exit, Exit::Done);
    assert!(stdout.contains("\"present\":null") && stdout.contains("\"to_do\":false"), "{stdout}");
}

#[tokio::test]
async fn a_message_is_shown_with_all_that_is_known_of_it() {
    let running = Running::start().await;
    let (exit, stdout, _) = running.portway(&["message", "show", "7"]).await;
    assert_eq!(exit, Exit::Done);
    check(
        &stdout,
        expect![[r#"
            message 7 of lab: quarantined
              received 1970-01-01T00:00:01.000Z, stored 1970-01-01T00:00:01.001Z
              key P1
              from route of 5
              11 B: `portway message show 7 --body`
              corrected as message 9
              hl7.type: ORU^R01
              → api: quarantined (1 attempt, round 1) at 1970-01-01T00:00:04.000Z: http-400: \u{1b}[2Jno such patient
                  1970-01-01T00:00:02.000Z attempt 0.1: quarantined after 5 ms: http-400: no such patient
                  given to the sender for attempt 0.1: 4 B: `portway message show 7 --output api`
              1970-01-01T00:00:03.000Z resend by ann at every destination: patient added
        "#]],
    );
    let (_, stdout, _) = running.portway(&["message", "list", "--interface", "lab & co"]).await;
    check(
        &stdout,
        expect![[r#"
        ID  RECEIVED                  INTERFACE  STATUS       KEY  SIZE  FROM
        7   1970-01-01T00:00:01.000Z  lab        quarantined  P1   11 B  route of 5
    "#]],
    );
}

#[tokio::test]
async fn retention_is_shown_with_what_waits_and_what_stays() {
    let running = Running::start().await;
    let (exit, stdout, _) = running.portway(&["retention"]).await;
    assert_eq!(exit, Exit::Done);
    check(
        &stdout,
        expect![[r#"
            INTERFACE                 KEPT                 CHANGE                               WAITS                                              OLDEST    KEPT BEYOND
            lab                       7w                   -                                    1w since 2 d 0 h, removes at least 1,234 messages  40 d 0 h  2 pending, 1 quarantined
            ward                      1w                   to 7w since 1 d 0 h, 1 message left  3w for the change since 1 d 0 h                    -         -
            old (not in the project)  7w with quarantined  -                                    -                                                  -         -

            confirm it: portway retention confirm lab

            the clock is 1 d 1 h ahead of the age of messages; it is believed in 1 h 0 min, if it goes on so
        "#]],
    );
    let (_, stdout, _) = running.portway(&["retention", "--json"]).await;
    let read: views::Retentions = serde_json::from_str(&stdout).unwrap();
    assert_eq!(read.interfaces.len(), 3);
}

#[tokio::test]
async fn a_body_is_written_byte_for_byte() {
    let running = Running::start().await;
    let client = portway::client::Client::of_project(running.dir.path()).unwrap();
    assert_eq!(client.get_body(MessageId(7)).await.unwrap().as_ref(), b"MSH|\rPID|\xff\r");
    let (_, stdout, _) = running.portway(&["message", "show", "7", "--body"]).await;
    assert_eq!(stdout, "MSH|\rPID|\u{fffd}\r");
    let (_, stdout, _) = running.portway(&["message", "show", "7", "--output", "api"]).await;
    assert_eq!(stdout, "made");
}

#[tokio::test]
async fn what_keeps_traffic_from_starting_has_a_page() {
    let (exit, _, stderr) = portway(&["gen", "--keys", "1", "--connections", "2"]).await;
    assert!(exit == Exit::Failed && stderr.contains("`portway explain too-few-keys`"), "{stderr}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (exit, _, stderr) = portway(&["sink", "--listen", &address]).await;
    assert!(exit == Exit::Failed && stderr.contains("`portway explain cannot-listen`"), "{stderr}");
}

#[tokio::test]
async fn a_value_that_a_plugin_keeps_is_written_byte_for_byte() {
    let running = Running::start().await;
    let (_, stdout, _) = running.portway(&["state", "show", "lab/api", "n"]).await;
    assert_eq!(stdout, "a\0b");
    let (_, stdout, stderr) = running.portway(&["state", "list", "lab/api", "--prefix", "m"]).await;
    check(
        &stdout,
        expect![[r#"
            SPACE    KEY
            counter  m1
        "#]],
    );
    assert!(stderr.contains("`--space counter --after m1` shows them"), "{stderr}");
}

#[tokio::test]
async fn actions_print_what_they_did() {
    let running = Running::start().await;
    for (line, wanted) in [
        (&["message", "resend", "7"][..], "message 7 is sent again to api\n"),
        (
            &["message", "dismiss", "7", "--reason", "test", "--destination", "x"],
            "message 7 is dismissed at x\n",
        ),
        (&["resume", "lab", "api"], "api of lab goes on\n"),
        (&["retention", "confirm", "lab"], "lab keeps its messages for 1w now; older ones go\n"),
        (
            &["retention", "confirm", "lab", "--reason", "later"],
            "lab keeps its messages for 1w when the change that runs is over\n",
        ),
        (&["backup", "copy.db"], "copy.db: 3.0 MB in 1 s\n"),
    ] {
        let (exit, stdout, stderr) = running.portway(line).await;
        assert_eq!((exit, stdout.as_str(), stderr.as_str()), (Exit::Done, wanted, ""), "{line:?}");
    }
    let (_, stdout, _) = running.portway(&["message", "resend", "7", "--json"]).await;
    assert_eq!(stdout, "{\"message\":7,\"action\":\"resend\",\"destinations\":[\"api\"]}\n");
}

#[tokio::test]
async fn what_the_engine_refuses_is_said_with_its_code() {
    let running = Running::start().await;
    for (line, wanted) in [
        (&["message", "show", "8"][..], "error: there is no message `8` (no-message, request "),
        (
            &["message", "resend", "7", "--reason", "nothing fits"],
            "error: none of the message's deliveries can be",
        ),
        (&["status"], "error: the store cannot be read (store-unavailable, request "),
    ] {
        let (exit, stdout, stderr) = running.portway(line).await;
        assert_eq!((exit, stdout.as_str()), (Exit::Refused, ""), "{stderr}");
        assert!(stderr.starts_with(wanted), "{stderr}");
        // The engine of this test has codes of its own, too, which no page explains.
        let is_explained = stderr.ends_with("\n  hint: `portway explain no-message` says more\n");
        assert_eq!(is_explained, line == ["message", "show", "8"], "{stderr}");
    }
}

#[tokio::test]
async fn without_an_engine_the_commands_say_how_to_start_one() {
    let running = Running::start().await;
    let dir = running.dir.path().to_str().unwrap().to_owned();
    running.task.abort();
    let closed = async || portway(&["resume", "a", "b", "--project", &dir]).await;
    // The task ends at its next turn.
    let mut ended = closed().await;
    while ended.0 != Exit::NotRunning {
        tokio::task::yield_now().await;
        ended = closed().await;
    }
    assert!(
        ended.2.contains("no engine answers at `127.0.0.1:")
            && ended.2.contains("hint: start it")
            && ended.2.ends_with("\n  hint: `portway explain not-running` says more\n"),
        "{}",
        ended.2
    );
    let never = project();
    let (exit, _, stderr) = portway(&["status", "--project", never.path().to_str().unwrap()]).await;
    assert_eq!(exit, Exit::NotRunning);
    assert!(stderr.contains("error: no engine has run in `"), "{stderr}");
}

#[tokio::test]
async fn validate_prints_every_problem_and_judges() {
    let dir = project();
    let path = dir.path().to_str().unwrap().to_owned();
    let (exit, stdout, _) = portway(&["validate", "--project", &path]).await;
    assert_eq!(
        (exit, stdout.as_str()),
        (Exit::Done, format!("{path}: 0 interfaces, 0 destinations, no problems\n").as_str())
    );
    std::fs::write(dir.path().join("portway.toml"), "[stor]\n[limits]\nruns_max = 0\n").unwrap();
    let (exit, stdout, stderr) = portway(&["validate", "--project", &path]).await;
    assert_eq!(exit, Exit::Problems);
    assert_eq!(stderr, "hint: `portway explain CODE` says more of `outside-limits`, `unknown-key`\n");
    assert!(
        stdout.contains("portway.toml:1:2: unknown key `stor`\n  hint: did you mean `store`?\n"),
        "{stdout}"
    );
    assert!(stdout.ends_with(": 2 problems\n"), "{stdout}");
    let (_, stdout, stderr) = portway(&["validate", "--json", "--project", &path]).await;
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((json["problems"][0]["code"].as_str(), stderr.as_str()), (Some("unknown-key"), ""));
    assert_eq!(
        (json["problems"][1]["line"].as_u64(), json["problems"][1]["column"].as_u64()),
        (Some(3), Some(12))
    );
}

#[tokio::test]
async fn a_code_is_explained_from_the_page_in_the_binary() {
    let (exit, stdout, stderr) = portway(&["explain", "store-in-use"]).await;
    let page = include_str!("../../../../docs/reference/errors/store-in-use.md");
    assert_eq!((exit, stdout.as_str(), stderr.as_str()), (Exit::Done, page, ""));
    let (exit, stdout, _) = portway(&["explain", "503"]).await;
    assert_eq!((exit, stdout.starts_with("# http-status\n")), (Exit::Done, true), "{stdout}");
    let (_, stdout, _) = portway(&["explain", "store-in-use", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["code"], "store-in-use");
    assert_eq!(
        json["summary"],
        "The store is in use by other engines, so this one did not start, or the tables were not upgraded."
    );
    assert_eq!(json["text"], page);
}

#[tokio::test]
async fn without_a_code_every_code_is_listed() {
    let (exit, stdout, _) = portway(&["explain"]).await;
    assert_eq!(exit, Exit::Done);
    assert!(stdout.starts_with("CODE "), "{stdout}");
    assert_eq!(stdout.lines().count(), 1 + portway_model::code::all().count());
    let (_, stdout, _) = portway(&["explain", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let codes = json.as_array().unwrap().iter().filter_map(|page| page["code"].as_str());
    assert!(codes.eq(portway::error_pages::list().map(|page| page.code)), "{stdout}");
}

#[tokio::test]
async fn an_unknown_code_fails_with_what_may_be_meant() {
    for (code, wanted) in [
        (
            "store-inuse",
            "error: there is no page about `store-inuse`\n  hint: did you mean `store-in-use`?\n",
        ),
        (
            "a\u{1b}[2J",
            "error: there is no page about `a\\u{1b}[2J`\n  hint: `portway explain` lists every code; \
             a plugin or a peer may have others\n",
        ),
    ] {
        let (exit, stdout, stderr) = portway(&["explain", code]).await;
        assert_eq!((exit, stdout.as_str(), stderr.as_str()), (Exit::Failed, "", wanted));
    }
}

#[tokio::test]
async fn a_file_is_checked_and_its_ledger_written() {
    let dir = tempfile::tempdir().unwrap();
    let (file, ledger) = (dir.path().join("r.ndjson"), dir.path().join("ledger"));
    std::fs::write(&file, "{\"id\":\"PWa-1\"}\n{\"id\":\"PWa-2\"}\n{\"id\":\"PWa-2\"}\n").unwrap();
    let line = ["sink", "--file", file.to_str().unwrap(), "--ledger", ledger.to_str().unwrap()];
    let (exit, stdout, _) = portway(&line).await;
    assert_eq!(exit, Exit::Done);
    assert_eq!(stdout, "2 messages of 1 key received: 1 repeated, 0 out of order, 0 missing\n");
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "PWa 1\nPWa 2\nPWa 2\n");
    std::fs::write(&file, "{\"id\":\"PWa-1\"}\n{\"id\":\"PWa-3\"}\n").unwrap();
    let (exit, stdout, _) = portway(&line).await;
    assert_eq!((exit, stdout.contains("missing: PWa-2")), (Exit::Failed, true), "{stdout}");
}

#[tokio::test]
async fn the_status_page_names_what_needs_a_person() {
    let mut text = portway::commands::status::show_status(&status());
    // What depends on the clock of the moment.
    text = text.lines().filter(|line| !line.contains("oldest")).collect::<Vec<_>>().join("\n");
    check(
        &text,
        expect![[r#"
            portway 0.1.0 is running for 2 h 2 min: /p
            intake CLOSED: the disk is full (full); 12,345 stored, 2 duplicate, 4 not stored (full)
            commits 999: mean 1.23 ms, p99 4.50 ms, busy 12 %, 1 FAILED
            store /p/data/portway.db: log 4.0 MB, 0 B free; memory 60.0 MB
              the database has a cold
            retention: 2 interfaces waiting for `portway retention confirm`; the clock is 1 d 1 h away from the age of messages

            lab: mllp on 127.0.0.1:2575 with TLS, 2 of 100 connections
              15 messages, 1 refused, 0 controls; 16 settled, 16 answered
              refused 2 × not-allowed
              notice 1 × end-without-cr: at byte 12
              → api (http): 3 waiting; 10 sent (p50 1.5 ms, p99 20.2 ms from receipt), 1 filtered, 3 of them dropped, 4 retried
                  STOPPED: three messages in a row used up their fuel (runaway)
                    `portway resume lab api` starts it again
                  lane 7: message 42, 2 attempts: http-503: try later
                    waits for `portway lane retry lab/api` or `lane skip`
                  and 8 more blocked lanes
                  2 QUARANTINED: `portway message list --interface lab --destination api --status quarantined`

            plugin portway:my-map 1.2.0 from /p/plugins/my_map.wasm"#]],
    );
    let json = serde_json::to_string(&status()).unwrap();
    assert_eq!(serde_json::from_str::<views::Status>(&json).unwrap(), status());
    assert_eq!(Output::of_process(Format::Json).format(), Format::Json);
}

fn status() -> views::Status {
    views::Status {
        engine: views::Engine {
            version: "0.1.0".into(),
            project: "/p".into(),
            state: views::EngineState::Running,
            started_at: time(0),
            uptime_s: 7_322,
            process_id: 1,
        },
        intake: views::Intake {
            closed: Some(views::Reason { code: "full".into(), text: "the disk is full".into() }),
            waiting: 0,
            stored: 12_345,
            duplicates: 2,
            refused: vec![views::Count { reason: "full".into(), count: 4 }],
        },
        drain: None,
        traces: None,
        commits: views::Commits {
            commits: 999,
            strict: 999,
            messages: 12_345,
            results: 9_000,
            failures: 1,
            mean_ms: 1.234,
            p50_ms: 1.0,
            p99_ms: 4.5,
            busy_ratio: 0.123,
            busy_ms: 1_232.7,
        },
        store: views::Store {
            path: "/p/data/portway.db".into(),
            free_bytes: Some(0),
            log_bytes: 4 << 20,
            pruned: 0,
            notes: vec!["the database has a cold".into()],
            away: None,
        },
        retention: views::RetentionCounts { changing: 0, unconfirmed: 2, clock_off_s: 90_000 },
        memory: views::Memory { resident_bytes: Some(60 << 20), waiting: 3, body_bytes: 9, runs: 0 },
        interfaces: vec![interface()],
        engines: Vec::new(),
        plugins: vec![views::Plugin {
            name: "portway:my-map".into(),
            version: "1.2.0".into(),
            kind: "transform".into(),
            digest: "00".into(),
            path: Some("/p/plugins/my_map.wasm".into()),
            replaces: false,
        }],
    }
}

fn window(tier: &str) -> views::Window {
    views::Window { retention: tier.into(), quarantined: "keep".into() }
}

/// Before now, in days.
fn days_ago(days: u64) -> Time {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    time(now.as_millis() as u64 - days * 86_400_000)
}

/// One interface whose shorter retention waits, one that is changing, and one that is gone.
fn retentions() -> views::Retentions {
    let quiet = views::Retention {
        interface: "old".into(),
        configured: None,
        applied: views::Window { quarantined: "purge".into(), ..window("7w") },
        change: None,
        waiting: None,
        confirmed: None,
        oldest: None,
        kept: None,
    };
    let removes = Some(views::Counted { count: 1_234, at_least: true });
    let shorter = views::Retention {
        interface: "lab".into(),
        configured: Some(window("1w")),
        waiting: Some(views::WaitingRetention {
            to: window("1w"),
            since: days_ago(2),
            needs_confirmation: true,
            removes,
        }),
        oldest: Some(days_ago(40)),
        kept: Some(views::KeptBeyond { pending: 2, quarantined: 1, counted_at: days_ago(0) }),
        applied: window("7w"),
        ..quiet.clone()
    };
    let left = Some(views::Counted { count: 1, at_least: false });
    let changing = views::Retention {
        interface: "ward".into(),
        configured: Some(window("3w")),
        applied: window("1w"),
        change: Some(views::RetentionChange { to: window("7w"), since: days_ago(1), left }),
        waiting: Some(views::WaitingRetention {
            to: window("3w"),
            since: days_ago(1),
            needs_confirmation: false,
            removes: None,
        }),
        ..quiet.clone()
    };
    let clock = Some(views::ClockDoubt { off_s: 90_000, ahead: true, believed_in_s: 3_600 });
    views::Retentions { age_now: days_ago(0), clock, interfaces: vec![shorter, changing, quiet] }
}

fn interface() -> views::Interface {
    let stopped = views::Destination {
        name: "api".into(),
        to: "http".into(),
        order: "key".into(),
        state: views::DestinationState::Stopped,
        why: Some(views::Reason {
            code: "runaway".into(),
            text: "three messages in a row used up their fuel".into(),
        }),
        since: None,
        until: None,
        pause: None,
        waiting: 3,
        oldest: None,
        quarantined: 2,
        runs: 0,
        lanes_blocked: 9,
        blocked: vec![views::BlockedLane {
            lane: 7,
            message: 42,
            why: "http-503: try later".into(),
            attempts: 2,
            due_at: None,
        }],
        counts: views::DeliveryCounts { sent: 10, filtered: 1, quarantined: 2, retried: 4, dropped: 3 },
        rate: Some(views::Rate { limit: "10/s".into(), burst: 1, over: "drop".into(), waits: false }),
        latency: views::DeliveryLatency { count: 10, p50_ms: 1.5, p99_ms: 20.25 },
    };
    views::Interface {
        name: "lab".into(),
        listener: Some(views::Listener {
            plugin: "mllp".into(),
            address: "127.0.0.1:2575".into(),
            tls: true,
            connections: 2,
            connections_max: 100,
            accepted: 6,
        }),
        poll: None,
        items: views::Items { messages: 15, refused: 1, controls: 0, settled: 16, answered: 16 },
        refusals: vec![views::Count { reason: "not-allowed".into(), count: 2 }],
        notices: vec![views::Notice { code: "end-without-cr".into(), count: 1, text: "at byte 12".into() }],
        source: views::SourceCounts::default(),
        plugins: Vec::new(),
        destinations: vec![stopped],
    }
}
