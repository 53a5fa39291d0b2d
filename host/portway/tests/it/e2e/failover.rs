//! A database with a synchronous standby: its primary dies, and the standby takes its place.

use portway::traffic::Protocol;
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};

use super::stopping::{self, Load, Sink};
use super::{Project, until};

const NO_STANDBY: &str = "the database has no synchronous standby";

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_under_load_loses_nothing_and_keeps_every_key_in_order() {
    let primary = Cluster::start(&Programs::of_system().unwrap(), &ClusterSettings::default()).unwrap();
    let standby = primary.start_standby().unwrap();
    let (to, sink) = (stopping::fixed_address(), Sink::start(Protocol::Http).await);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
    let url = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write");
    let project = Project::new(&format!("[store]\nurl = {url:?}\n"));
    stopping::interface(&project, to, sink.address);
    let mut engine = project.run().await;
    let status = engine.status().await;
    assert_eq!(status.store.path, format!("postgres://{hosts}/postgres"));
    assert!(!status.store.notes.iter().any(|note| note.contains("standby")), "{:?}", status.store.notes);
    let load = Load::start(to);
    load.more(300).await;
    primary.stop_hard().unwrap();
    standby.promote().unwrap();
    load.more(300).await;
    // Whoever is left is alone, and that is said.
    engine
        .until_status("it says that there is no standby", |status| {
            status.store.notes.iter().any(|note| note.contains(NO_STANDBY)).then_some(())
        })
        .await;
    engine.until_log(NO_STANDBY).await;
    let shown = project.portway(&["status"]).await.stdout;
    assert!(shown.contains(&format!("  {NO_STANDBY}")), "{shown}");

    // The former primary comes back and would take writes. Nobody asks it, also not after a restart.
    primary.start_again().unwrap();
    primary.stand_alone().unwrap();
    let left_behind = primary.sql("SELECT count(*) FROM messages").unwrap();
    engine.kill();
    let mut engine = project.run().await;
    load.more(200).await;
    let report = load.end().await;
    stopping::check(&project, &mut engine, &sink, &report).await;
    assert_eq!(primary.sql("SELECT count(*) FROM messages").unwrap(), left_behind);
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_standby_a_database_acknowledges_nothing_until_it_is_back() {
    let primary = Cluster::start(&Programs::of_system().unwrap(), &ClusterSettings::default()).unwrap();
    let standby = primary.start_standby().unwrap();
    let (to, sink) = (stopping::fixed_address(), Sink::start(Protocol::Http).await);
    let project = Project::new(&format!("[store]\nurl = {:?}\n", primary.url()));
    stopping::interface(&project, to, sink.address);
    let mut engine = project.run().await;
    let load = Load::start(to);
    load.more(100).await;
    standby.stop_hard().unwrap();
    let waits_for = async |seconds: u32| {
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'
                AND clock_timestamp() - state_change > '{seconds}s'"
        );
        until("a commit waits for the standby", async || (primary.sql(&waits).unwrap() != "0").then_some(()))
            .await;
        load.acknowledged()
    };
    let before = waits_for(1).await;
    assert_eq!(waits_for(3).await, before, "acknowledged while no standby has it");
    standby.start_again().unwrap();
    load.more(300).await;
    let report = load.end().await;
    stopping::check(&project, &mut engine, &sink, &report).await;
    engine.stop().await;
}
