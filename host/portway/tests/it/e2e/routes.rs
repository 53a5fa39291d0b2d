//! Routes between interfaces: exactly once, also over a sudden end.

use super::project::{StoreKind, to_file};
use super::{Peer, Project};

on_both_stores!(a_route_stores_each_message_exactly_once_also_over_kills);

fn project(store: StoreKind) -> Project {
    let project = Project::on(store, "");
    project.mllp("first", "", "[[destination]]\nname = \"on\"\nroute = \"second\"\n");
    project.interface("second", &to_file("out", "", ""));
    project
}

/// How many messages the second interface has, by asking for its pages.
async fn stored_in_second(project: &Project) -> Vec<String> {
    let (mut keys, mut before) = (Vec::new(), String::new());
    loop {
        let mut line = vec!["message", "list", "--interface", "second", "--limit", "500", "--json"];
        if !before.is_empty() {
            line.extend(["--before", &before]);
        }
        let listed = project.portway(&line).await;
        let page: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        for item in page["items"].as_array().unwrap() {
            assert_eq!(item["origin_kind"], "route", "{item}");
            keys.push(format!("{}", item["origin"]));
        }
        match page["next"].is_null() {
            true => return keys,
            false => before = page["next"].to_string(),
        }
    }
}

async fn a_route_stores_each_message_exactly_once_also_over_kills(store: StoreKind) {
    let project = project(store);
    let mut engine = project.run().await;
    let mut sent = 0;
    for _ in 0..4 {
        let mut peer = Peer::connect(engine.address("first").await).await;
        peer.send_all("PWroute", sent + 1..=sent + 150).await;
        sent += 150;
        // At whatever moment of the routing this is.
        engine.kill();
        engine = project.run().await;
    }
    engine.drained("first", "on").await;
    engine.drained("second", "out").await;
    let mut origins = stored_in_second(&project).await;
    assert_eq!(origins.len() as u64, sent);
    origins.sort();
    origins.dedup();
    assert_eq!(origins.len() as u64, sent, "a message was routed twice");
    // Behind the route it is at least once, and in order.
    let mut delivered: Vec<_> = project.delivered("out").into_iter().map(|one| one.sequence).collect();
    assert!(delivered.len() as u64 >= sent);
    delivered.sort_unstable();
    delivered.dedup();
    assert_eq!(delivered, (1..=sent).collect::<Vec<_>>());
}

#[tokio::test]
async fn loops_and_unknown_targets_are_refused() {
    let project = project(StoreKind::Sqlite);
    project.interface("second", "[[destination]]\nname = \"back\"\nroute = \"first\"\n");
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    assert!(validated.stdout.contains("closes a loop: "), "{validated:?}");
    assert_eq!(project.portway(&["run"]).await.code, Some(3));
    project.interface("second", "[[destination]]\nname = \"back\"\nroute = \"secnd\"\n");
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    assert!(validated.stdout.contains("no interface `secnd` to route to"), "{validated:?}");
    assert!(validated.stdout.contains("second"), "no suggestion: {validated:?}");
}
