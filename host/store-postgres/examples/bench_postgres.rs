//! What the store alone costs, a batch at a time, and what it costs to reach the server: by `portway bench`, where an
//! engine and its plugins are around it, neither can be told.
//!
//! `cargo run --release -p portway-store-postgres --example bench_postgres [-- CASE [URL]]`; prints an object a line.
//! Without an address it starts a cluster of its own, which flushes, and removes it. `ways` tells the same
//! statements over TCP and over a socket of the machine.

use std::time::{Duration, Instant};

use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, Attributes, DestinationId, Draft, Epoch, GroupId, InterfaceId, Key, Lane, MessageId,
    Order, Round, Timestamp,
};
use portway_store::{
    Attempted, DedupeWindow, DeliveryResult, Durability, NewDelivery, NewMessage, Registration, Settled,
    Store, StoreError, Topology, WriteBatch,
};
use portway_store_postgres::{PostgresSettings, PostgresStore};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What is measured.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    destinations: u32,
    batch: u64,
    body_bytes: usize,
    dedupe: bool,
    /// Lanes by key, or one.
    keyed: bool,
    finish: bool,
}

const PLAIN: Case =
    Case { name: "", destinations: 1, batch: 64, body_bytes: 1700, dedupe: false, keyed: true, finish: true };

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for batch in [1, 16, 64, 512] {
        cases.push(Case { name: "acks", batch, finish: false, ..PLAIN });
        cases.push(Case { name: "acks-dedupe", batch, finish: false, dedupe: true, ..PLAIN });
        cases.push(Case { name: "line", batch, ..PLAIN });
        cases.push(Case { name: "fanout", batch, destinations: 25, ..PLAIN });
    }
    cases
}

/// Where each case has a schema of its own.
struct Database {
    url: String,
    cluster: Option<Cluster>,
}

impl Database {
    fn settings(&self, name: &str) -> Result<PostgresSettings, Box<dyn std::error::Error>> {
        let name = name.replace('-', "_");
        if let Some(cluster) = &self.cluster {
            cluster.sql(&format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"))?;
        }
        let separator = if self.url.contains('?') { '&' } else { '?' };
        let url = match self.cluster {
            Some(_) => format!("{}{separator}options[search_path]={name}", self.url),
            None => self.url.clone(),
        };
        Ok(PostgresSettings {
            statement_max: Duration::from_secs(600),
            ..PostgresSettings::new(url, "bench")
        })
    }
}

#[tokio::main(worker_threads = 1)]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().filter(|only| only != "all");
    let database = match arguments.next() {
        Some(url) => Database { url, cluster: None },
        None => {
            let lines = ["shared_buffers = '512MB'", "max_wal_size = '4GB'"].map(str::to_owned).to_vec();
            let settings = ClusterSettings { flushes: true, lines, ..ClusterSettings::default() };
            let cluster = Cluster::start(&Programs::of_system()?, &settings)?;
            Database { url: cluster.url(), cluster: Some(cluster) }
        }
    };
    let wants = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wants("ways") {
        ways(&database).await?;
    }
    for case in cases() {
        if wants(case.name) || wants(&format!("{}-{}", case.name, case.batch)) {
            run(&database, case).await?;
        }
    }
    Ok(())
}

async fn opened(
    database: &Database,
    name: &str,
    case: Case,
) -> Result<PostgresStore, Box<dyn std::error::Error>> {
    let store = PostgresStore::open(database.settings(name)?).await?;
    let destinations = (1..=case.destinations).map(|n| format!("to-{n}")).collect();
    store
        .register(&Topology {
            interfaces: vec![Registration { name: "lab".into(), destinations, ..Registration::default() }],
            ..Topology::default()
        })
        .await?;
    Ok(store)
}

