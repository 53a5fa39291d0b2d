//! Components that answer requests themselves, beside sources on the same port.

use std::net::SocketAddr;

use portway_admin::views::Status;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::peer::{Server, ask, free_port, get};
use super::project::{test_component, to_file};
use super::{Peer, Project, until};

/// The component that knows nothing of Portway.
fn foreign() -> String {
    let path = test_component("foreign-respond").display().to_string();
    format!("[plugins.foreign]\npath = {path:?}\n")
}

fn component(address: SocketAddr, path: &str, more: &str) -> String {
    format!("[source]\nplugin = \"foreign\"\nlisten = \"{address}\"\npath = \"{path}\"\n{more}\n")
}

#[tokio::test]
async fn a_component_shares_a_port_with_a_source_and_stores_nothing() {
    let (project, address) = (Project::new(&foreign()), free_port());
    let auth =
        "auth = { type = \"basic\", user = \"lab\", password = \"pw\" }\nsettings = { GREETING = \"hi\" }";
    project.interface("quotes", &component(address, "/quotes/*", auth));
    project.interface("hello", &component(address, "/*", "").replace("foreign", "respond-hello"));
    let source = format!("[source]\nplugin = \"http\"\nlisten = \"{address}\"\npath = \"/orders\"\n");
    project.interface("orders", &(source + &to_file("orders", "", "")));
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(0), "{validated:?}");
    let mut engine = project.run().await;
    let hello = r#"{"greeting":"hello","method":"GET","path":"/ward/3"}"#;
    assert_eq!(get(address, "/ward/3").await, (200, hello.to_owned()));
    assert_eq!(get(address, "/quotes/env").await.0, 401);
    let shown = "Authorization: Basic bGFiOnB3\r\n";
    let (status, echo) = ask(address, "PUT", "/quotes/echo", shown, "a body").await;
    assert_eq!((status, echo.as_str()), (200, "hello from afar"), "the path is the whole one");
    assert_eq!(ask(address, "POST", "/orders", "", "{}").await.0, 202);
    engine.sent("orders", "orders", 1).await;
    let status = engine.status().await;
    let found = |name: &str| status.interfaces.iter().find(|found| found.name == name).unwrap();
    let requests = |name: &str| {
        let source = &found(name).source;
        source.requests.iter().map(|count| (count.reason.clone(), count.count)).collect::<Vec<_>>()
    };
    assert_eq!(requests("hello"), [("2xx".to_owned(), 1)]);
    assert_eq!(requests("quotes"), [("2xx".to_owned(), 1), ("4xx".to_owned(), 1)]);
    let listed = project.portway(&["message", "list", "--json"]).await;
    let page: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
}

#[tokio::test]
async fn what_a_component_does_wrong_costs_its_request_and_nothing_else() {
    let limits =
        "[limits]\nfuel_per_message = 200000000\nmemory_bytes_max = \"24MB\"\ncall_timeout = \"1s\"\n";
    let (project, address) = (Project::new(&format!("{}{limits}", foreign())), free_port());
    project.interface("bad", &component(address, "/*", "response_bytes_max = \"64KB\""));
    project.mllp("neighbour", "", &to_file("good", "", ""));
    let mut engine = project.run().await;
    let mut neighbour = Peer::connect(engine.address("neighbour").await).await;
    let deeds = [
        ("/trap", 502, "plugin-trap"),
        ("/late-trap", 502, "plugin-trap"),
        ("/hoard", 502, "plugin-trap"),
        ("/spin", 502, "plugin-out-of-fuel"),
        ("/memory", 502, "plugin-out-of-memory"),
        ("/silent", 502, "plugin-lie"),
        ("/half", 502, "plugin-lie"),
        ("/big", 502, "plugin-lie"),
        ("/error", 502, "refused"),
        ("/sleep", 504, "plugin-timed-out"),
    ];
    for (number, (path, wanted, code)) in (1..).zip(deeds) {
        let (status, said) = get(address, path).await;
        assert_eq!(status, wanted, "{path}: {said}");
        assert!(said.contains(&format!("\"code\":\"{code}\"")), "{path}: {said}");
        assert!(!said.contains("poison"), "{said}");
        assert_eq!(get(address, "/").await.0, 200, "after {path}");
        neighbour.send_all("PWnext", [number]).await;
    }
    let status: Status = engine.status().await;
    let bad = status.interfaces.iter().find(|found| found.name == "bad").unwrap();
    for (_, _, code) in deeds {
        let count = bad.refusals.iter().find(|count| count.reason == code);
        assert!(count.is_some_and(|count| count.count >= 1), "{code} is not shown: {bad:#?}");
    }
    let shown = project.portway(&["status"]).await;
    assert!(shown.stdout.contains("plugin-out-of-fuel"), "{}", shown.stdout);
    engine.sent("neighbour", "good", deeds.len() as u64).await;
    assert!(engine.resident_bytes_max() < 700 << 20, "{} bytes", engine.resident_bytes_max());
}

