//! State of plugins in a real engine: kept with what was delivered, over restarts and kills.

use super::Project;
use super::peer::post;
use super::project::{StoreKind, test_component, to_file};

on_both_stores!(
    each_message_in_order_counts_once_over_restarts_and_kills,
    an_operator_sees_what_is_kept_and_removes_it,
    what_is_quarantined_leaves_nothing_and_what_is_filtered_does,
    in_one_run_nobody_builds_on_what_is_dropped,
    many_at_once_in_one_lane_see_each_other_and_in_one_commit_none_is_lost,
);

/// One destination whose transform keeps state and does what messages say.
fn project(store: StoreKind, order: &str) -> Project {
    let path = test_component("puppet-transform");
    let project = Project::on(store, &format!("[plugins.puppet]\npath = {:?}\n", path.display().to_string()));
    let puppet = "[[destination.transform]]\nplugin = \"puppet\"\ngrants.memory = { type = \"state\" }\n";
    let source = "[source]\nplugin = \"http\"\nlisten = \"127.0.0.1:0\"\npath = \"/in\"\n";
    let destination =
        to_file("out", &format!("order = \"{order}\"\nretry = {{ first_wait = \"10ms\" }}"), puppet);
    project.interface("orders", &format!("{source}\n{destination}"));
    project
}

fn written(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(project.path().join("out/out")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn each_message_in_order_counts_once_over_restarts_and_kills(store: StoreKind) {
    let project = project(store, "strict");
    let mut sent = 0;
    for round in 0..3 {
        let mut engine = project.run().await;
        let address = engine.address("orders").await;
        for _ in 0..5 {
            assert_eq!(post(address, "/in", "", "count n").await.0, 202);
            sent += 1;
        }
        engine.sent("orders", "out", 5).await;
        if round == 1 { engine.kill() } else { engine.stop().await }
    }
    let counted = written(&project);
    let numbers: Vec<u64> = counted.iter().map(|line| line.parse().unwrap()).collect();
    // The newest few may come again after a kill; then they count anew from what was stored.
    assert!(numbers.len() >= sent, "{numbers:?}");
    assert!(numbers.is_sorted_by(|a, b| *b <= a + 1), "{numbers:?}");
    assert_eq!(*numbers.last().unwrap(), sent as u64, "{numbers:?}");
}

async fn an_operator_sees_what_is_kept_and_removes_it(store: StoreKind) {
    let project = project(store, "strict");
    let mut engine = project.run().await;
    let address = engine.address("orders").await;
    for _ in 0..3 {
        assert_eq!(post(address, "/in", "", "count n").await.0, 202);
    }
    engine.sent("orders", "out", 3).await;
    let listed = project.portway(&["state", "list", "orders/out"]).await;
    assert!(listed.stdout.lines().any(|line| line.split_whitespace().eq(["puppet", "n"])), "{listed:?}");
    let shown = project.portway(&["state", "show", "orders/out", "n"]).await;
    assert_eq!(shown.stdout, "3", "{shown:?}");
    let json = project.portway(&["--json", "state", "show", "orders/out", "n", "--space", "puppet"]).await;
    assert!(json.stdout.contains(r#""value":"3","encoding":"text""#), "{json:?}");
    let removed = project.portway(&["state", "remove", "orders/out", "n", "--reason", "miscounted"]).await;
    assert_eq!(removed.stdout.trim(), "`n` of puppet is removed at out of orders", "{removed:?}");
    for verb in [&["show"][..], &["remove", "--reason", "again"]] {
        let gone = project.portway(&[&["state"], verb, &["orders/out", "n"]].concat()).await;
        assert!(gone.code == Some(5) && gone.stderr.contains("no-state"), "{gone:?}");
    }
    let actions = project.portway(&["destination", "actions", "orders/out"]).await;
    for words in ["remove-state", "`n` of puppet: miscounted"] {
        assert!(actions.stdout.contains(words), "{actions:?}");
    }
    // The plugin goes on from nothing, also after a restart.
    engine.stop().await;
    let mut engine = project.run().await;
    let address = engine.address("orders").await;
    assert_eq!(post(address, "/in", "", "count n").await.0, 202);
    engine.sent("orders", "out", 1).await;
    assert_eq!(written(&project), ["1", "2", "3", "1"]);
}

async fn what_is_quarantined_leaves_nothing_and_what_is_filtered_does(store: StoreKind) {
    let project = project(store, "strict");
    let mut engine = project.run().await;
    let address = engine.address("orders").await;
    for commands in
        ["count n", "count n\nquarantine", "count n\nfilter", "count n", "count n\ntrap", "count n"]
    {
        assert_eq!(post(address, "/in", "", commands).await.0, 202);
    }
    engine.sent("orders", "out", 3).await;
    assert_eq!(written(&project), ["1", "3", "4"]);
    let quarantined = engine.status().await.interfaces[0].destinations[0].quarantined;
    assert_eq!(quarantined, 2);
}

async fn in_one_run_nobody_builds_on_what_is_dropped(store: StoreKind) {
    let project = project(store, "strict");
    let mut engine = project.run().await;
    let address = engine.address("orders").await;
    let paused = project.portway(&["destination", "pause", "orders/out", "--reason", "to gather"]).await;
    assert_eq!(paused.code, Some(0), "{paused:?}");
    let ends = ["", "\nquarantine", "", "\ntrap", "", "\nfilter", "\nquarantine", ""];
    for end in ends {
        assert_eq!(post(address, "/in", "", &format!("count n{end}")).await.0, 202);
    }
    let resumed = project.portway(&["destination", "resume", "orders/out"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let found = engine.sent("orders", "out", 4).await;
    assert_eq!((found.quarantined, found.counts.filtered), (3, 1), "{found:?}");
    assert_eq!(written(&project), ["1", "2", "3", "5"], "the filtered one is the fourth");
}

async fn many_at_once_in_one_lane_see_each_other_and_in_one_commit_none_is_lost(store: StoreKind) {
    let project = project(store, "strict");
    let mut engine = project.run().await;
    let address = engine.address("orders").await;
    let posts = (0..40).map(|_| post(address, "/in", "", "count n"));
    for (status, _) in futures::future::join_all(posts).await {
        assert_eq!(status, 202);
    }
    engine.sent("orders", "out", 40).await;
    let expected: Vec<String> = (1..=40).map(|number| number.to_string()).collect();
    assert_eq!(written(&project), expected);
}

#[tokio::test]
async fn two_uses_with_one_name_and_a_source_with_state_are_refused() {
    let project = project(StoreKind::Sqlite, "strict");
    let puppet = "[[destination.transform]]\nplugin = \"puppet\"\ngrants.memory = { type = \"state\" }\n";
    let source =
        "[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:0\"\ngrants.memory = { type = \"state\" }\n";
    project.interface("twice", &format!("{source}{}", to_file("out", "", &puppet.repeat(2))));
    let refused = project.portway(&["validate"]).await;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    for words in ["two plugins of destination `out` keep a state `puppet`", "has no slot `memory`"] {
        assert!(refused.stdout.contains(words), "{words}: {refused:?}");
    }
}
