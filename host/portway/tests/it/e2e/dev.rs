//! `portway dev`: what is saved is taken in, and what does not change goes on.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, test_kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::project::{test_component, to_file};
use super::{Engine, Peer, Project, message, until};

/// The engine of `portway dev`, which answers like any other.
async fn dev(project: &Project, more: &[&str]) -> Engine {
    let line = [&["dev"], more].concat();
    let mut engine = project.start_by(&line, |mut command| {
        // As much as it shows by itself.
        command.env_remove("PORTWAY_LOG");
        command
    });
    engine.wait_ready(project.path()).await;
    engine
}

/// The same, where lines can be typed.
async fn dev_at_a_terminal(project: &Project) -> Engine {
    let mut engine = project.start_by(&["dev", "--on-removed", "ask"], |mut command| {
        command.stdin(Stdio::piped());
        command
    });
    engine.wait_ready(project.path()).await;
    engine
}

/// Puts a file in place at once, as programs save it.
fn save(project: &Project, file: &str, bytes: &[u8]) {
    let path = project.path().join(file);
    let temporary = path.with_extension("new");
    fs::File::create(&temporary).unwrap().write_all(bytes).unwrap();
    fs::rename(temporary, path).unwrap();
}

async fn has_destination(engine: &mut Engine, interface: &str, names: &[&str]) {
    let what = format!("{interface} delivers to {names:?}");
    engine
        .until_status(&what, |status| {
            let found = status.interfaces.iter().find(|found| found.name == interface)?;
            let own: Vec<_> = found.destinations.iter().map(|one| one.name.as_str()).collect();
            (own == names).then_some(())
        })
        .await;
}

fn sequences(project: &Project, file: &str) -> Vec<u64> {
    project.delivered(file).into_iter().map(|one| one.sequence).collect()
}

