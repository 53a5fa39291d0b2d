//! HTTP sources: one call finds the messages of a request, another makes the answer.
//!
//! Routing, authentication and limits of the request are the caller's. What a plugin answers is
//! checked here: status, headers and size.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_bindings::exports::portway::plugin::http_source as wit;
use portway_bindings::portway::plugin::types as wit_types;
use portway_model::{Attributes, Cost};
use tokio::time::Instant as Moment;

use crate::batch::Opened;
use crate::convert::{Lie, body_of, failure_in, ticket_in};
use crate::fault::CallError;
use crate::instance::{Instance, Use, run};
use crate::kept::Kept;
use crate::pool::Pool;
use crate::source::{Receipt, SourceError, SourceItem, items_in, receipts_of};

/// Bytes of an answer's body.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 8 << 10;
/// Fuel for each byte of a request, beside what a message may use: it may hold many.
pub(crate) const FUEL_PER_BYTE: u64 = 1_000;
/// Headers that are the host's: of the connection, and of how a body is framed.
const HOST_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// An HTTP source opened for one interface. Cheap to clone.
#[derive(Clone)]
pub struct HttpSource {
    opened: Arc<Opened>,
}

/// One request, whole.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: String,
    /// Path and query as received.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `address`, `port` and, where known, `tls.subject` and `user`.
    pub peer: Attributes,
    pub body: Bytes,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// 200 to 599.
    pub status: u16,
    /// Valid names and values, none of them the host's.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Store these, then settle with the ticket.
    Accept {
        items: Vec<SourceItem>,
        ticket: Bytes,
        /// What reading the request cost; zero where calls are not timed.
        cost: Cost,
    },
    /// Status 400 to 599.
    Refuse(HttpAnswer),
    /// It carries no message.
    Answer(HttpAnswer),
}

impl HttpSource {
    pub(crate) fn new(pool: Arc<Pool>, user: Use) -> HttpSource {
        HttpSource { opened: Arc::new(Opened { pool, user }) }
    }

    /// Opens it now, to see whether it takes its settings.
    pub async fn check(&self) -> Result<(), CallError> {
        self.opened.check().await
    }

    /// What to do with a request.
    pub async fn receive(&self, request: &HttpRequest) -> Result<Decision, SourceError> {
        let deadline = self.opened.deadline(Duration::MAX);
        let mut lease = self.opened.lease(deadline).await?;
        let result = self.receive_in(&mut lease.instance, request, deadline).await;
        match result {
            Err(SourceError::Fault(_)) => drop(lease),
            _ => lease.give_back(self.opened.user.opening.isolation),
        }
        result
    }

    /// The answer, after the commit; any instance can give it.
    pub async fn settle(&self, ticket: &Bytes, receipts: Vec<Receipt>) -> Result<HttpAnswer, SourceError> {
        let deadline = self.opened.deadline(Duration::MAX);
        let mut lease = self.opened.lease(deadline).await?;
        let receipts = receipts_of(receipts);
        let result = settle_in(&mut lease.instance, &self.opened.user, ticket, &receipts, deadline).await;
        match result {
            Err(SourceError::Fault(_)) => drop(lease),
            _ => lease.give_back(self.opened.user.opening.isolation),
        }
        result
    }

    async fn receive_in(
        &self,
        instance: &mut Instance,
        request: &HttpRequest,
        deadline: Moment,
    ) -> Result<Decision, SourceError> {
        let user = &self.opened.user;
        let resource = instance.resource(user, deadline).await?;
        let fuel = user.opening.limits.fuel_per_message + FUEL_PER_BYTE * request.body.len() as u64;
        instance
            .start(&user.opening.observer, &mut std::iter::empty(), fuel, deadline)
            .map_err(SourceError::Fault)?;
        let asked = request_of(instance, request);
        let meter = instance.wasi_meter();
        let timer = user.opening.timer();
        let Instance { exports, store, .. } = &mut *instance;
        let call = async { exports.http_source()?.endpoint().call_receive(store, resource, &asked).await };
        let outcome = run(deadline, &meter, call).await;
        let cost = timer.cost(instance);
        let decided = instance.finish(outcome).map_err(SourceError::Fault)?;
        let decision = decided.map_err(|failure| SourceError::Refused(failure_in(failure)))?;
        let control = self.opened.pool.plugin.manifest.control;
        let decision = decision_in(instance, (&request.body, cost), control, decision);
        decision.map_err(|lie| SourceError::Fault(instance.lie(lie, None)))
    }
}

