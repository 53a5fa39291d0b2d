//! Senders over HTTP: the plugin says what to ask and judges the answers, the host asks.
//!
//! No instance waits for a peer. In an ordered batch one request is judged before the next is
//! made, since what follows depends on it; else requests go side by side.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use portway_bindings::exports::portway::plugin::http_sender as wit;
use portway_model::SendVerdict;
use portway_net::http::{HttpError, HttpResponse};
use tokio::time::Instant as Moment;

use crate::batch::{Batch, Opened, Trace};
use crate::convert::{BATCH_INLINE_BYTES_MAX, Lie, check_count, ticket_in, trouble_in};
use crate::fault::{Call, CallError};
use crate::guest::Guest;
use crate::instance::{Instance, Use, run};
use crate::outgoing::{Outgoing, outcome_of, outgoing_in};
use crate::pool::Pool;
use crate::sender::verdict_in;
use crate::things::Things;

/// Requests of one batch at the same time.
const SIDE_BY_SIDE_MAX: usize = 32;
/// For judging what came, when the batch's own time is used up by the answers.
const JUDGE_TIME: Duration = Duration::from_secs(5);

/// An HTTP sender opened for one destination.
pub struct HttpSender {
    opened: Opened,
}

/// What to do with one message.
pub(crate) enum Plan {
    Ask(Ask),
    Decided(SendVerdict),
}

pub(crate) struct Ask {
    /// None: what it names is not granted.
    pub request: Result<Outgoing, HttpError>,
    pub ticket: Bytes,
}

/// What came of a request.
pub(crate) struct Reply {
    pub index: u32,
    pub outcome: Result<HttpResponse, HttpError>,
    pub ticket: Bytes,
}

impl HttpSender {
    pub(crate) fn new(pool: Arc<Pool>, user: Use) -> HttpSender {
        HttpSender { opened: Opened { pool, user } }
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
        let deadline = self.opened.deadline(batch.timeout);
        let result = match self.prepare(batch, deadline, &mut trace).await {
            Ok(plans) if batch.ordered => self.in_order(plans, batch, deadline, &mut trace).await,
            Ok(plans) => self.side_by_side(plans, batch, deadline, &mut trace).await,
            Err(error) => Err(error),
        };
        trace.into_call(result)
    }

    pub(crate) fn deadline(&self, timeout: Duration) -> Moment {
        self.opened.deadline(timeout)
    }

    async fn in_order(
        &self,
        plans: Vec<Plan>,
        batch: &Batch,
        deadline: Moment,
        trace: &mut Trace,
    ) -> Result<Vec<SendVerdict>, CallError> {
        let mut verdicts = Vec::with_capacity(plans.len());
        for (index, plan) in (0_u32..).zip(plans) {
            if Moment::now() >= deadline {
                break;
            }
            let verdict = match plan {
                Plan::Decided(verdict) => Some(verdict),
                Plan::Ask(ask) => {
                    let reply = self.ask(index, ask, batch, deadline).await;
                    trace.asked(&reply);
                    match self.judge(vec![reply], batch, deadline, trace).await {
                        Ok(mut judged) => judged.pop(),
                        // The next run meets it at its first message; this one keeps what was answered.
                        Err(CallError::Trouble(_)) if !verdicts.is_empty() => None,
                        Err(error) => return Err(error),
                    }
                }
            };
            let Some(verdict) = verdict else { break };
            let sent = matches!(verdict, SendVerdict::Sent(_));
            if sent {
                trace.arrived(index);
            }
            verdicts.push(verdict);
            if !sent {
                break;
            }
        }
        verdicts.resize(batch.messages.len(), SendVerdict::Untried);
        Ok(verdicts)
    }

