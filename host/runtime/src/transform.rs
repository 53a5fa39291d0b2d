//! Transforms: a batch of messages, a verdict each.

use std::sync::Arc;

use portway_bindings::exports::portway::plugin::transform as wit;
use portway_model::{Output, TransformVerdict};
use tokio::time::Instant as Moment;

use crate::batch::{Batch, Opened, Trace};
use crate::convert::{Lie, attributes_in, body_in, check_count, failure_in, key_in, later_in, trouble_in};
use crate::fault::{Call, CallError};
use crate::fault_text::{Lines, cut, escape};
use crate::guest::Guest;
use crate::instance::{Instance, Use, run};
use crate::pool::Pool;

/// Bytes of the reason of a filter.
const REASON_BYTES_MAX: usize = 4096;

/// A transform opened for one destination.
pub struct Transformer {
    opened: Opened,
}

impl Transformer {
    pub(crate) fn new(pool: Arc<Pool>, user: Use) -> Transformer {
        Transformer { opened: Opened { pool, user } }
    }

    /// As the project calls it.
    pub fn plugin(&self) -> &str {
        &self.opened.pool.plugin.facts.name
    }

    /// Opens it now, to see whether it takes its settings.
    pub async fn check(&self) -> Result<(), CallError> {
        self.opened.check().await
    }

    /// Whether it is granted a state.
    pub fn keeps_state(&self) -> bool {
        self.opened.pool.reach.state.is_some()
    }

    /// One verdict a message, in order.
    pub async fn transform(&self, batch: &Batch) -> Call<Vec<TransformVerdict>> {
        let mut trace = Trace::default();
        let result = self.attempt(batch, &mut trace).await;
        trace.into_call(result)
    }

    async fn attempt(&self, batch: &Batch, trace: &mut Trace) -> Result<Vec<TransformVerdict>, CallError> {
        let deadline = self.opened.deadline(batch.timeout);
        let mut lease = self.opened.lease(deadline).await?;
        let result = transform_in(&mut lease.instance, &self.opened.user, batch, deadline, trace).await;
        self.opened.release(lease, result)
    }
}

async fn transform_in(
    instance: &mut Instance,
    user: &Use,
    batch: &Batch,
    deadline: Moment,
    trace: &mut Trace,
) -> Result<Vec<TransformVerdict>, CallError> {
    let resource = instance.resource(user, deadline).await?;
    let fuel = instance.fuel_of(batch.messages.len());
    instance.start(&user.opening.observer, &mut batch.ids(), fuel, deadline)?;
    trace.lend(instance, batch, &[]);
    let messages = batch.to_wit(instance.store.data_mut(), deadline);
    let meter = instance.wasi_meter();
    let Instance { exports, store, .. } = &mut *instance;
    let call = async { exports.transform()?.transformer().call_transform(store, resource, &messages).await };
    let outcome = run(deadline, &meter, call).await;
    trace.note(instance);
    let verdicts = match instance.finish(outcome)? {
        Ok(verdicts) => verdicts,
        Err(trouble) => {
            let trouble = trouble_in(trouble).map_err(|lie| instance.lie(lie, None))?;
            return Err(CallError::Trouble(trouble));
        }
    };
    check_count("verdicts", verdicts.len(), batch.messages.len()).map_err(|lie| instance.lie(lie, None))?;
    let mut read = Vec::with_capacity(verdicts.len());
    for (index, verdict) in (0_u32..).zip(verdicts) {
        let verdict = verdict_in(instance.store.data_mut(), verdict);
        read.push(verdict.map_err(|lie| instance.lie(format!("verdict {index}: {lie}"), Some(index)))?);
    }
    Ok(read)
}

fn verdict_in(guest: &mut Guest, verdict: wit::Verdict) -> Result<TransformVerdict, Lie> {
    Ok(match verdict {
        wit::Verdict::Pass => TransformVerdict::Pass,
        wit::Verdict::Deliver(outputs) if outputs.is_empty() => {
            return Err("`deliver` without an output".into());
        }
        wit::Verdict::Deliver(outputs) => {
            let outputs = outputs.into_iter().map(|output| output_in(guest, output));
            TransformVerdict::Deliver(outputs.collect::<Result<_, _>>()?)
        }
        wit::Verdict::Filter(reason) => {
            TransformVerdict::Filter(escape(cut(&reason, REASON_BYTES_MAX), Lines::One))
        }
        wit::Verdict::Quarantine(failure) => TransformVerdict::Quarantine(failure_in(failure)),
        wit::Verdict::Retry(later) => TransformVerdict::Retry(later_in(later)?),
    })
}

fn output_in(guest: &mut Guest, output: wit::Output) -> Result<Output, Lie> {
    let attributes = attributes_in(&guest.facts, output.attributes)?;
    Ok(Output { key: key_in(output.key, "a key")?, attributes, body: body_in(guest, output.body)? })
}