async fn settle_in(
    instance: &mut Instance,
    user: &Use,
    ticket: &Bytes,
    receipts: &[wit_types::Receipt],
    deadline: Moment,
) -> Result<HttpAnswer, SourceError> {
    let resource = instance.resource(user, deadline).await?;
    let fuel = instance.fuel_of(receipts.len());
    instance
        .start(&user.opening.observer, &mut std::iter::empty(), fuel, deadline)
        .map_err(SourceError::Fault)?;
    let meter = instance.wasi_meter();
    let Instance { exports, store, .. } = &mut *instance;
    let call =
        async { exports.http_source()?.endpoint().call_settle(store, resource, ticket, receipts).await };
    let outcome = run(deadline, &meter, call).await;
    let settled = instance.finish(outcome).map_err(SourceError::Fault)?;
    let answer = settled.map_err(|failure| SourceError::Refused(failure_in(failure)))?;
    answer_in(answer, 200).map_err(|lie| SourceError::Fault(instance.lie(lie, None)))
}

fn request_of(instance: &mut Instance, request: &HttpRequest) -> wit::Request {
    wit::Request {
        method: request.method.clone(),
        target: request.target.clone(),
        headers: request.headers.clone(),
        peer: request.peer.pairs().to_vec(),
        body: body_of(&mut instance.store.data_mut().things, &request.body),
    }
}

fn decision_in(
    instance: &mut Instance,
    (body, cost): (&Bytes, Cost),
    control: bool,
    decision: wit::Decision,
) -> Result<Decision, Lie> {
    Ok(match decision {
        wit::Decision::Accept(accepted) => {
            let mut input = Kept::new(0);
            input.push(body.clone());
            let fed = input.end();
            let items = items_in(instance.store.data_mut(), &input, fed, control, accepted.items)?;
            Decision::Accept { items, ticket: ticket_in(accepted.ticket)?, cost }
        }
        wit::Decision::Refuse(answer) => Decision::Refuse(answer_in(answer, 400)?),
        wit::Decision::Answer(_) if !control => {
            return Err("`answer` without `control = true` in the manifest".into());
        }
        wit::Decision::Answer(answer) => Decision::Answer(answer_in(answer, 200)?),
    })
}

fn answer_in(answer: wit::Response, status_min: u16) -> Result<HttpAnswer, Lie> {
    if answer.status < status_min || answer.status > 599 {
        return Err(format!("status {} is not {status_min} to 599", answer.status));
    }
    if answer.body.len() > ANSWER_BYTES_MAX {
        let bytes = answer.body.len();
        return Err(format!("an answer of {bytes} bytes, at most {ANSWER_BYTES_MAX} are allowed"));
    }
    if answer.headers.len() > HEADERS_MAX {
        return Err(format!("{} headers, at most {HEADERS_MAX} are allowed", answer.headers.len()));
    }
    for (name, value) in &answer.headers {
        check_header(name, value)?;
    }
    Ok(HttpAnswer { status: answer.status, headers: answer.headers, body: answer.body.into() })
}

fn check_header(name: &str, value: &str) -> Result<(), Lie> {
    let is_token = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    if !is_token {
        return Err("the name of a header is no token".into());
    }
    if HOST_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return Err(format!("the header `{name}` is the host's"));
    }
    let is_plain = value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F));
    if !is_plain || name.len() + value.len() > HEADER_BYTES_MAX {
        return Err(format!("the value of the header `{name}` has control characters or is too long"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)]) -> wit::Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        wit::Response { status, headers: headers.collect(), body: Vec::new() }
    }

    #[test]
    fn an_answer_has_a_status_of_its_kind_and_headers_of_its_own() {
        assert!(answer_in(response(202, &[("Retry-After", "5")]), 200).is_ok());
        let lies = [
            (response(202, &[]), "status 202 is not 400"),
            (response(600, &[]), "status 600"),
            (response(400, &[("Content-Length", "5")]), "is the host's"),
            (response(400, &[("x y", "5")]), "no token"),
            (response(400, &[("x", "5\r\nx: 6")]), "control characters"),
        ];
        for (lie, says) in lies {
            let error = answer_in(lie, 400).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
