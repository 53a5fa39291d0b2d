//! How fast the store takes messages and finishes their deliveries.
//!
//! `cargo run --release -p portway-store-sqlite --example bench [-- FOLDER [CASE]]`; prints an
//! object a line. Judge by `cpu_us`, the processor time an item cost: wall time depends on who else
//! uses the machine.

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
use portway_store_sqlite::{SqliteSettings, SqliteStore};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What is measured.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    destinations: u32,
    batch: u64,
    body_bytes: usize,
    dedupe: bool,
    /// Answers that differ from message to message.
    answers: bool,
    finish: bool,
}

const PLAIN: Case = Case {
    name: "",
    destinations: 1,
    batch: 64,
    body_bytes: 1700,
    dedupe: false,
    answers: false,
    finish: true,
};

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for batch in [1, 16, 64, 512] {
        cases.push(Case { name: "acks", batch, finish: false, ..PLAIN });
        cases.push(Case { name: "acks-dedupe", batch, finish: false, dedupe: true, ..PLAIN });
        cases.push(Case { name: "line", batch, ..PLAIN });
        cases.push(Case { name: "line-answers", batch, answers: true, ..PLAIN });
        cases.push(Case { name: "fanout", batch, destinations: 25, ..PLAIN });
    }
    cases
}

#[tokio::main(worker_threads = 1)]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "target/bench".to_owned());
    let only = arguments.next();
    if only.as_deref().is_none_or(|only| only == "start") {
        start(&folder).await?;
    }
    for case in cases() {
        let wanted = only
            .as_ref()
            .is_none_or(|only| *only == case.name || *only == format!("{}-{}", case.name, case.batch));
        if wanted {
            run(&folder, case).await?;
        }
    }
    Ok(())
}

/// A path where nothing is left of an earlier run.
fn fresh(folder: &str, name: &str) -> std::io::Result<std::path::PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = std::path::Path::new(folder).join(name);
    for end in ["", "-wal", "-shm", ".lock"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    Ok(path)
}

/// How long an engine needs until it knows what waits: 1,000,000 messages for 1,001 destinations.
async fn start(folder: &str) -> Outcome {
    const DESTINATIONS: u32 = 1001;
    let path = fresh(folder, "start.db")?;
    let settings = SqliteSettings { free_floor_bytes: 0, ..SqliteSettings::new(&path) };
    let store = SqliteStore::open(settings.clone()).await?;
    let registration = |n| Registration {
        name: format!("interface-{n}"),
        destinations: vec!["to".into()],
        ..Registration::default()
    };
    let interfaces = (1..=DESTINATIONS).map(registration).collect();
    let topology = Topology { interfaces, ..Topology::default() };
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
        if mark % 16 == 0 {
            store.maintain(Duration::from_secs(5)).await?;
        }
    }
    store.close().await?;
    let mut begun = Instant::now();
    let mut told = String::new();
    let mut tell = |name: &str| {
        told += &format!(r#","{name}_ms":{:.1}"#, begun.elapsed().as_secs_f64() * 1e3);
        begun = Instant::now();
    };
    let store = SqliteStore::open(settings).await?;
    tell("open");
    store.register(&topology).await?;
    tell("register");
    let destinations = store.destinations_with_work().await?;
    tell("with_work");
    let mut lanes = Vec::new();
    for destination in &destinations {
        lanes.extend(store.lane_heads(*destination).await?.into_iter().map(|head| (*destination, head.lane)));
    }
    tell("lane_heads");
    let mut read = 0;
    for (destination, lane) in lanes.iter().take(5000) {
        read += store.read_lane(*destination, *lane, MessageId::ZERO, 256).await?.len();
    }
    tell("read_5000_lanes");
    let queues = store.list_queues().await?;
    tell("list_queues");
    println!(
        r#"{{"case":"start","destinations":{},"lanes":{},"read":{read}{told}}}"#,
        queues.len(),
        lanes.len()
    );
    store.close().await?;
    Ok(())
}

async fn run(folder: &str, case: Case) -> Outcome {
    let path = fresh(folder, &format!("{}-{}.db", case.name, case.batch))?;
    let store =
        SqliteStore::open(SqliteSettings { free_floor_bytes: 0, ..SqliteSettings::new(&path) }).await?;
    let destinations = (1..=case.destinations).map(|n| format!("to-{n}")).collect();
    let interface = Registration { name: "lab".into(), destinations, ..Registration::default() };
    store.register(&Topology { interfaces: vec![interface], ..Topology::default() }).await?;
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
async fn finish(store: &SqliteStore, case: Case, from: u64, to: u64) -> Result<(), StoreError> {
    let mut results = Vec::new();
    for destination in 1..=case.destinations {
        results.extend((from..=to).map(|message| result(case, message, destination)));
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
    let lane = Lane::of(Order::Key, key.as_ref());
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

fn result(case: Case, message: u64, destination: u32) -> DeliveryResult {
    let answer = if case.answers {
        Answer { code: "AA".into(), text: format!("CTRL{message:09}") }
    } else {
        Answer { code: "200".into(), text: "OK".into() }
    };
    DeliveryResult {
        epoch: Epoch(1),
        state: Vec::new(),
        destination: DestinationId(destination),
        message: MessageId(message),
        round: Round(0),
        attempts: AttemptNo(1),
        settled: Settled::Sent(answer),
        attempted: Some(Attempted { started_at: Timestamp(1), took: Duration::from_millis(2) }),
        output: None,
    }
}

/// Processor time of this process, all threads.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
