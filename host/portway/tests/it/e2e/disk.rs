//! A full disk: intake says so, loses nothing, and goes on by itself when there is room.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portway::traffic::Template;

use super::project::to_file;
use super::{Peer, Project};

/// A small file system in memory, unmounted when dropped. Needs root, as the tests of full disks
/// do everywhere: there is no other honest way to fill one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> SmallDisk {
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(at).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "a small disk cannot be mounted (run this test as root): {said}");
        SmallDisk(at.to_owned())
    }

    fn free_bytes(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.0).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    /// Leaves so much free.
    fn fill(&self, leave: u64) -> PathBuf {
        let file = self.0.join("filler");
        fs::write(&file, vec![0; usize::try_from(self.free_bytes().saturating_sub(leave)).unwrap()]).unwrap();
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_closes_the_intake_until_there_is_room() {
    // Fields drop in their order: the engine first, then the disk, then the folder below it.
    let project = Project::new("[store]\nfree_bytes_min = \"16MB\"\nlog_bytes_max = \"16MB\"\n");
    project.mllp("lab", "", &to_file("out", "", ""));
    let data = project.path().join("data");
    let disk = SmallDisk::mount(&data);
    project.share_native_code();
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWa", 1..=10).await;
    let mut acknowledged = 10;

    // Another program fills the disk up to just above the floor; large messages do the rest.
    let filler = disk.fill(24 << 20);
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
    assert!(disk.free_bytes() > 0, "the floor was not kept");
    let why =
        engine.until_status("the intake says why it is closed", |status| status.intake.closed.clone()).await;
    assert_eq!(why.code, "full", "{why:?}");
    let health = project.portway(&["status"]).await;
    assert!(health.stdout.contains("intake CLOSED"), "{health:?}");
    // What was acknowledged is delivered all the same.
    engine.sent("lab", "out", acknowledged).await;

    // Really full: not a byte is left. The process lives, and refuses.
    let rest = disk.0.join("rest");
    let _ = fs::write(&rest, vec![0; usize::try_from(disk.free_bytes()).unwrap()]);
    assert_eq!(peer.send(&large.message("PWa", acknowledged + 1)).await, "AE");
    engine.status().await;

    fs::remove_file(rest).unwrap();
    fs::remove_file(filler).unwrap();
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
