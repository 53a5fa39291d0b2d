//! Engines on a real PostgreSQL database: the same project with one line more, and two engines on one
//! database.

use portway_admin::views::EngineState;
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};
use rustix::process::Signal;

use super::peer::Peer;
use super::project::{Project, to_file};

fn cluster() -> Cluster {
    Cluster::start(&Programs::of_system().unwrap(), &ClusterSettings::default()).unwrap()
}

/// A project whose interface `lab` appends to the file `archive`, in order.
fn project(url: &str) -> Project {
    let project = Project::new(&format!("[store]\nurl = {url:?}\n"));
    project.mllp("lab", "", &to_file("archive", "order = \"strict\"", ""));
    project
}

fn delivered(project: &Project) -> Vec<u64> {
    project.delivered("archive").into_iter().map(|identity| identity.sequence).collect()
}

#[tokio::test]
async fn an_engine_on_a_database_loses_nothing_when_it_is_killed() {
    let cluster = cluster();
    let project = project(&cluster.url());
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PW", 1..=20).await;
    engine.kill();
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PW", 21..=40).await;
    engine.drained("lab", "archive").await;
    let mut arrived = delivered(&project);
    // What was in hand when it was killed may have arrived twice.
    arrived.dedup();
    assert!(arrived.windows(2).all(|pair| pair[0] < pair[1] || pair[1] <= 20), "{arrived:?}");
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived, (1..=40).collect::<Vec<_>>());
    let status = engine.status().await;
    assert!(status.store.path.starts_with("postgres://127.0.0.1:"), "{}", status.store.path);
    assert_eq!(status.engines.len(), 1);
    assert_eq!(status.engines[0].interfaces, ["lab"]);
    let refused = project.portway(&["backup", "copy.db"]).await;
    assert!(refused.stderr.contains("pg_dump"), "{}", refused.stderr);
    engine.stop().await;
}

#[tokio::test]
async fn a_second_engine_is_refused_or_stands_by_and_takes_over() {
    let cluster = cluster();
    let (first, second) = (project(&cluster.url()), project(&cluster.url()));
    let mut owner = first.run().await;
    Peer::connect(owner.address("lab").await).await.send_all("PW", 1..=5).await;
    owner.drained("lab", "archive").await;

    let refused = second.portway(&["run"]).await;
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("`lab` by engine"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--standby"), "{}", refused.stderr);

    let mut standby = second.start_by(&["run", "--standby"], |command| command);
    standby.until_log("running").await;
    let status = standby.until_status("it stands by", |status| {
        (status.engine.state == EngineState::Standby).then(|| status.clone())
    });
    assert_eq!(status.await.engines.len(), 2);
    // It stores from the first second, and the owner delivers in order what both were given.
    let (mut here, mut there) =
        (Peer::connect(owner.address("lab").await).await, Peer::connect(standby.address("lab").await).await);
    for n in 6..=25 {
        if n % 2 == 0 { &mut here } else { &mut there }.send_all("PW", n..=n).await;
    }
    owner.sent("lab", "archive", 25).await;
    assert_eq!(delivered(&first), (1..=25).collect::<Vec<_>>());
    assert!(delivered(&second).is_empty(), "it owns nothing");

    owner.signal(Signal::KILL);
    standby
        .until_status("it took over", |status| (status.engine.state == EngineState::Running).then_some(()))
        .await;
    there.send_all("PW", 26..=30).await;
    standby.drained("lab", "archive").await;
    assert_eq!(
        delivered(&second),
        (26..=30).collect::<Vec<_>>(),
        "what the first had sent is not sent again"
    );
    standby.stop().await;
}
