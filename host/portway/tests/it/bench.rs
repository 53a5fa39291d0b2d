//! Every case of `portway bench` that stores something, with small numbers, in databases of its own.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const DATABASES: &str = "SELECT string_agg(datname, ',') FROM pg_database WHERE NOT datistemplate";

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
    command.args(["bench", "--json"]).args(line.split(' ')).current_dir(folder).stdin(Stdio::null());
    command
}

fn portway(line: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ended = command(folder.path(), line).args(more).output().unwrap();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    ended
}

fn figures(ended: &Output) -> Vec<Value> {
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = String::from_utf8_lossy(&ended.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn cluster() -> Cluster {
    Cluster::start(&Programs::of_system().unwrap(), &ClusterSettings::default()).unwrap()
}

/// Runs the cases on one server; each has to print figures whose names begin like this.
fn check(cases: &[(&str, &[&str])]) -> Vec<Value> {
    let cluster = cluster();
    let mut all = Vec::new();
    for (line, names) in cases {
        let figures = figures(&portway(line, &["--store", &cluster.url()]));
        assert_eq!(figures.len(), names.len(), "{figures:?}");
        for (figure, name) in figures.iter().zip(*names) {
            assert!(figure["case"].as_str().unwrap().starts_with(name), "{figure} is not {name}");
            assert_eq!(figure["store"], "postgresql");
            assert!(figure["value"].is_number() && figure["cores"].is_number(), "{figure}");
        }
        all.extend(figures);
    }
    assert_eq!(cluster.sql(DATABASES).unwrap(), "postgres", "a database is left");
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(cluster.sql(tables).unwrap(), "0", "the database of the address stays as it is");
    all
}

#[test]
fn acknowledgements_and_backlogs_are_measured_in_databases_that_go_again() {
    let figures = check(&[
        ("acks --connections 2 --seconds 1", &["acks --connections 2"]),
        ("backlog --order strict --messages 300", &["backlog --order strict"]),
        ("http --connections 2 --seconds 1", &["http --connections 2"]),
        ("file --rows 2000", &["file --durability strict"]),
    ]);
    assert!(figures.iter().all(|figure| figure["value"].as_f64().unwrap() > 0.0), "{figures:?}");
    assert!(figures.iter().all(|figure| figure["commits"].as_u64().unwrap() > 0), "{figures:?}");
}

#[test]
fn a_fan_out_is_measured_among_24_partitions_a_table() {
    let figures =
        check(&[("fanout --destinations 2 --messages 40 --connections 2", &["fanout --destinations 2, "])]);
    let case = figures[0]["case"].as_str().unwrap();
    let partitions = case.strip_suffix(" partitions a table").unwrap().rsplit(' ').next().unwrap();
    assert!(partitions.parse::<usize>().unwrap() >= 24, "{case}");
}

#[test]
fn pages_of_queues_are_measured_beside_each_other() {
    let waiting = "queue-page of 20, 3000 waiting behind";
    let ahead = "queue-page of 20, 3000 delivered ahead";
    let line = "queue-page --page 20 --messages 3000";
    let figures_ = check(&[(line, &[waiting, ahead, ahead, ahead])]);
    assert!(figures_.iter().all(|figure| figure["ratio"].as_f64().unwrap() > 0.0), "{figures_:?}");
    assert!(figures_[1]["case"].as_str().unwrap().ends_with("an old snapshot held open"));
    let in_file = figures(&portway(line, &[]));
    assert_eq!(in_file.len(), 2, "{in_file:?}");
    assert_eq!(in_file[0]["store"], "sqlite");
}

#[test]
fn a_start_is_measured_with_its_claim() {
    let name = "start --interfaces 3 --waiting 30: ";
    let names = ["ready", "memory", "idle", "claim"].map(|what| format!("{name}{what}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let figures = check(&[("start --interfaces 3 --waiting 30", &names)]);
    assert!(figures[3]["p99_ms"].as_f64().unwrap() >= figures[3]["value"].as_f64().unwrap());
}

#[test]
fn memory_and_searches_are_measured_on_a_database() {
    let memory = ["memory: destination away", "memory: behind a blocked lane", "memory: in retry"];
    let stored = ["search: stored without index", "search: stored with index"];
    let found = ["search by key in 200, "; 3].into_iter().chain(["search by control id in 200, "; 3]);
    let search: Vec<&str> = stored.into_iter().chain(found).collect();
    check(&[("memory --many 200 --few 10", &memory), ("search --messages 200 --searches 5", &search)]);
}

#[test]
fn what_arrives_is_measured_without_and_with_a_held_move() {
    let name = "held-move of 900 at 40 messages/s: ";
    let names = ["acks p99 without", "acks p99 with", "moved"].map(|what| format!("{name}{what}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let line = "held-move --deliveries 900 --rate 40 --seconds 2";
    let figures = check(&[(line, &names)]);
    assert!(figures[1]["ratio"].as_f64().unwrap() > 0.0, "{figures:?}");
    let refused = portway(line, &[]);
    assert_eq!(refused.status.code(), Some(1));
    let sentence = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(sentence.contains("needs `--store postgres://…`"), "{sentence}");
}

#[test]
fn a_benchmark_that_is_stopped_removes_its_databases() {
    let cluster = cluster();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = command(folder.path(), "acks --seconds 600");
    let child = command.args(["--store", &cluster.url()]).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !cluster.sql(DATABASES).unwrap().contains("portway_bench_") {
        assert!(Instant::now() < end, "no database is made");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("stopped"));
    assert_eq!(cluster.sql(DATABASES).unwrap(), "postgres");
}
