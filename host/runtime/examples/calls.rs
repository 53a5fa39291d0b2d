//! What a call costs: `cargo run --release -p portway-runtime --example calls`.
//!
//! Transforms in batches of 1, 64 and 256, and a stream source's `receive` and `settle`, one
//! message a call and 32 a call, on one core. Prints one line a case, in processor time, so
//! that other work on the machine counts less.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing to say")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portway_model::{AttemptNo, Attributes, Envelope, MessageId, Timestamp};
use portway_net::folder::{Access, FolderGrant};
use portway_runtime::{
    Batch, Fate, Grant, Grants, Opening, Plugin, Receipt, Runtime, RuntimeSettings, SourceItem,
};

const TIME: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let runtime = Runtime::new(RuntimeSettings::default()).unwrap();
    for (folder, name, settings) in
        [("plugins-test", "hostile-transform", r#"{"deed": "none"}"#), ("plugins", "oru-to-json", "{}")]
    {
        let Some(plugin) = load(&runtime, folder, name).await else { continue };
        for size in [1, 64, 256] {
            transform(&plugin, settings, size).await;
        }
    }
    let frame = Bytes::from(format!("\x0b{}\x1c\r", oru(1)));
    let settings = r#"{"key": "PID-3.1", "dedupe": "MSH-10"}"#;
    if let Some(plugin) = load(&runtime, "plugins", "mllp-source").await {
        source(&plugin, settings, frame).await;
    }
    if let Some(plugin) = load(&runtime, "plugins", "file-sender").await {
        instances(&plugin).await;
    }
    let line = Bytes::from(format!("{}\n", "x".repeat(1_700)));
    if let Some(plugin) = load(&runtime, "plugins-test", "hostile-stream-source").await {
        source(&plugin, r#"{"deed": "none"}"#, line).await;
    }
}

/// What instances of their own cost that have been opened and wait.
async fn instances(plugin: &Plugin) {
    let count = 500;
    let before = resident_kib();
    let mut senders = Vec::new();
    for n in 0..count {
        let path = std::env::temp_dir().join(format!("portway-{n}"));
        let grant = Grant::Folder(FolderGrant { path, access: Access::Write });
        let settings = r#"{"mode": "append", "file": "f"}"#;
        let grants = Grants(BTreeMap::from([("folder".to_owned(), grant)]));
        let sender = plugin.sender(Opening { grants, ..Opening::new("bench", "bench", settings) }).unwrap();
        sender.check().await.unwrap();
        senders.push(sender);
    }
    let kib = resident_kib() - before;
    println!("{}: {count} instances, {} KiB each", plugin.name(), kib / count);
}

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}

async fn load(runtime: &Runtime, folder: &str, name: &str) -> Option<Plugin> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target").join(folder);
    let Ok(bytes) = std::fs::read(path.join(format!("{name}.wasm"))) else {
        println!("{name}: not built; run `cargo xtask plugins` and `cargo xtask plugins --test`");
        return None;
    };
    let started = Instant::now();
    let plugin = runtime.load(name, &bytes).await.unwrap();
    println!("{name}: compiled in {} ms", started.elapsed().as_millis());
    Some(plugin)
}

async fn transform(plugin: &Plugin, settings: &str, size: usize) {
    let transformer = plugin.transformer(Opening::new("bench", "bench", settings)).unwrap();
    let attributes = Attributes::new(vec![("hl7.type".into(), "ORU^R01".into())]).unwrap();
    let attributes = Arc::new(attributes);
    let messages = (1..=size as u64).map(|id| Envelope {
        id: MessageId(id),
        received_at: Timestamp(1_700_000_000_000),
        attempt: AttemptNo(1),
        key: None,
        attributes: attributes.clone(),
        body: Bytes::from(oru(id)),
    });
    let batch = Batch {
        store: "bench".into(),
        ordered: false,
        timeout: Duration::from_secs(30),
        messages: messages.collect(),
        watch: None,
    };
    let mut meter = Meter::start();
    let mut fuel = 0;
    while meter.goes_on() {
        for _ in 0..16 {
            let call = transformer.transform(&batch).await;
            fuel = call.fuel / size as u64;
            meter.count += call.result.unwrap().len() as u64;
        }
    }
    meter.say(&format!("{} transform, {size} a call ({fuel} fuel)", plugin.name()));
}

