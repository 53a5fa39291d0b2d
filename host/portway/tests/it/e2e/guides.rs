//! The guide to answering requests: the component that it shows is the one that runs. Its other commands
//! are run with those of all guides.

use std::net::SocketAddr;
use std::path::Path;

use super::Project;
use super::peer::{free_port, get};
use super::project::test_component;

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
    assert_eq!(block(&guide, "`quotes/src/lib.rs`:"), code, "the guide shows another component");
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
}
