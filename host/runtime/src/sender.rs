//! Senders that do their own conversation through services.

use std::sync::Arc;

use portway_bindings::exports::portway::plugin::sender as wit;
use portway_model::{Answer, Failure, SendVerdict};
use tokio::time::Instant as Moment;

use crate::batch::{Batch, Opened, Trace};
use crate::convert::{Lie, check_count, failure_in, later_in, trouble_in};
use crate::fault::{Call, CallError};
use crate::instance::{Instance, Use, run};
use crate::pool::Pool;

/// A sender opened for one destination.
pub struct Sender {
    opened: Opened,
}

impl Sender {
    pub(crate) fn new(pool: Arc<Pool>, user: Use) -> Sender {
        Sender { opened: Opened { pool, user } }
    }

    /// As the project calls it.
    pub fn plugin(&self) -> &str {
        &self.opened.pool.plugin.facts.name
    }

    /// Opens it now, to see whether it takes its settings.
    pub async fn check(&self) -> Result<(), CallError> {
        self.opened.check().await
    }

    /// One verdict a message, in order. Messages in `sent` have arrived, whatever the result.
    pub async fn send(&self, batch: &Batch) -> Call<Vec<SendVerdict>> {
        let mut trace = Trace::default();
        let result = self.attempt(batch, &mut trace).await;
        if trace.reached {
            // What of its conversation was whose only the plugin knows.
            trace.unsure = (0_u32..).take(batch.messages.len()).collect();
        }
        trace.into_call(result)
    }

    async fn attempt(&self, batch: &Batch, trace: &mut Trace) -> Result<Vec<SendVerdict>, CallError> {
        let deadline = self.opened.deadline(batch.timeout);
        let mut lease = self.opened.lease(deadline).await?;
        let result = send_in(&mut lease.instance, &self.opened.user, batch, deadline, trace).await;
        self.opened.release(lease, result)
    }
}

async fn send_in(
    instance: &mut Instance,
    user: &Use,
    batch: &Batch,
    deadline: Moment,
    trace: &mut Trace,
) -> Result<Vec<SendVerdict>, CallError> {
    let resource = instance.resource(user, deadline).await?;
    let fuel = instance.fuel_of(batch.messages.len());
    instance.start(&user.opening.observer, &mut batch.ids(), fuel, deadline)?;
    trace.lend(instance, batch, &[]);
    let messages = batch.to_wit(instance.store.data_mut(), deadline);
    let meter = instance.wasi_meter();
    let Instance { exports, store, .. } = &mut *instance;
    let call = async { exports.sender()?.destination().call_send(store, resource, &messages).await };
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
    read_verdicts(batch.ordered, verdicts, trace)
        .map_err(|(lie, index)| instance.lie(lie, Some(index)).into())
}

/// Reads verdicts, and notes what arrived also where one of them is a lie.
fn read_verdicts(
    ordered: bool,
    verdicts: Vec<wit::Verdict>,
    trace: &mut Trace,
) -> Result<Vec<SendVerdict>, (Lie, u32)> {
    let promised = trace.sent.clone();
    for (index, verdict) in (0_u32..).zip(&verdicts) {
        if matches!(verdict, wit::Verdict::Sent(_)) {
            trace.arrived(index);
        }
    }
    let mut read = Vec::with_capacity(verdicts.len());
    let mut ended = false;
    for (index, verdict) in (0_u32..).zip(verdicts) {
        let verdict = verdict_in(verdict).map_err(|lie| (format!("verdict {index}: {lie}"), index))?;
        let sent = matches!(verdict, SendVerdict::Sent(_));
        let untried = matches!(verdict, SendVerdict::Untried);
        if ordered && ended && !untried {
            let lie = "in an ordered batch what follows a message that was not sent must be `untried`";
            return Err((format!("verdict {index}: {lie}"), index));
        }
        if !sent && promised.contains(&index) {
            return Err((format!("verdict {index} is not `sent`, after `sent({index})`"), index));
        }
        ended |= !sent;
        read.push(verdict);
    }
    Ok(read)
}

/// A verdict of a sender, also of one over HTTP.
pub(crate) fn verdict_in(verdict: wit::Verdict) -> Result<SendVerdict, Lie> {
    Ok(match verdict {
        wit::Verdict::Sent(answer) => {
            let shown = Failure::new(answer.code, answer.text);
            SendVerdict::Sent(Answer { code: shown.code, text: shown.text })
        }
        wit::Verdict::Untried => SendVerdict::Untried,
        wit::Verdict::Retry(later) => SendVerdict::Retry(later_in(later)?),
        wit::Verdict::Quarantine(failure) => SendVerdict::Quarantine(failure_in(failure)),
    })
}

#[cfg(test)]
mod tests {
    use portway_bindings::portway::plugin::types::{Failure as WitFailure, Later as WitLater};

    use super::*;

    fn sent() -> wit::Verdict {
        wit::Verdict::Sent(wit::Answer { code: "ok".into(), text: String::new() })
    }

    fn retry(after_ms: Option<u32>) -> wit::Verdict {
        let failure = WitFailure { code: "busy".into(), text: String::new() };
        wit::Verdict::Retry(WitLater { failure, after_ms })
    }

    fn check(ordered: bool, verdicts: Vec<wit::Verdict>) -> (Result<usize, u32>, Vec<u32>) {
        let mut trace = Trace::default();
        let read = read_verdicts(ordered, verdicts, &mut trace);
        (read.map(|verdicts| verdicts.len()).map_err(|(_, index)| index), trace.sent)
    }

    #[test]
    fn in_order_only_untried_follows_what_was_not_sent() {
        let lie = || vec![sent(), retry(None), sent(), wit::Verdict::Untried];
        assert_eq!(check(true, lie()), (Err(2), vec![0, 2]));
        assert_eq!(check(false, lie()), (Ok(4), vec![0, 2]));
        assert_eq!(check(true, vec![sent(), retry(None), wit::Verdict::Untried]), (Ok(3), vec![0]));
        assert_eq!(check(true, vec![wit::Verdict::Untried, retry(None)]), (Err(1), vec![]));
    }

    #[test]
    fn a_wait_that_javascript_cannot_count_is_a_lie() {
        assert_eq!(check(false, vec![sent(), retry(Some(1 << 31))]), (Err(1), vec![0]));
        assert_eq!(check(false, vec![retry(Some((1 << 31) - 1))]), (Ok(1), vec![]));
    }
}