async fn source(plugin: &Plugin, settings: &str, frame: Bytes) {
    let source = plugin.stream_source(Opening::new("bench", "", settings)).unwrap();
    let mut connection = source.accept(Attributes::default(), 0).await.unwrap();
    for frames in [1, 32] {
        let chunk = Bytes::from(frame.repeat(frames));
        let mut receipts = Vec::new();
        let mut meter = Meter::start();
        while meter.goes_on() {
            for _ in 0..64 {
                let items = connection.receive(chunk.clone()).await.unwrap();
                meter.count += items.len() as u64;
                receipts = items.into_iter().map(receipt).collect();
            }
        }
        assert_eq!(connection.kept_bytes(), 0);
        meter.say(&format!("{} receive, {frames} a call", plugin.name()));
        let mut meter = Meter::start();
        while meter.goes_on() {
            for _ in 0..64 {
                meter.count += receipts.len() as u64;
                assert!(!source.settle(receipts.clone()).await.unwrap().bytes.is_empty());
            }
        }
        meter.say(&format!("{} settle, {frames} a call", plugin.name()));
    }
}

fn receipt(item: SourceItem) -> Receipt {
    match item {
        SourceItem::Message { ticket, .. } => Receipt { fate: Fate::Stored(MessageId(1)), ticket },
        SourceItem::Refused { ticket, .. } | SourceItem::Control { ticket } => {
            Receipt { fate: Fate::Noted, ticket }
        }
    }
}

/// Counts against the processor time of this thread.
struct Meter {
    started: Instant,
    ran_ns: u64,
    count: u64,
}

impl Meter {
    fn start() -> Meter {
        Meter { started: Instant::now(), ran_ns: ran_ns(), count: 0 }
    }

    fn goes_on(&self) -> bool {
        self.started.elapsed() < TIME
    }

    fn say(self, case: &str) {
        let micros = (ran_ns() - self.ran_ns) as f64 / 1e3 / self.count as f64;
        println!("{case}: {micros:.2} µs a message, {:.0}/s", 1e6 / micros);
    }
}

/// What the system says this thread has run.
fn ran_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
/// A result of about 1.7 KB.
fn oru(id: u64) -> String {
    let mut message = format!(
        "MSH|^~\\&|LAB|HOSP|EHR|HOSP|20260101120000||ORU^R01^ORU_R01|{id:08}|P|2.5.1|||AL|NE||UNICODE UTF-8\r\
         PID|1||{:07}^^^HOSP^MR||Müller^Anna^Maria||19800512|F|||Hauptstraße 12^^Berlin^^10115^DE||+49301234567\r\
         PV1|1|I|W1^101^1^HOSP||||1234^Weber^Karl|||MED||||1|||1234^Weber^Karl|IP|V{id:08}\r\
         ORC|RE|{id:08}|F{id:08}||CM||||20260101113000|||1234^Weber^Karl\r\
         OBR|1|{id:08}|F{id:08}|57021-8^CBC W Auto Differential panel^LN|||20260101110000|||||||||1234^Weber^Karl\r",
        id % 1000
    );
    let tests = [
        ("6690-2", "Leukocytes", "6.7", "10*9/L", "4.0-10.0"),
        ("789-8", "Erythrocytes", "4.61", "10*12/L", "3.9-5.2"),
        ("718-7", "Hemoglobin", "13.9", "g/dL", "12.0-16.0"),
        ("4544-3", "Hematocrit", "41.2", "%", "36-46"),
        ("787-2", "MCV", "89.4", "fL", "80-96"),
        ("777-3", "Platelets", "254", "10*9/L", "150-400"),
        ("770-8", "Neutrophils/100 leukocytes", "58.1", "%", "40-75"),
    ];
    for (n, (code, name, value, unit, range)) in (1..).zip(tests) {
        message.push_str(&format!(
            "OBX|{n}|NM|{code}^{name} [#/volume] in Blood by Automated count^LN||{value}|{unit}|{range}|N|||F|||20260101112500||AUTO^Sysmex XN-1000\r"
        ));
    }
    message
}
