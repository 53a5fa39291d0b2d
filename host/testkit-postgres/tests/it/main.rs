//! Clusters start, stop, come back with what they had, and leave nothing.

use std::path::Path;

use portway_testkit_postgres::{Cluster, ClusterSettings, Programs, Small};

#[test]
fn a_cluster_comes_back_with_what_it_had_and_leaves_nothing() {
    let cluster = Cluster::start(&Programs::of_system().unwrap(), &ClusterSettings::default()).unwrap();
    cluster.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)").unwrap();
    cluster.stop_hard().unwrap();
    assert!(cluster.sql("SELECT 1").is_err());
    cluster.start_again().unwrap();
    assert_eq!(cluster.sql("SELECT n FROM t").unwrap(), "7");
    cluster.stop_fast().unwrap();
    cluster.start_again().unwrap();
    assert!(cluster.log().unwrap().contains("ready to accept connections"));
    assert!(cluster.url().contains(&cluster.port().to_string()));
    let folder = cluster.socket_folder().to_path_buf();
    let pid = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let pid = pid.lines().next().unwrap().to_owned();
    drop(cluster);
    assert!(!folder.exists(), "its files are gone");
    assert!(!Path::new(&format!("/proc/{pid}/exe")).exists(), "it does not run any more");
}

#[test]
fn what_a_dead_process_left_is_stopped_and_removed() {
    let programs = Programs::of_system().unwrap();
    // The number of a process that is gone.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let left = std::env::temp_dir().join(format!("portway-postgres-{dead}-left"));
    std::fs::create_dir_all(left.join("data")).unwrap();
    let cluster = Cluster::start(&programs, &ClusterSettings::default()).unwrap();
    assert!(!left.exists());
    assert!(cluster.socket_folder().exists());
}

#[test]
fn two_clusters_do_not_know_each_other_and_settings_arrive() {
    let settings = ClusterSettings { lines: vec!["work_mem = '5MB'".into()], ..ClusterSettings::default() };
    let programs = Programs::embedded().unwrap();
    assert_eq!(programs.major(), 18);
    let (one, two) = (
        Cluster::start(&programs, &settings).unwrap(),
        Cluster::start(&programs, &ClusterSettings { flushes: true, ..ClusterSettings::default() }).unwrap(),
    );
    assert_ne!(one.port(), two.port());
    assert_eq!(one.sql("SHOW work_mem; SHOW fsync").unwrap(), "5MB\noff");
    assert_eq!(two.sql("SHOW work_mem; SHOW fsync").unwrap(), "4MB\non");
    assert!(one.socket_url().contains("%2F"));
}

#[test]
fn a_part_of_a_cluster_can_be_on_a_disk_that_is_full() {
    let programs = Programs::of_system().unwrap();
    let table = "CREATE TABLE t (bytes text); ALTER TABLE t ALTER COLUMN bytes SET STORAGE EXTERNAL;
        INSERT INTO t SELECT repeat('x', 1048576) FROM generate_series(1, 40)";
    for small in [Small::Data, Small::Log] {
        let settings = ClusterSettings { small: Some(small), ..ClusterSettings::default() };
        let cluster = Cluster::start(&programs, &settings).unwrap();
        let disk = cluster.small_disk().unwrap();
        disk.fill(4 << 20).unwrap();
        assert!(disk.free_bytes().unwrap() <= 4 << 20);
        let error = format!("{:#}", cluster.sql(table).unwrap_err());
        assert!(error.contains("free disk space") || small == Small::Log, "{error}");
        disk.make_room().unwrap();
        if small == Small::Log {
            let _ = cluster.stop_hard();
            cluster.start_again().unwrap();
        }
        cluster.sql(table).unwrap();
        let mounted = disk.path().to_path_buf();
        drop(cluster);
        assert!(!mounted.exists(), "unmounted and removed");
    }
}