#[tokio::test]
async fn a_component_asks_what_is_granted_with_the_hosts_credentials() {
    let server = Server::start(|_, _| "200 OK".to_owned()).await;
    let (project, address) = (Project::new(&foreign()), free_port());
    let url = format!("http://{}/v1", server.address);
    let grant = format!(
        "grants.people = {{ type = \"http\", url = \"{url}\", credentials = {{ type = \"bearer\", token = \"${{secret:TOKEN}}\" }} }}"
    );
    project.write("secrets.toml", "TOKEN = \"t0ken\"\n");
    std::fs::set_permissions(
        project.path().join("secrets.toml"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    project.interface("people", &component(address, "/*", &grant));
    let _engine = project.run().await;
    let (status, said) = get(address, &format!("/ask?{url}/people/7")).await;
    assert_eq!(status, 200);
    assert!(said.starts_with("200 "), "{said}");
    let (_, denied) = get(address, &format!("/ask?http://{}/v2", server.address)).await;
    assert_eq!(denied, "ErrorCode::HttpRequestDenied");
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].head.to_lowercase().contains("authorization: bearer t0ken"), "{}", asked[0].head);
}

#[tokio::test]
async fn a_stop_ends_kept_connections_and_nobody_listens_any_more() {
    let (project, address) = (Project::new(&foreign()), free_port());
    project.interface("web", &component(address, "/*", ""));
    let mut engine = project.run().await;
    let mut kept = TcpStream::connect(address).await.unwrap();
    kept.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    until("the first answer", async || {
        kept.read_buf(&mut bytes).await.unwrap();
        bytes.ends_with(b"hello from afar").then_some(())
    })
    .await;
    engine.stop().await;
    let mut rest = Vec::new();
    let _ = kept.read_to_end(&mut rest).await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn a_stop_finishes_what_was_begun_and_answers_503_to_what_comes_late() {
    let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", api.local_addr().unwrap());
    let (project, address) = (Project::new(&foreign()), free_port());
    let grant = format!("grants.people = {{ type = \"http\", url = \"{url}\" }}");
    project.interface("people", &component(address, "/*", &grant));
    let mut engine = project.run().await;
    // One request is begun: its component waits for the API. Another is not there as a whole.
    let asking = tokio::spawn(async move { get(address, &format!("/ask?{url}/people/7")).await });
    let (mut asked, _) = api.accept().await.unwrap();
    let mut late = TcpStream::connect(address).await.unwrap();
    late.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    let both = |status: &Status| {
        let listener = status.interfaces[0].listener.as_ref()?;
        (listener.connections == 2).then_some(())
    };
    engine.until_status("both connections are there", both).await;
    engine.status().await;
    engine.signal(Signal::TERM);
    until("nobody listens any more", async || TcpStream::connect(address).await.is_err().then_some(())).await;
    late.write_all(b"st: x\r\n\r\n").await.unwrap();
    let mut told = String::new();
    late.read_to_string(&mut told).await.unwrap();
    let told = told.to_lowercase();
    assert!(told.starts_with("http/1.1 503") && told.contains("retry-after: 5\r\n"), "{told}");
    assert!(told.contains("\"code\":\"stopped\""), "{told}");
    asked.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nAda").await.unwrap();
    assert_eq!(asking.await.unwrap(), (200, "200 Ada".to_owned()));
    assert!(engine.ended().await.success());
}

#[tokio::test]
async fn what_a_component_cannot_use_is_said_before_anything_runs() {
    let (project, address) = (Project::new(&foreign()), free_port());
    project.interface("a", &(component(address, "/a", "") + &to_file("lost", "", "")));
    let route = "[[destination]]\nname = \"on\"\nroute = \"a\"\n";
    project.mllp("b", "", route);
    project.interface("c", "[source]\nplugin = \"foreign\"\n");
    let folder = "grants.box = { type = \"folder\", path = \"out\" }";
    project.interface("d", &component(free_port(), "/d", folder));
    project.interface("e", &component(free_port(), "/e", "settings = { \"A=B\" = \"x\" }"));
    let hello = component(free_port(), "/f", "settings = { GRETING = \"x\" }");
    project.interface("f", &hello.replace("foreign", "respond-hello"));
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    for said in [
        "destination `lost` gets nothing: its source answers requests itself",
        "a route leads to interface `a`: its source answers requests itself",
        "source `foreign` has no address to listen on",
        "slot `box` of plugin `foreign` takes a grant of type `http`",
        "the setting `A=B` cannot be a variable of an environment",
        "unknown setting `GRETING`",
    ] {
        assert!(validated.stdout.contains(said), "{said}: {validated:?}");
    }
}

#[tokio::test]
async fn a_component_is_tried_and_tested_without_an_engine() {
    let project = Project::new(&foreign());
    let grant = "grants.people = { type = \"http\", url = \"https://people.example/v1\" }";
    project.interface("web", &component(free_port(), "/*", grant));
    project.write("ask.http", "GET /ask?https://people.example/v1/7\n\n");
    let file = project.path().join("ask.http");
    let tried = project.portway(&["try", "web", file.to_str().unwrap()]).await;
    assert_eq!(tried.code, Some(0), "{tried:?}");
    assert!(tried.stdout.contains("GET people:https://people.example/v1/7"), "{tried:?}");
    assert!(tried.stdout.contains("responded with 200: ErrorCode::HttpRequestDenied"), "{tried:?}");
    let case = project.path().join("tests/web/found");
    std::fs::create_dir_all(&case).unwrap();
    std::fs::copy(&file, case.join("request.http")).unwrap();
    std::fs::write(case.join("case.toml"), "[[answer]]\nbody = \"Ada\"\n").unwrap();
    let updated = project.portway(&["test", "--update"]).await;
    assert_eq!(updated.code, Some(0), "{updated:?}");
    let read = |file: &str| std::fs::read_to_string(case.join("expected").join(file)).unwrap();
    assert_eq!(read("source.txt"), "responded with 200: 200 Ada\n");
    assert!(read("source-request.http").starts_with("GET people:https://people.example/v1/7\n"));
}
