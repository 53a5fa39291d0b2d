//! What an operator does to a running engine, over the command line.

use portway_admin::views::DestinationState;

use super::project::to_file;
use super::{Peer, Project};

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_deliveries_over_a_restart_and_resume_lets_them_go_in_order() {
    let project = Project::new("");
    project.mllp("lab", "", &(to_file("held", "", "") + &to_file("free", "", "")));
    let mut engine = project.run().await;
    let paused =
        project.portway(&["destination", "pause", "lab/held", "--reason", "the peer is rebuilt"]).await;
    assert_eq!(paused.code, Some(0), "{paused:?}");
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWpause", 1..=20).await;
    engine.sent("lab", "free", 20).await;
    engine.stop().await;
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWpause", 21..=30).await;
    engine.sent("lab", "free", 10).await;
    let found = engine.destination("lab", "held").await;
    assert_eq!((found.state, found.waiting, found.counts.sent), (DestinationState::Paused, 30, 0));
    let status = project.portway(&["status"]).await.stdout;
    assert!(status.contains("PAUSED for ") && status.contains(" by tester: the peer is rebuilt"), "{status}");
    let resumed = project.portway(&["destination", "resume", "lab/held", "--reason", "it is back"]).await;
    assert_eq!(resumed.stdout.trim(), "held of lab goes on", "{resumed:?}");
    engine.sent("lab", "held", 30).await;
    let order: Vec<_> = project.delivered("held").into_iter().map(|one| one.sequence).collect();
    assert_eq!(order, (1..=30).collect::<Vec<_>>());
    let actions = project.portway(&["destination", "actions", "lab/held"]).await.stdout;
    let lines: Vec<_> = actions.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(lines, ["ACTION", "resume", "pause"], "{actions}");
    for wrong in [["destination", "resume", "lab"], ["destination", "resume", "lab/held/x"]] {
        assert_eq!(project.portway(&wrong).await.code, Some(2));
    }
    let unknown = project.portway(&["destination", "pause", "lab/nope", "--reason", "x"]).await;
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_refuses_new_messages_says_what_is_left_and_ends_the_process() {
    let project = Project::new("");
    project.mllp("lab", "", &(to_file("held", "", "") + &to_file("free", "", "")));
    let mut engine = project.run().await;
    project.portway(&["destination", "pause", "lab/held", "--reason", "it is full"]).await;
    let address = engine.address("lab").await;
    Peer::connect(address).await.send_all("PWdrain", 1..=20).await;
    let drained = project.portway(&["drain", "--wait"]).await;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    let text = drained.stdout;
    assert!(text.contains("drained\n  lab/held: 20 left: it is paused by tester: it is full"), "{text}");
    assert_eq!(project.delivered("free").len(), 20);
    let mut peer = Peer::connect(address).await;
    assert_eq!(peer.send(&super::message("PWdrain", 21)).await, "AE");
    assert!(project.portway(&["status"]).await.stdout.contains("DRAINED for "));
    let cancelled = project.portway(&["drain", "--cancel"]).await;
    assert_eq!(cancelled.stdout.trim(), "the engine takes messages again");
    Peer::connect(address).await.send_all("PWdrain", 21..=25).await;
    let stopped = project.portway(&["drain", "--wait", "--stop", "--json"]).await;
    let drained: serde_json::Value = serde_json::from_str(&stopped.stdout).unwrap();
    assert_eq!((&drained["drain"]["done"], &drained["left"][0]["waiting"]), (&true.into(), &25.into()));
    assert_eq!(engine.ended().await.code(), Some(0), "{}", engine.log());
    assert_eq!(project.delivered("free").len(), 25);
    // The next engine takes messages, and the pause still holds.
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWdrain", 26..=26).await;
    assert_eq!(engine.destination("lab", "held").await.waiting, 26);
}