    async fn side_by_side(
        &self,
        plans: Vec<Plan>,
        batch: &Batch,
        deadline: Moment,
        trace: &mut Trace,
    ) -> Result<Vec<SendVerdict>, CallError> {
        let mut verdicts = vec![SendVerdict::Untried; plans.len()];
        let mut asks = Vec::new();
        for ((index, plan), verdict) in (0_u32..).zip(plans).zip(&mut verdicts) {
            match plan {
                Plan::Decided(decided) => *verdict = decided,
                Plan::Ask(ask) => asks.push((index, ask)),
            }
        }
        let asked = asks.into_iter().map(|(index, ask)| self.ask(index, ask, batch, deadline));
        let replies: Vec<Reply> = stream::iter(asked).buffered(SIDE_BY_SIDE_MAX).collect().await;
        replies.iter().for_each(|reply| trace.asked(reply));
        if !replies.is_empty() {
            let indexes: Vec<u32> = replies.iter().map(|reply| reply.index).collect();
            let judged = self.judge(replies, batch, deadline, trace).await?;
            for (index, judged) in indexes.into_iter().zip(judged) {
                if let Some(verdict) = verdicts.get_mut(index as usize) {
                    *verdict = judged;
                }
            }
        }
        for (index, verdict) in (0_u32..).zip(&verdicts) {
            if matches!(verdict, SendVerdict::Sent(_)) {
                trace.arrived(index);
            }
        }
        Ok(verdicts)
    }

    /// Makes one request under its grant, within what is left of the time.
    async fn ask(&self, index: u32, ask: Ask, batch: &Batch, deadline: Moment) -> Reply {
        let outcome = match ask.request {
            Err(error) => Err(error),
            Ok(mut outgoing) => {
                let parents = batch.watch.as_ref().map(|watch| &watch.parents);
                if let Some(Some(parent)) = parents.and_then(|parents| parents.get(index as usize)) {
                    self.opened.pool.reach.trace(&mut outgoing, parent);
                }
                self.opened.pool.reach.ask(outgoing, deadline).await
            }
        };
        Reply { index, outcome, ticket: ask.ticket }
    }

    pub(crate) async fn prepare(
        &self,
        batch: &Batch,
        deadline: Moment,
        trace: &mut Trace,
    ) -> Result<Vec<Plan>, CallError> {
        let mut lease = self.opened.lease(deadline).await?;
        let result = self.prepare_in(&mut lease.instance, &self.opened.user, batch, deadline, trace).await;
        self.opened.release(lease, result)
    }

    async fn prepare_in(
        &self,
        instance: &mut Instance,
        user: &Use,
        batch: &Batch,
        deadline: Moment,
        trace: &mut Trace,
    ) -> Result<Vec<Plan>, CallError> {
        let resource = instance.resource(user, deadline).await?;
        let fuel = instance.fuel_of(batch.messages.len());
        instance.start(&user.opening.observer, &mut batch.ids(), fuel, deadline)?;
        trace.lend(instance, batch, &[]);
        let messages = batch.to_wit(instance.store.data_mut(), deadline);
        let meter = instance.wasi_meter();
        let Instance { exports, store, .. } = &mut *instance;
        let call =
            async { exports.http_sender()?.destination().call_prepare(store, resource, &messages).await };
        let outcome = run(deadline, &meter, call).await;
        trace.note(instance);
        let plans = match instance.finish(outcome)? {
            Ok(plans) => plans,
            Err(trouble) => {
                let trouble = trouble_in(trouble).map_err(|lie| instance.lie(lie, None))?;
                return Err(CallError::Trouble(trouble));
            }
        };
        check_count("plans", plans.len(), batch.messages.len()).map_err(|lie| instance.lie(lie, None))?;
        let mut read = Vec::with_capacity(plans.len());
        for (index, plan) in (0_u32..).zip(plans) {
            let plan = plan_in(instance.store.data_mut(), plan, batch);
            read.push(plan.map_err(|lie| instance.lie(format!("plan {index}: {lie}"), Some(index)))?);
        }
        Ok(read)
    }

    /// One verdict a reply, in order.
    pub(crate) async fn judge(
        &self,
        replies: Vec<Reply>,
        batch: &Batch,
        deadline: Moment,
        trace: &mut Trace,
    ) -> Result<Vec<SendVerdict>, CallError> {
        let deadline = deadline.max(Moment::now() + JUDGE_TIME);
        let mut lease = self.opened.lease(deadline).await?;
        let result = judge_in(&mut lease.instance, &self.opened.user, replies, batch, deadline, trace).await;
        self.opened.release(lease, result)
    }
}

