//! A full disk: intake says so, loses nothing, and goes on by itself when there is room.

use portway::traffic::Template;
use portway_testkit_postgres::SmallDisk;

use super::project::to_file;
use super::{Peer, Project};

#[tokio::test]
async fn a_full_disk_closes_the_intake_until_there_is_room() {
    // Fields drop in their order: the engine first, then the disk, then the folder below it.
    let project = Project::new("[store]\nfree_bytes_min = \"16MB\"\nlog_bytes_max = \"16MB\"\n");
    project.mllp("lab", "", &to_file("out", "", ""));
    let data = project.path().join("data");
    let disk = SmallDisk::mount(&data, 64 << 20).unwrap();
    project.share_native_code();
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWa", 1..=10).await;
    let mut acknowledged = 10;

    // Another program fills the disk up to just above the floor; large messages do the rest.
    disk.fill(24 << 20).unwrap();
    let large = Template::new(256 << 10);
    let refused = loop {
        let answer = peer.ask(&large.message("PWa", acknowledged + 1)).await;
        match answer.code.as_str() {
            "AA" => acknowledged += 1,
            _ => break answer,
        }
        assert!(acknowledged < 1_000, "the disk is never full");
    };
    assert_eq!(refused.code, "AE", "{refused:?}");
    assert!(disk.free_bytes().unwrap() > 0, "the floor was not kept");
    let why =
        engine.until_status("the intake says why it is closed", |status| status.intake.closed.clone()).await;
    assert_eq!(why.code, "full", "{why:?}");
    let health = project.portway(&["status"]).await;
    assert!(health.stdout.contains("intake CLOSED"), "{health:?}");
    // What was acknowledged is delivered all the same.
    engine.sent("lab", "out", acknowledged).await;

    // Really full: not a byte is left. The process lives, and refuses.
    disk.fill(0).unwrap();
    assert_eq!(peer.send(&large.message("PWa", acknowledged + 1)).await, "AE");
    engine.status().await;

    disk.make_room().unwrap();
    engine
        .until_status("the intake is open by itself", |status| status.intake.closed.is_none().then_some(()))
        .await;
    super::until("messages are taken again", async || {
        (peer.send(&large.message("PWa", acknowledged + 1)).await == "AA").then_some(())
    })
    .await;
    acknowledged += 1;
    engine.drained("lab", "out").await;
    let delivered: Vec<_> = project.delivered("out").into_iter().map(|one| one.sequence).collect();
    assert_eq!(delivered, (1..=acknowledged).collect::<Vec<_>>());
    engine.stop().await;
    drop((engine, disk));
}