fn range(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_comes_changes_and_goes_while_others_keep_their_connections() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("archive", "order = \"strict\"", ""));
    project.mllp("ward", "", &to_file("chart", "order = \"strict\"", ""));
    let mut engine = dev(&project, &[]).await;
    assert!(engine.log().contains("lab: listens on 127.0.0.1:"), "{}", engine.log());
    let mut ward = Peer::connect(engine.address("ward").await).await;
    let mut lab = Peer::connect(engine.address("lab").await).await;
    ward.send_all("PWward", 1..=5).await;
    lab.send_all("PWlab", 1..=5).await;

    project.mllp("new", "", &to_file("new", "", ""));
    has_destination(&mut engine, "new", &["new"]).await;
    Peer::connect(engine.address("new").await).await.send_all("PWnew", 1..=3).await;
    engine.sent("new", "new", 3).await;

    let two = to_file("archive", "order = \"strict\"", "") + &to_file("copy", "order = \"strict\"", "");
    project.mllp("lab", "", &two);
    has_destination(&mut engine, "lab", &["archive", "copy"]).await;
    lab.send_all("PWlab", 6..=9).await;
    engine.sent("lab", "copy", 4).await;
    engine.sent("lab", "archive", 9).await;

    project.mllp("lab", "idle_timeout = \"1h\"\n", &two);
    engine.until_log("lab: listens on").await;
    fs::remove_file(project.path().join("interfaces/new.toml")).unwrap();
    engine.until_log("new: removed").await;
    ward.send_all("PWward", 6..=10).await;
    engine.sent("ward", "chart", 10).await;
    assert_eq!(sequences(&project, "chart"), range(1, 10));
    assert_eq!(sequences(&project, "archive"), range(1, 9));
    let status = engine.status().await;
    assert!(status.interfaces.iter().all(|interface| interface.name != "new"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_problems_is_shown_and_what_runs_goes_on() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("archive", "", ""));
    let mut engine = dev(&project, &[]).await;
    let mut lab = Peer::connect(engine.address("lab").await).await;
    project.write("interfaces/lab.toml", "\n[source]\nplugin = \"mlpp\"\n");
    engine.until_log("interfaces/lab.toml:3:10: there is no source `mlpp`").await;
    engine.until_log("hint: did you mean `mllp`?").await;
    engine.until_log("1 problem: what runs goes on as it was").await;
    lab.send_all("PWlab", 1..=3).await;
    // Another file is taken in all the same.
    project.mllp("ward", "", &to_file("chart", "", ""));
    has_destination(&mut engine, "ward", &["chart"]).await;
    // What only a plugin knows of its settings.
    let bad = to_file("archive", "", "").replace("mode = \"append\"", "mode = \"append\", nonsense = 1");
    project.mllp("lab", "", &bad);
    engine.until_log("nonsense").await;
    project.write("portway.toml", "[admin]\nlisten = \"127.0.0.1:0\"\n[limits]\nnonsense = 1\n");
    engine.until_log("everything goes on as it was").await;
    lab.send_all("PWlab", 4..=6).await;
    project.write("portway.toml", "[admin]\nlisten = \"127.0.0.1:0\"\n[limits]\nruns_max = 7\n");
    engine.until_log("[limits] of portway.toml changed: that is taken when").await;
    project.mllp("lab", "", &to_file("archive", "", ""));
    engine.until_log("no problems any more").await;
    lab.send_all("PWlab", 7..=9).await;
    engine.sent("lab", "archive", 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_cannot_run_yet_runs_when_it_is_mended() {
    let project = Project::new("");
    project.write("portway.toml", "nonsense");
    project.mllp("lab", "", &to_file("archive", "", ""));
    project.write("interfaces/bad.toml", "nonsense");
    let mut engine = project.start_by(&["dev"], |command| command);
    engine.until_log("nothing runs until they are mended").await;
    project.write("portway.toml", "[admin]\nlisten = \"127.0.0.1:0\"\n");
    engine.wait_ready(project.path()).await;
    engine.until_log("their interfaces are left out until they are mended").await;
    Peer::connect(engine.address("lab").await).await.send_all("PWlab", 1..=3).await;
    engine.sent("lab", "archive", 3).await;
}

/// A destination `held` for which two messages wait, beside `free`.
async fn with_waiting(project: &Project, engine: &mut Engine) -> Peer {
    project.portway(&["destination", "pause", "lab/held", "--reason", "to see"]).await;
    let mut lab = Peer::connect(engine.address("lab").await).await;
    lab.send_all("PWlab", 1..=2).await;
    engine.sent("lab", "free", 2).await;
    lab
}

fn both(more: &str) -> String {
    to_file("free", more, "") + &to_file("held", "", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_a_removed_destination_are_kept_and_go_on_when_it_is_back() {
    let project = Project::new("");
    project.mllp("lab", "", &both(""));
    let mut engine = dev(&project, &[]).await;
    let mut lab = with_waiting(&project, &mut engine).await;
    project.mllp("lab", "", &to_file("free", "", ""));
    engine.until_log("lab → held: 2 deliveries are kept in the store until it comes back").await;
    lab.send_all("PWlab", 3..=3).await;
    engine.sent("lab", "free", 3).await;
    project.mllp("lab", "", &both(""));
    engine.until_log("lab → held is back: 2 deliveries that waited go on").await;
    project.portway(&["destination", "resume", "lab/held", "--reason", "to see"]).await;
    lab.send_all("PWlab", 4..=4).await;
    engine.sent("lab", "held", 3).await;
    assert_eq!(sequences(&project, "held"), [1, 2, 4]);
    assert_eq!(sequences(&project, "free"), [1, 2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_a_removed_interface_are_dismissed_if_the_option_says_so() {
    let project = Project::new("");
    project.mllp("lab", "", &both(""));
    project.mllp("ward", "", &to_file("chart", "", ""));
    let mut engine = dev(&project, &["--on-removed", "dismiss"]).await;
    with_waiting(&project, &mut engine).await;
    fs::remove_file(project.path().join("interfaces/lab.toml")).unwrap();
    engine.until_log("lab → held: 2 deliveries dismissed").await;
    project.mllp("lab", "", &both(""));
    has_destination(&mut engine, "lab", &["free", "held"]).await;
    assert_eq!(engine.destination("lab", "held").await.waiting, 0);
    let shown = project.portway(&["message", "show", "1"]).await;
    assert!(shown.stdout.contains("dismissed"), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_it_asks_and_undo_changes_nothing() {
    let project = Project::new("");
    project.mllp("lab", "", &both(""));
    let mut engine = dev_at_a_terminal(&project).await;
    let mut lab = with_waiting(&project, &mut engine).await;
    project.mllp("lab", "", &to_file("free", "", ""));
    engine.until_log("lab → held is removed, and 2 deliveries wait for it").await;
    engine.type_line("what?");
    engine.until_log("write d, k or u").await;
    engine.type_line("u");
    engine.until_log("lab goes on as it was, until its file changes again").await;
    lab.send_all("PWlab", 3..=3).await;
    engine.sent("lab", "free", 3).await;
    assert_eq!(engine.destination("lab", "held").await.waiting, 3);
    project.mllp("lab", "", &to_file("free", "run_max = 7", ""));
    engine.until_log("lab → held is removed, and 3 deliveries wait for it").await;
    engine.type_line("d");
    engine.until_log("lab → held: 3 deliveries dismissed").await;
    has_destination(&mut engine, "lab", &["free"]).await;
}

/// The same component with another digest: a section of its own, which nobody reads.
fn other(component: &[u8]) -> Vec<u8> {
    [component, &[0, 5, 4, b't', b'e', b's', b't']].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_exchanged_while_messages_flow_without_loss_or_another_order() {
    let project = Project::new("[plugins.own]\npath = \"own.wasm\"\n");
    let first = fs::read(test_component("hostile-transform")).unwrap();
    let second = other(&first);
    save(&project, "own.wasm", &first);
    let own = "[[destination.transform]]\nplugin = \"own\"\nsettings = { deed = \"trap\", on = \"PWbad\" }\n";
    project.mllp("lab", "", &to_file("archive", "order = \"strict\"", own));
    let mut engine = dev(&project, &[]).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let address = engine.address("lab").await;
    let flows = tokio::spawn({
        let is_over = is_over.clone();
        async move {
            let mut peer = Peer::connect(address).await;
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed) {
                sent += 1;
                peer.send_all("PWlab", sent..=sent).await;
            }
            sent
        }
    });
    for (count, component) in [(1, &second), (2, &first), (3, &second)] {
        save(&project, "own.wasm", component);
        engine.until_logged("lab: changed: changed archive", count).await;
    }
    save(&project, "own.wasm", b"this is no component");
    engine.until_log("plugin `own` is no WebAssembly component").await;
    engine.until_log("what runs goes on as it was").await;
    is_over.store(true, Ordering::Relaxed);
    let sent = flows.await.unwrap();
    engine.sent("lab", "archive", sent).await;
    assert_eq!(sequences(&project, "archive"), range(1, sent));
    // Its faults are shown where they happen, with the line in the plugin.
    let mut peer = Peer::connect(address).await;
    assert_eq!(peer.send(&message("PWbad", 1)).await, "AA");
    engine.until_log("lab → archive (own): plugin `own` trapped").await;
    engine.until_log("plugins/hostile/src/lib.rs:").await;
    engine.until_log("this message is poison to me").await;
    engine.until_log("lab → archive: quarantined: plugin `own` trapped").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_built_when_its_sources_change() {
    let plugins = "[plugins.own]\npath = \"own.wasm\"\nbuild = \"sh build.sh\"\nwatch = [\"src\"]\n";
    let project = Project::new(plugins);
    fs::create_dir(project.path().join("src")).unwrap();
    let component = test_component("hostile-transform").display().to_string();
    let copy = |from: &str| format!("cat {from:?} > own.new && mv own.new own.wasm\n");
    project.write("build.sh", &copy(&component));
    let own = "[[destination.transform]]\nplugin = \"own\"\nsettings = { deed = \"trap\", on = \"PWbad\" }\n";
    project.mllp("lab", "", &to_file("archive", "", own));
    project.mllp("ward", "", &to_file("chart", "", ""));
    let mut engine = project.start_by(&["dev"], |command| command);
    // It was never built.
    engine.until_log("plugin own: built in").await;
    engine.wait_ready(project.path()).await;
    has_destination(&mut engine, "lab", &["archive"]).await;
    let mut lab = Peer::connect(engine.address("lab").await).await;
    lab.send_all("PWlab", 1..=2).await;
    project.write(
        "build.sh",
        "echo 'error: a name is not known' >&2\necho '  --> src/lib.rs:3:9' >&2\nexit 101\n",
    );
    project.write("src/lib.rs", "let x = y;");
    engine.until_log("--> src/lib.rs:3:9").await;
    engine.until_log("plugin own: its build failed; what runs goes on").await;
    lab.send_all("PWlab", 3..=4).await;
    save(&project, "other.wasm", &other(&fs::read(&component).unwrap()));
    project.write("build.sh", &copy("other.wasm"));
    project.write("src/lib.rs", "let x = 1;");
    engine.until_log("lab: changed: changed archive").await;
    lab.send_all("PWlab", 5..=6).await;
    engine.sent("lab", "archive", 6).await;
    // A build that runs when all ends is ended with it.
    project.write("build.sh", "echo $$ > number; echo begun; exec sleep 1000\n");
    project.write("src/lib.rs", "let x = 2;");
    engine.until_log("begun").await;
    engine.stop().await;
    let number = fs::read_to_string(project.path().join("number")).unwrap();
    let build = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
    until("the build has ended", async || test_kill_process(build).is_err().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_stops_it_in_order_and_its_temporary_store_is_gone() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("archive", "", ""));
    let mut engine = dev(&project, &[]).await;
    let store = engine.status().await.store.path;
    assert!(
        Path::new(&store).is_file() && !store.starts_with(&project.path().display().to_string()),
        "{store}"
    );
    Peer::connect(engine.address("lab").await).await.send_all("PWlab", 1..=5).await;
    // What waits is gone with the temporary store.
    engine.sent("lab", "archive", 5).await;
    engine.signal(Signal::INT);
    assert!(engine.ended().await.success(), "{}", engine.log());
    assert_eq!(project.delivered("archive").len(), 5);
    assert!(!Path::new(&store).exists() && !Path::new(&store).parent().unwrap().exists());
    // A folder that is named is kept.
    let kept = project.path().join("kept");
    let mut engine = dev(&project, &["--store", &kept.display().to_string()]).await;
    Peer::connect(engine.address("lab").await).await.send_all("PWlab", 6..=6).await;
    engine.stop().await;
    assert!(kept.join("portway.db").is_file());
}

async fn post(connection: &mut TcpStream, path: &str) -> String {
    let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|part| part == b"\r\n\r\n") {
        assert!(connection.read_buf(&mut answer).await.unwrap() > 0, "it closed the connection");
    }
    let head = String::from_utf8_lossy(&answer).into_owned();
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let end = head.find("\r\n\r\n").unwrap() + 4 + length.unwrap_or(0);
    while answer.len() < end {
        assert!(connection.read_buf(&mut answer).await.unwrap() > 0);
    }
    head.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn interfaces_that_share_a_listener_change_without_its_connections_being_closed() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let source = |address: SocketAddr, path: &str| {
        format!("[source]\nplugin = \"http\"\nlisten = \"{address}\"\npath = \"{path}\"\n")
    };
    let project = Project::new("");
    project.interface("one", &(source(free, "/one") + &to_file("one", "", "")));
    project.interface("two", &(source(free, "/two") + &to_file("two", "", "")));
    let mut engine = dev(&project, &[]).await;
    let mut connection = TcpStream::connect(free).await.unwrap();
    assert_eq!(post(&mut connection, "/one").await, "202");
    assert_eq!(post(&mut connection, "/two").await, "202");
    project.interface("two", &(source(free, "/other") + &to_file("two", "", "")));
    engine.until_log("two: listens on").await;
    engine.until_log("changed: its source").await;
    assert_eq!(post(&mut connection, "/one").await, "202");
    // A request that nobody takes ends its connection.
    let elsewhere = async |path| post(&mut TcpStream::connect(free).await.unwrap(), path).await;
    assert_eq!(elsewhere("/two").await, "404");
    assert_eq!(post(&mut connection, "/other").await, "202");
    fs::remove_file(project.path().join("interfaces/two.toml")).unwrap();
    engine.until_log("two: removed").await;
    assert_eq!(elsewhere("/other").await, "404");
    assert_eq!(post(&mut connection, "/one").await, "202");
    engine.sent("one", "one", 3).await;
    // An address that another program has is no reason to end.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    project.interface("three", &(source(taken.local_addr().unwrap(), "/x") + &to_file("three", "", "")));
    engine.until_log("interface `three` cannot listen").await;
    assert_eq!(post(&mut connection, "/one").await, "202");
}
