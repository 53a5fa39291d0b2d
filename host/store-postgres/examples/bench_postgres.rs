//! How fast the store takes messages and finishes their deliveries, and what it costs to reach the server.
//!
//! `cargo run --release -p portway-store-postgres --example bench_postgres [-- CASE [URL]]`; prints an object a line.
//! Without an address it starts a cluster of its own, which flushes, and removes it. `tcp` and `socket` tell
//! the same statement over both ways.

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
    if wants("queue") {
        queue(&database).await?;
    }
    if wants("start") {
        start(&database).await?;
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

/// A page of 500 of a queue: of just those, before a million others, behind a million that were delivered,
/// and the same while an old snapshot is held.
async fn queue(database: &Database) -> Outcome {
    const MANY: u64 = 1_000_000;
    let case = Case { keyed: false, body_bytes: 20, ..PLAIN };
    let few = opened(database, "queue_few", case).await?;
    fill(&few, case, 0, 500).await?;
    page(&few, "just_500").await?;
    few.close().await?;
    let settings = database.settings("queue_many")?;
    let store = PostgresStore::open(settings.clone()).await?;
    let destinations = vec!["to-1".to_owned()];
    store
        .register(&Topology {
            interfaces: vec![Registration { name: "lab".into(), destinations, ..Registration::default() }],
            ..Topology::default()
        })
        .await?;
    fill(&store, case, 0, MANY).await?;
    page(&store, "many_waiting").await?;
    // Somebody looks at all of it and does not come back.
    let holder = match &database.cluster {
        Some(cluster) => Some(hold(cluster)?),
        None => None,
    };
    for from in (0..MANY - 500).step_by(4096) {
        finish(&store, case, from + 1, (from + 4096).min(MANY - 500)).await?;
        if from % (4096 * 32) == 0 {
            store.maintain(Duration::from_secs(1)).await?;
        }
    }
    for _ in 0..2 {
        store.maintain(Duration::from_secs(1)).await?;
    }
    page(&store, "delivered_ahead_old_snapshot").await?;
    store.close().await?;
    let store = PostgresStore::open(settings.clone()).await?;
    page(&store, "delivered_ahead_old_snapshot_new_start").await?;
    drop(holder);
    page(&store, "delivered_ahead").await?;
    if let Some(cluster) = &database.cluster {
        cluster.sql("TRUNCATE queue_many.queue_floors")?;
        page(&store, "delivered_ahead_without_a_floor").await?;
    }
    store.close().await?;
    Ok(())
}

fn hold(cluster: &Cluster) -> Result<std::process::Child, Box<dyn std::error::Error>> {
    use std::io::{Read as _, Write as _};
    let mut client =
        cluster.client()?.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?;
    if let (Some(input), Some(output)) = (&mut client.stdin, &mut client.stdout) {
        input.write_all(b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1;\n")?;
        let mut said = [0];
        output.read_exact(&mut said)?;
    }
    Ok(client)
}

async fn fill(store: &PostgresStore, case: Case, from: u64, count: u64) -> Result<(), StoreError> {
    let body = Bytes::from(vec![b'x'; case.body_bytes]);
    for begin in (from..from + count).step_by(2000) {
        let messages = (begin..(begin + 2000).min(from + count)).map(|n| message(case, n, &body)).collect();
        let now = Timestamp(1_700_000_000_000);
        store.write(WriteBatch { mark: begin, now, messages, ..WriteBatch::default() }).await?;
    }
    Ok(())
}

async fn page(store: &PostgresStore, what: &str) -> Result<(), StoreError> {
    let read = async || store.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 500).await;
    let (first, begun) = (Instant::now(), read().await?.len());
    let first = first.elapsed();
    let mut times = Vec::new();
    for _ in 0..50 {
        let begin = Instant::now();
        read().await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    println!(
        r#"{{"case":"queue","what":"{what}","page":{begun},"first_ms":{:.2},"median_ms":{median:.2}}}"#,
        first.as_secs_f64() * 1e3
    );
    Ok(())
}

/// How long an engine needs until it knows what waits: 1,000,000 messages for 1,001 destinations.
async fn start(database: &Database) -> Outcome {
    const DESTINATIONS: u32 = 1001;
    let settings = database.settings("start")?;
    let store = PostgresStore::open(settings.clone()).await?;
    let registration = |n| Registration {
        name: format!("interface-{n}"),
        destinations: vec!["to".into()],
        ..Registration::default()
    };
    let topology =
        Topology { interfaces: (1..=DESTINATIONS).map(registration).collect(), ..Topology::default() };
    store.register(&topology).await?;
    let body = Bytes::from(vec![b'x'; 200]);
    for mark in 0..500_u64 {
        let of = |n: u64| {
            let number = 1 + (n % u64::from(DESTINATIONS)) as u32;
            let mut message = message(PLAIN, n, &body);
            message.interface = InterfaceId(number);
            message.deliveries.iter_mut().for_each(|delivery| delivery.destination = DestinationId(number));
            message
        };
        let messages = (mark * 2000..(mark + 1) * 2000).map(of).collect();
        let now = Timestamp(1_700_000_000_000);
        store.write(WriteBatch { mark, now, messages, ..WriteBatch::default() }).await?;
    }
    store.close().await?;
    let mut begun = Instant::now();
    let mut told = String::new();
    let mut tell = |name: &str| {
        told += &format!(r#","{name}_ms":{:.1}"#, begun.elapsed().as_secs_f64() * 1e3);
        begun = Instant::now();
    };
    let store = PostgresStore::open(settings).await?;
    tell("open");
    store.register(&topology).await?;
    tell("register");
    let destinations = store.destinations_with_work().await?;
    tell("with_work");
    let mut lanes = 0;
    for destination in destinations.iter().take(20) {
        lanes += store.lane_heads(*destination).await?.len();
    }
    tell("lane_heads_20");
    let queues = store.list_queues().await?;
    tell("list_queues");
    println!(r#"{{"case":"start","destinations":{},"lanes_20":{lanes}{told}}}"#, queues.len());
    store.close().await?;
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
