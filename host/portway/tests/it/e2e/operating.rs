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