impl Trace {
    /// A request was made: until its answer is judged nobody is sure of it.
    fn asked(&mut self, reply: &Reply) {
        if reply.outcome.as_ref().map_or_else(HttpError::may_have_arrived, |_| true) {
            self.unsure.push(reply.index);
        }
    }
}

async fn judge_in(
    instance: &mut Instance,
    user: &Use,
    replies: Vec<Reply>,
    batch: &Batch,
    deadline: Moment,
    trace: &mut Trace,
) -> Result<Vec<SendVerdict>, CallError> {
    let resource = instance.resource(user, deadline).await?;
    let indexes: Vec<u32> = replies.iter().map(|reply| reply.index).collect();
    let answered: Vec<u32> =
        replies.iter().filter(|reply| reply.outcome.is_ok()).map(|reply| reply.index).collect();
    let ids =
        indexes.iter().filter_map(|index| batch.messages.get(*index as usize)).map(|message| message.id.0);
    let fuel = instance.fuel_of(replies.len());
    instance.start(&user.opening.observer, &mut { ids }, fuel, deadline)?;
    trace.lend(instance, batch, &indexes);
    let things = &mut instance.store.data_mut().things;
    let mut inline_left = BATCH_INLINE_BYTES_MAX;
    let replies: Vec<_> =
        replies.into_iter().map(|reply| reply_of(things, reply, &mut inline_left)).collect();
    let meter = instance.wasi_meter();
    let Instance { exports, store, .. } = &mut *instance;
    let call = async { exports.http_sender()?.destination().call_judge(store, resource, &replies).await };
    let outcome = run(deadline, &meter, call).await;
    trace.note(instance);
    // What was begun here is a reply; outside it is the message it answers.
    let message_at = |reply: u32| indexes.get(reply as usize).copied();
    trace.begun = trace.begun.and_then(message_at);
    let verdicts = match instance.finish(outcome) {
        Ok(Ok(verdicts)) => verdicts,
        Ok(Err(trouble)) => {
            let trouble = trouble_in(trouble).map_err(|lie| instance.lie(lie, None))?;
            // It has seen the whole answers, and none of them took a message.
            trace.unsure.retain(|index| !answered.contains(index));
            return Err(CallError::Trouble(trouble));
        }
        Err(mut fault) => {
            fault.begun = trace.begun;
            return Err(fault.into());
        }
    };
    check_count("verdicts", verdicts.len(), indexes.len()).map_err(|lie| instance.lie(lie, None))?;
    let mut read = Vec::with_capacity(verdicts.len());
    for (index, verdict) in indexes.into_iter().zip(verdicts) {
        let verdict = verdict_in(verdict);
        read.push(
            verdict.map_err(|lie| instance.lie(format!("verdict of message {index}: {lie}"), Some(index)))?,
        );
    }
    // Its verdict knows the whole answer.
    trace.unsure.retain(|index| !answered.contains(index));
    Ok(read)
}

fn plan_in(guest: &mut Guest, plan: wit::Plan, batch: &Batch) -> Result<Plan, Lie> {
    match plan {
        wit::Plan::Decided(verdict) => Ok(Plan::Decided(verdict_in(verdict)?)),
        wit::Plan::Ask(ask) => {
            let ticket = ticket_in(ask.ticket)?;
            let message = |_: &Guest, index: usize| Some(batch.messages.get(index)?.body.clone());
            let request = outgoing_in(guest, ask.request, message)?;
            Ok(Plan::Ask(Ask { request, ticket }))
        }
    }
}

fn reply_of(things: &mut Things, reply: Reply, inline_left: &mut usize) -> wit::Reply {
    wit::Reply { outcome: outcome_of(things, reply.outcome, inline_left), ticket: reply.ticket.to_vec() }
}
