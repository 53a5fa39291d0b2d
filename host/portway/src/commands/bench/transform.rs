//! `oru-to-json` as the engine calls it, on one core, with fuel.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use portway_config::{Environment, Role};
use portway_model::{AttemptNo, Attributes, Envelope, MessageId, Timestamp, TransformVerdict};
use portway_runtime::{Batch, Opening, Runtime, RuntimeSettings};

use super::engine::Bench;
use super::figure::Figure;
use super::place::Place;
use crate::traffic::Template;
use crate::traffic::message::{KEY_PREFIX, SIZE};
use crate::wiring::PluginCatalog;

const PLUGIN: &str = "oru-to-json";

/// Messages a second.
pub async fn measure(duration: Duration, batch: usize) -> Result<Vec<Figure>> {
    let bench = Bench::new(&Place::in_files()).await?;
    let draft = portway_config::read(bench.path(), &Environment::of_process());
    let catalog = PluginCatalog::of(draft.project().context("the project cannot be read")?);
    let component = catalog.find(Role::Transform, PLUGIN)?;
    let runtime = Runtime::new(RuntimeSettings::default())?;
    let plugin = runtime.load(PLUGIN, &component.bytes).await?;
    let transformer = plugin.transformer(Opening::new("bench", "bench", "{}"))?;
    let messages = envelopes(batch);
    let bytes: usize = messages.iter().map(|message| message.body.len()).sum();
    let batch = Batch {
        store: "bench".into(),
        ordered: true,
        timeout: Duration::from_secs(30),
        messages,
        watch: None,
    };
    let (mut count, mut fuel) = (0_u64, 0_u64);
    let began = Instant::now();
    while began.elapsed() < duration {
        let call = transformer.transform(&batch).await;
        let verdicts = call.result?;
        if !verdicts.iter().all(|verdict| matches!(verdict, TransformVerdict::Deliver(_))) {
            bail!("a message was not transformed: {:?}", verdicts.first());
        }
        count += verdicts.len() as u64;
        fuel += call.fuel;
    }
    let per_second = count as f64 / began.elapsed().as_secs_f64();
    let size = bytes / batch.messages.len().max(1);
    let case = format!("transform {PLUGIN}, {size} bytes, {} fuel each", fuel / count.max(1));
    Ok(vec![Figure::new(case, per_second, "messages/s")])
}

fn envelopes(count: usize) -> Vec<Envelope> {
    let template = Template::new(SIZE);
    let one = |number: usize| {
        let key = format!("{KEY_PREFIX}{number:04}");
        Envelope {
            id: MessageId(number as u64 + 1),
            received_at: Timestamp(1_796_000_000_000),
            attempt: AttemptNo(1),
            key: None,
            attributes: Arc::new(Attributes::default()),
            body: Bytes::from(template.message(&key, number as u64)),
        }
    };
    (0..count).map(one).collect()
}
