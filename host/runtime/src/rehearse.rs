//! Rehearsals of HTTP senders: what a sender asks and how it judges, with stated answers.
//!
//! Nothing leaves the process. What a request has to look like on its way is the connector's.

use portway_model::SendVerdict;
use portway_net::http::{HttpError, HttpResponse};

use crate::batch::{Batch, Trace};
use crate::fault::{Call, CallError};
use crate::http_sender::{HttpSender, Plan, Reply};
use crate::outgoing::Asked;

/// What came of a rehearsal for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsed {
    /// The sender decided without asking.
    Decided(SendVerdict),
    /// It would ask; without an answer there is no verdict.
    Asks(Asked, Option<SendVerdict>),
    /// What it asks is not granted; the verdict is what it says of that.
    Refused(String, Option<SendVerdict>),
}

impl HttpSender {
    /// What the sender asks for each message, and what it says of the answers that `answer` has.
    pub async fn rehearse(
        &self,
        batch: &Batch,
        mut answer: impl FnMut(&Asked) -> Option<Result<HttpResponse, HttpError>>,
    ) -> Call<Vec<Rehearsed>> {
        let mut trace = Trace::default();
        let result = self.rehearse_in(batch, &mut answer, &mut trace).await;
        trace.into_call(result)
    }

    async fn rehearse_in(
        &self,
        batch: &Batch,
        answer: &mut impl FnMut(&Asked) -> Option<Result<HttpResponse, HttpError>>,
        trace: &mut Trace,
    ) -> Result<Vec<Rehearsed>, CallError> {
        let deadline = self.deadline(batch.timeout);
        let plans = self.prepare(batch, deadline, trace).await?;
        let mut rehearsed = Vec::with_capacity(plans.len());
        for (index, plan) in (0_u32..).zip(plans) {
            let ask = match plan {
                Plan::Decided(verdict) => {
                    rehearsed.push(Rehearsed::Decided(verdict));
                    continue;
                }
                Plan::Ask(ask) => ask,
            };
            let (asked, outcome) = match ask.request {
                Err(error) => (Err(error.to_string()), Some(Err(error))),
                Ok(request) => {
                    let asked = request.into_asked();
                    let outcome = answer(&asked);
                    (Ok(asked), outcome)
                }
            };
            let verdict = match outcome {
                None => None,
                Some(outcome) => {
                    let reply = Reply { index, outcome, ticket: ask.ticket };
                    self.judge(vec![reply], batch, deadline, trace).await?.pop()
                }
            };
            rehearsed.push(match asked {
                Ok(asked) => Rehearsed::Asks(asked, verdict),
                Err(text) => Rehearsed::Refused(text, verdict),
            });
        }
        Ok(rehearsed)
    }
}
