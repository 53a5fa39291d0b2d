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

#[tokio::test]
async fn the_status_is_told_while_the_database_is_away() {
    let cluster = cluster();
    let project = project(&cluster.url());
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PW", 1..=3).await;
    engine.drained("lab", "archive").await;
    let paused = project.portway(&["destination", "pause", "lab/archive", "--reason", "a test"]).await;
    assert_eq!(paused.code, Some(0), "{}", paused.stderr);
    Peer::connect(engine.address("lab").await).await.send_all("PW", 4..=5).await;
    assert_eq!(engine.destination("lab", "archive").await.waiting, 2);

    cluster.stop_hard().unwrap();
    let away = |status: &portway_admin::views::Status| status.store.away.clone();
    let told = engine.until_status("the store is away", away).await;
    assert!(told.read_at.is_some(), "{told:?}");
    assert_eq!(engine.destination("lab", "archive").await.waiting, 2, "as it was read last");
    let shown = project.portway(&["status"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("store AWAY: cannot connect to the database"), "{}", shown.stdout);
    assert!(shown.stdout.contains("what waits is as it was"), "{}", shown.stdout);

    cluster.start_again().unwrap();
    engine.until_status("the store is back", |status| status.store.away.is_none().then_some(())).await;
    let resumed = project.portway(&["destination", "resume", "lab/archive", "--reason", "it is over"]).await;
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    engine.drained("lab", "archive").await;
    assert_eq!(delivered(&project), [1, 2, 3, 4, 5]);
    engine.stop().await;
}

#[tokio::test]
async fn an_upgrade_is_shown_beside_the_engine_and_done_without_it() {
    let cluster = cluster();
    let project = project(&cluster.url());
    let nothing = project.portway(&["upgrade", "--check"]).await;
    assert_eq!(nothing.code, Some(0), "{}", nothing.stderr);
    assert!(nothing.stdout.contains("there is no store yet"), "{}", nothing.stdout);
    let refused = project.portway(&["upgrade"]).await;
    assert_eq!(refused.code, Some(0), "there is nothing to bring up to date: {}", refused.stderr);

    let mut engine = project.run().await;
    let nothing = project.portway(&["upgrade", "--check"]).await;
    assert_eq!(nothing.code, Some(0), "{}", nothing.stderr);
    assert!(nothing.stdout.contains("nothing to do"), "{}", nothing.stdout);

    // As an older program would have left it, which never heard of the newest ones.
    let known =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/postgres")).unwrap().count();
    let steps = known - 11;
    cluster.sql("DELETE FROM schema_migrations WHERE number >= 12").unwrap();
    let shown = project.portway(&["upgrade", "--check"]).await;
    assert_eq!(shown.code, Some(6), "{}", shown.stderr);
    let brings = format!("at 11, this program brings them to {known}: {steps} migration");
    for says in [brings.as_str(), "other engines go on", "last_write: gets"] {
        assert!(shown.stdout.contains(says), "{says}: {}", shown.stdout);
    }
    let shown = project.portway(&["upgrade", "--check", "--json"]).await;
    assert_eq!(shown.code, Some(6));
    let plan: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let step = &plan["migrations"][0];
    assert_eq!((&plan["present"], &plan["known"], &plan["to_do"]), (&11.into(), &known.into(), &true.into()));
    assert_eq!(
        (&step["number"], &step["others"], &step["room_bytes"]),
        (&12.into(), &"go_on".into(), &0.into())
    );
    assert_eq!(
        (&step["tables"][0]["table"], &step["tables"][0]["work"]),
        (&"last_write".into(), &"definition".into())
    );

    let refused = project.portway(&["upgrade"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("while engines use them") && refused.stderr.contains("store-in-use"),
        "{}",
        refused.stderr
    );
    Peer::connect(engine.address("lab").await).await.send_all("PW", 1..=5).await;
    engine.stop().await;

    let done = project.portway(&["upgrade"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains(&format!("from 11 to {known}")), "{}", done.stdout);
    assert_eq!(project.portway(&["upgrade", "--check"]).await.code, Some(0));

    cluster.sql("INSERT INTO schema_migrations (number, name, digest, oldest_binary) VALUES (99, '0099_tomorrow', '', 99)").unwrap();
    let newer = project.portway(&["upgrade", "--check"]).await;
    assert_eq!(newer.code, Some(1), "{}", newer.stdout);
    assert!(
        newer.stderr.contains("0099_tomorrow") && newer.stderr.contains("store-newer"),
        "{}",
        newer.stderr
    );
}
