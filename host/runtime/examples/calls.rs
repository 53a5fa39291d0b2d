//! What a call costs: `cargo run --release -p portway-runtime --example calls`.
//!
//! Transforms in batches of 1, 64 and 256, and a stream source's `receive` and `settle`, one
//! message a call and 32 a call, on one core. Prints one line a case.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing to say")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portway_model::{AttemptNo, Attributes, Envelope, MessageId, Timestamp};
use portway_runtime::{
    Batch, Connection, Fate, Opening, Plugin, Receipt, Runtime, RuntimeSettings, SourceItem, StreamSource,
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
    let line = Bytes::from(format!("{}\n", "x".repeat(1_700)));
    if let Some(plugin) = load(&runtime, "plugins-test", "hostile-stream-source").await {
        source(&plugin, r#"{"deed": "none"}"#, line).await;
    }
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
    };
    let started = Instant::now();
    let (mut count, mut fuel) = (0_u64, 0);
    while started.elapsed() < TIME {
        for _ in 0..16 {
            let call = transformer.transform(&batch).await;
            fuel = call.fuel / size as u64;
            count += call.result.unwrap().len() as u64;
        }
    }
    say(&format!("{} transform, {size} a call", plugin.name()), started.elapsed(), count, fuel);
}

async fn source(plugin: &Plugin, settings: &str, frame: Bytes) {
    let source = plugin.stream_source(Opening::new("bench", "", settings)).unwrap();
    let mut connection = source.accept(Attributes::default(), 0).await.unwrap();
    for frames in [1, 32] {
        let chunk = Bytes::from(frame.repeat(frames));
        let started = Instant::now();
        let (mut count, mut receiving) = (0_u64, Duration::ZERO);
        while started.elapsed() < TIME {
            for _ in 0..64 {
                let before = Instant::now();
                let items = connection.receive(chunk.clone()).await.unwrap();
                receiving += before.elapsed();
                count += answer(&source, items).await;
            }
        }
        assert_eq!(kept(&connection), 0);
        let name = plugin.name();
        say(&format!("{name} receive, {frames} a call"), receiving, count, 0);
        say(&format!("{name} receive and settle, {frames} a call"), started.elapsed(), count, 0);
    }
}

async fn answer(source: &StreamSource, items: Vec<SourceItem>) -> u64 {
    let receipts: Vec<Receipt> = items
        .into_iter()
        .map(|item| match item {
            SourceItem::Message { ticket, .. } => Receipt { fate: Fate::Stored(MessageId(1)), ticket },
            SourceItem::Refused { ticket, .. } | SourceItem::Control { ticket } => {
                Receipt { fate: Fate::Noted, ticket }
            }
        })
        .collect();
    let count = receipts.len() as u64;
    assert!(!source.settle(receipts).await.unwrap().bytes.is_empty());
    count
}

fn kept(connection: &Connection) -> usize {
    connection.kept_bytes()
}

fn say(case: &str, time: Duration, count: u64, fuel: u64) {
    let micros = time.as_secs_f64() * 1e6 / count as f64;
    println!("{case}: {micros:.2} µs a message, {:.0}/s, {fuel} fuel", 1e6 / micros);
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