/// The same large statements over TCP and over a socket of the machine.
async fn ways(database: &Database) -> Outcome {
    let Some(cluster) = &database.cluster else { return Ok(()) };
    for (way, url) in [("tcp", cluster.url()), ("socket", cluster.socket_url())] {
        let database = Database { url, cluster: None };
        for (body_bytes, batch) in [(20, 1), (20, 1001), (1700, 16), (1700, 1001)] {
            let case = Case { body_bytes, batch, ..PLAIN };
            let name = format!("ways_{way}_{body_bytes}_{batch}");
            cluster.sql(&format!("CREATE SCHEMA {name}"))?;
            let separator = if database.url.contains('?') { '&' } else { '?' };
            let url = format!("{}{separator}options[search_path]={name}", database.url);
            let store = opened(&Database { url, cluster: None }, &name, case).await?;
            let body = Bytes::from(vec![b'x'; body_bytes]);
            let mut times = Vec::new();
            for mark in 0..60_u64 {
                let messages = (0..batch).map(|n| message(case, mark * batch + n, &body)).collect();
                let now = Timestamp(1_700_000_000_000);
                let batch = WriteBatch { mark, now, messages, ..WriteBatch::default() };
                let begun = Instant::now();
                store.write(batch).await?;
                times.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
            println!(
                r#"{{"case":"ways","way":"{way}","batch":{batch},"body_bytes":{body_bytes},"ms_median":{:.2},"ms_p90":{:.2},"ms_max":{:.2}}}"#,
                at(50),
                at(90),
                at(99)
            );
            store.close().await?;
        }
    }
    Ok(())
}

async fn run(database: &Database, case: Case) -> Outcome {
    let store = opened(database, &format!("{}_{}", case.name, case.batch), case).await?;
    let body = Bytes::from(vec![b'x'; case.body_bytes]);
    let messages = (30_000 / u64::from(case.destinations)).min(case.batch * 1500).max(case.batch);
    let (mut commits, mut stored, mut commit_time) = (0_u64, 0_u64, Duration::ZERO);
    let (start, cpu) = (Instant::now(), cpu_time());
    while stored < messages {
        let batch = WriteBatch {
            mark: commits,
            now: Timestamp(1_700_000_000_000 + commits),
            durability: Durability::Strict,
            messages: (stored..stored + case.batch).map(|n| message(case, n, &body)).collect(),
            ..WriteBatch::default()
        };
        let begun = Instant::now();
        store.write(batch).await?;
        commit_time += begun.elapsed();
        commits += 1;
        stored += case.batch;
        if case.finish {
            finish(&store, case, stored - case.batch + 1, stored).await?;
        }
        if commits % 64 == 0 {
            store.maintain(Duration::from_secs(1)).await?;
        }
    }
    let items = stored * if case.finish { u64::from(case.destinations) } else { 1 };
    let wall = start.elapsed();
    let cpu_us = (cpu_time() - cpu).as_secs_f64() * 1e6 / items as f64;
    println!(
        r#"{{"case":"{}","batch":{},"per_second":{:.0},"cpu_us":{cpu_us:.2},"commits":{commits},"commit_ms":{:.3}}}"#,
        case.name,
        case.batch,
        items as f64 / wall.as_secs_f64(),
        commit_time.as_secs_f64() * 1e3 / commits as f64,
    );
    store.close().await?;
    Ok(())
}

/// Finishes the deliveries of messages `from` to `to`, as runs of up to 256 of one destination do.
async fn finish(store: &PostgresStore, case: Case, from: u64, to: u64) -> Result<(), StoreError> {
    let mut results = Vec::new();
    for destination in 1..=case.destinations {
        results.extend((from..=to).map(|message| result(message, destination)));
    }
    for (n, results) in (0..).zip(results.chunks(4096)) {
        let batch = WriteBatch {
            mark: (to << 20) | n,
            now: Timestamp(1_700_000_100_000),
            durability: Durability::Relaxed,
            results: results.to_vec(),
            ..WriteBatch::default()
        };
        store.write(batch).await?;
    }
    Ok(())
}

fn message(case: Case, n: u64, body: &Bytes) -> NewMessage {
    let key = Key::new(&format!("PID{:05}", n % 5000));
    let lane = if case.keyed { Lane::of(Order::Key, key.as_ref()) } else { Lane::FIRST };
    NewMessage {
        interface: InterfaceId(1),
        group: GroupId(1),
        received_at: Timestamp(1_700_000_000_000 + n),
        draft: Draft {
            body: body.clone(),
            key,
            dedupe: case.dedupe.then(|| Key::new(&format!("CTRL{n:09}"))).flatten(),
            occurred_at: Some(Timestamp(1_700_000_000_000)),
            attributes: Attributes::new(vec![
                ("mllp.peer".into(), "10.0.0.17".into()),
                ("hl7.type".into(), "ORU^R01".into()),
                ("hl7.control-id".into(), format!("CTRL{n:09}")),
            ])
            .unwrap_or_default(),
            doubt: None,
        },
        dedupe: case.dedupe.then_some(DedupeWindow(Duration::from_secs(86_400))),
        origin: None,
        edited: None,
        terms: Vec::new(),
        deliveries: (1..=case.destinations)
            .map(|n| NewDelivery { destination: DestinationId(n), lane })
            .collect(),
    }
}

fn result(message: u64, destination: u32) -> DeliveryResult {
    DeliveryResult {
        epoch: Epoch(1),
        output: None,
        state: Vec::new(),
        destination: DestinationId(destination),
        message: MessageId(message),
        round: Round(0),
        attempts: AttemptNo(1),
        settled: Settled::Sent(Answer { code: "200".into(), text: "OK".into() }),
        attempted: Some(Attempted { started_at: Timestamp(1), took: Duration::from_millis(2) }),
    }
}

/// Processor time of this process, all threads; the server's is not in it.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
