//! Searches among many messages: by key, where ten messages have each, and by control id.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use portway_engine::ports::Clock;
use portway_model::{Attributes, Draft, GroupId, InterfaceId, Key, Term};
use portway_store::{Durability, ListMessages, NewMessage, Store, WriteBatch};

use super::engine::Bench;
use super::figure::Figure;
use super::place::Place;
use crate::wiring::SystemClock;

const BATCH: u64 = 512;
const MESSAGES_OF_A_KEY: u64 = 10;
const BODY_BYTES: usize = 200;
/// Messages stored to see what the index costs, unless there are fewer.
const COST_MESSAGES: u64 = 50_000;

/// Milliseconds a search, and what storing costs with the index and without.
pub async fn measure(place: &Place, messages: u64, searches: u64) -> Result<Vec<Figure>> {
    let cost_messages = COST_MESSAGES.min(messages.max(1));
    let mut figures = Vec::new();
    for (word, names) in [("without", &[][..]), ("with", &[Term::KEY, "hl7.control-id"])] {
        let (_bench, store) = open(place).await?;
        let took = fill(&*store, cost_messages, names).await?;
        let rate = cost_messages as f64 / took.as_secs_f64();
        figures.push(Figure::new(format!("search: stored {word} index"), rate, "messages/s"));
        store.close().await?;
    }
    let (bench, store) = open(place).await?;
    fill(&*store, messages, &[Term::KEY, "hl7.control-id"]).await?;
    bench.settle().await?;
    let by_key = |n: u64| ListMessages { key: Some(key(n)), limit: 50, ..ListMessages::default() };
    let by_id = |n: u64| ListMessages {
        attribute: Some(("hl7.control-id".to_owned(), control_id(n))),
        limit: 50,
        ..ListMessages::default()
    };
    let by_key = search(&*store, messages, searches, by_key).await?;
    let by_id = search(&*store, messages, searches, by_id).await?;
    for (what, times) in [("key", by_key), ("control id", by_id)] {
        for (word, at) in
            [("p50", times.len() / 2), ("p99", times.len() * 99 / 100), ("longest", times.len() - 1)]
        {
            let millis = times.get(at).map_or(0.0, |took| took.as_secs_f64() * 1_000.0);
            figures.push(Figure::new(format!("search by {what} in {messages}, {word}"), millis, "ms"));
        }
    }
    store.close().await?;
    Ok(figures)
}

/// An empty store with one interface, which is number 1.
async fn open(place: &Place) -> Result<(Bench, Arc<dyn Store>)> {
    let bench = Bench::new(place).await?;
    bench.write_interface(1, "strict")?;
    let (store, _) = bench.open_store().await?;
    Ok((bench, store))
}

fn key(number: u64) -> String {
    format!("P{:08}", number / MESSAGES_OF_A_KEY)
}

fn control_id(number: u64) -> String {
    format!("MSG{number:010}")
}

async fn fill(store: &dyn Store, messages: u64, names: &[&str]) -> Result<Duration> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let began = Instant::now();
    let mut done = 0;
    while done < messages {
        let count = BATCH.min(messages - done);
        // Messages of a key lie apart, as those of a patient do.
        let spread = |n: u64| n.wrapping_mul(7_919) % messages;
        let batch = (done..done + count).map(|n| message(spread(n), &names)).collect::<Result<Vec<_>>>()?;
        store
            .write(WriteBatch {
                mark: done + 1,
                now: SystemClock::new().now(),
                durability: Durability::Relaxed,
                messages: batch,
                ..WriteBatch::default()
            })
            .await?;
        done += count;
    }
    Ok(began.elapsed())
}

fn message(number: u64, names: &[String]) -> Result<NewMessage> {
    let key = Key::new(&key(number));
    let pairs = [("hl7.control-id", control_id(number)), ("hl7.type", "ORU^R01".to_owned())];
    let attributes = Attributes::new(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())?;
    Ok(NewMessage {
        interface: InterfaceId(1),
        group: GroupId(1),
        received_at: SystemClock::new().now(),
        terms: Term::of_message(names, key.as_ref(), &attributes),
        draft: Draft {
            body: Bytes::from(vec![b'x'; BODY_BYTES]),
            key,
            dedupe: None,
            occurred_at: None,
            attributes,
            doubt: None,
        },
        dedupe: None,
        origin: None,
        edited: None,
        deliveries: Vec::new(),
    })
}

/// The times, shortest first.
async fn search(
    store: &dyn Store,
    messages: u64,
    searches: u64,
    list: impl Fn(u64) -> ListMessages,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..searches.max(1) {
        let list = list(rand::random_range(0..messages.max(1)));
        let began = Instant::now();
        let found = store.list_messages(&list).await?;
        times.push(began.elapsed());
        ensure!(!found.items.is_empty(), "a message that is there was not found");
    }
    times.sort_unstable();
    Ok(times)
}
