//! HTTP sources: several interfaces on one port, answers after the commit, who may send.

use std::net::SocketAddr;

use super::Project;
use super::peer::{free_port, post};
use super::project::{StoreKind, to_file};

on_both_stores!(interfaces_share_a_port_by_their_paths, what_was_answered_is_there_after_a_kill,);

fn source(address: SocketAddr, path: &str, more: &str) -> String {
    format!("[source]\nplugin = \"http\"\nlisten = \"{address}\"\npath = \"{path}\"\n{more}\n")
}

async fn interfaces_share_a_port_by_their_paths(store: StoreKind) {
    let (project, address) = (Project::on(store, ""), free_port());
    project.write("secrets.toml", "TOKEN = \"t0ken\"\n");
    std::fs::set_permissions(
        project.path().join("secrets.toml"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let auth =
        "settings = { split = \"json-array\" }\nauth = { type = \"bearer\", token = \"${secret:TOKEN}\" }";
    project.interface("orders", &(source(address, "/orders", auth) + &to_file("orders", "", "")));
    project.interface("hooks", &(source(address, "/hooks/*", "") + &to_file("hooks", "", "")));
    let mut engine = project.run().await;
    let token = "Authorization: Bearer t0ken\r\n";
    let (status, body) = post(address, "/orders", token, "[{\"a\":1}, {\"a\":2}]").await;
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, answer["ids"].as_array().map(Vec::len)), (202, Some(2)), "{body}");
    assert_eq!(post(address, "/orders", "", "[1]").await.0, 401);
    assert_eq!(post(address, "/orders", token, "[1,").await.0, 400);
    assert_eq!(post(address, "/hooks/github?x=1", "", "hello").await.0, 202);
    assert_eq!(post(address, "/elsewhere", "", "hello").await.0, 404);
    engine.sent("orders", "orders", 2).await;
    engine.sent("hooks", "hooks", 1).await;
    let orders = std::fs::read_to_string(project.path().join("out/orders")).unwrap();
    assert_eq!(orders, "{\"a\":1}\n{\"a\":2}\n");
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_runs() {
    let (project, address) = (Project::new(""), free_port());
    project.interface("a", &source(address, "/same", ""));
    project.interface("b", &source(address, "/same", ""));
    project.interface("c", &source(address, "/other", "connections_max = 7"));
    project.interface("d", "[source]\nplugin = \"http\"\n");
    project.interface("e", "[source]\nplugin = \"file\"\nlisten = \"127.0.0.1:1\"\n");
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    for said in [
        "takes the path `/same`",
        "with other settings",
        "source `http` has no address to listen on",
        "`listen` has no effect on a poll-source such as `file`",
        "needs a grant for its slot `inbox`",
    ] {
        assert!(validated.stdout.contains(said), "{said}: {validated:?}");
    }
}

async fn what_was_answered_is_there_after_a_kill(store: StoreKind) {
    let (project, address) = (Project::on(store, ""), free_port());
    project.interface("hooks", &(source(address, "/*", "") + &to_file("hooks", "", "")));
    let mut engine = project.run().await;
    let mut answered = 0;
    for round in 0..4 {
        let senders = (0..8).map(|sender| async move {
            let mut count = 0;
            for number in 0..20 {
                let body = format!("{round}-{sender}-{number}");
                count += usize::from(post(address, "/", "", &body).await.0 == 202);
            }
            count
        });
        answered += futures::future::join_all(senders).await.iter().sum::<usize>();
        engine.kill();
        engine = project.run().await;
    }
    engine.drained("hooks", "hooks").await;
    let text = std::fs::read_to_string(project.path().join("out/hooks")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((answered, lines.len()), (4 * 8 * 20, 4 * 8 * 20));
}
