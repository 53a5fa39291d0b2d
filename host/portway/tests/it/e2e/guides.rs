//! The guides about HTTP: what they show is what runs.

use std::net::SocketAddr;
use std::path::Path;

use super::Project;
use super::project::test_component;
use super::respond::{ask, free_port, get};

fn guide(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The first block of code behind a line.
fn block(guide: &str, behind: &str) -> String {
    let (_, rest) = guide.split_once(&format!("\n{behind}\n")).unwrap_or_else(|| panic!("no `{behind}`"));
    let (_, rest) = rest.split_once("\n```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("\n```").unwrap().0.to_owned() + "\n"
}

/// Ports that are free, in place of those of the guide.
fn moved(text: &str, ports: &[(&str, SocketAddr)]) -> String {
    ports.iter().fold(text.to_owned(), |text, (port, address)| {
        text.replace(&format!("127.0.0.1:{port}"), &address.to_string())
    })
}

#[tokio::test]
async fn the_guide_to_answering_requests_works() {
    let guide = guide("answer-requests.md");
    let code = include_str!("../../../../../plugins/foreign/examples/quotes/component.rs");
    assert_eq!(block(&guide, "`src/lib.rs`:"), code, "the guide shows another component");
    let quotes = test_component("quotes").display().to_string();
    let (project, address) = (Project::new(&format!("[plugins.quotes]\npath = {quotes:?}\n")), free_port());
    for name in ["hello", "quotes"] {
        let text = block(&guide, &format!("`interfaces/{name}.toml`:"));
        project.interface(name, &moved(&text, &[("8080", address)]));
    }
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(0), "{validated:?}");
    let _engine = project.run().await;
    let hello = get(address, "/hello/ward/3").await;
    assert_eq!(hello, (200, r#"{"greeting":"good morning","method":"GET","path":"/hello/ward/3"}"#.into()));
    assert!(guide.contains(&hello.1));
    assert_eq!(get(address, "/quote?grams=500").await, (200, "300 cents\n".into()));
    assert_eq!(get(address, "/quote").await.0, 400);
    project.write("request.http", &block(&guide, "with `request.http`:"));
    let request = project.path().join("request.http");
    let tried = project.portway(&["try", "hello", request.to_str().unwrap()]).await;
    assert_eq!(tried.code, Some(0), "{tried:?}");
    assert!(tried.stdout.contains("responded with 200: {\"greeting\":\"good morning\""), "{tried:?}");
}

#[tokio::test]
async fn the_guide_to_calling_an_api_works() {
    let guide = guide("call-an-api.md");
    let (project, orders, wards) = (Project::new(""), free_port(), free_port());
    for name in ["wards", "orders"] {
        let text = block(&guide, &format!("`interfaces/{name}.toml`:"));
        project.interface(name, &moved(&text, &[("8080", orders), ("8081", wards)]));
    }
    project.write("secrets.toml", "WARDS = \"not-very-secret\"\n");
    std::fs::set_permissions(
        project.path().join("secrets.toml"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(0), "{validated:?}");
    let case = project.path().join("tests/orders/known");
    std::fs::create_dir_all(&case).unwrap();
    for file in ["input.json", "case.toml"] {
        let text = block(&guide, &format!("`tests/orders/known/{file}`:"));
        std::fs::write(case.join(file), text).unwrap();
    }
    let updated = project.portway(&["test", "--update"]).await;
    assert_eq!(updated.code, Some(0), "{updated:?}");
    let request = std::fs::read_to_string(case.join("expected/archive/request.http")).unwrap();
    assert!(request.starts_with("GET api:/patients/P1\n"), "{request}");
    assert_eq!(project.portway(&["test"]).await.code, Some(0));

    let mut engine = project.run().await;
    assert_eq!(get(wards, "/v1/patients/P1").await.0, 401);
    let json = "Content-Type: application/json\r\n";
    let order = r#"{"patient": "P1", "code": "GLU"}"#;
    assert!(guide.contains(order));
    assert_eq!(ask(orders, "POST", "/orders", json, order).await.0, 202);
    engine.sent("orders", "archive", 1).await;
    let archived = std::fs::read_to_string(project.path().join("out/ward-3.ndjson")).unwrap();
    assert_eq!(archived, format!("{order}\n"));
}
