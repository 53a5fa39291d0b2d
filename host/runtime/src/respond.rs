//! Components of `wasi:http` that answer requests themselves: one call is one request.
//!
//! Request and answer are whole: the body is there before the call, and the answer is given when
//! the call has ended well. So no instance waits for a slow peer, and a fault after the first bytes
//! of an answer is still a fault. Routing and authentication are the caller's.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use portway_model::{Failure, code};
use tokio::sync::oneshot;
use tokio::time::Instant as Moment;
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme as WasiScheme};
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;

use crate::batch::Opened;
use crate::convert::Lie;
use crate::fault::{CallError, Fault};
use crate::http_source::FUEL_PER_BYTE;
use crate::instance::{Instance, run};

/// Variables of an environment, and bytes of all of them.
const VARIABLES_MAX: usize = 256;
const ENVIRONMENT_BYTES_MAX: usize = 64 << 10;

/// A component opened for one interface.
pub struct Responder {
    opened: Opened,
    /// Why its settings cannot be an environment.
    refused: Option<Failure>,
    answer_bytes_max: usize,
}

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Why a component gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum RespondError {
    #[error("{0}")]
    Fault(Box<Fault>),
    /// It said that it has none, or its settings do not fit.
    #[error("{0}")]
    Refused(Failure),
    /// No instance became free in time.
    #[error("no instance of the component became free in time")]
    Busy,
}

/// What became of the answer itself.
enum Unanswered {
    /// The call ended without one.
    None,
    Code(ErrorCode),
    Broken(Lie),
}

type Collected = Result<Response<Bytes>, Unanswered>;
type Outgoing = Result<Response<HyperOutgoingBody>, ErrorCode>;

impl Responder {
    pub(crate) fn new(opened: Opened, refused: Option<Failure>, answer_bytes_max: usize) -> Responder {
        Responder { opened, refused, answer_bytes_max }
    }

    /// Makes an instance, to see whether it starts.
    pub async fn check(&self) -> Result<(), CallError> {
        if let Some(failure) = &self.refused {
            return Err(CallError::Open(failure.clone()));
        }
        let lease = self.opened.lease(self.opened.deadline(Duration::MAX)).await?;
        self.opened.release(lease, Ok(()))
    }

    /// The answer to a request.
    pub async fn respond(
        &self,
        scheme: Scheme,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, RespondError> {
        if let Some(failure) = &self.refused {
            return Err(RespondError::Refused(failure.clone()));
        }
        let deadline = self.opened.deadline(Duration::MAX);
        let mut lease = self.opened.lease(deadline).await?;
        let is_head = request.method() == Method::HEAD;
        let answered = self.respond_in(&mut lease.instance, scheme, request, deadline).await;
        match &answered {
            Err(RespondError::Fault(_)) => drop(lease),
            Ok(_) | Err(RespondError::Refused(_) | RespondError::Busy) => {
                lease.give_back(self.opened.user.opening.isolation);
            }
        }
        answered.map(|answer| finished(answer, is_head))
    }

    async fn respond_in(
        &self,
        instance: &mut Instance,
        scheme: Scheme,
        mut request: Request<Bytes>,
        deadline: Moment,
    ) -> Result<Response<Bytes>, RespondError> {
        let opening = &self.opened.user.opening;
        let fuel = opening.limits.fuel_per_message + FUEL_PER_BYTE * request.body().len() as u64;
        instance.start(&opening.observer, &mut std::iter::empty(), fuel, deadline)?;
        name_host(request.headers_mut());
        let (sender, receiver) = oneshot::channel();
        let meter = instance.wasi_meter();
        let Instance { exports, store, .. } = &mut *instance;
        let call = async {
            let mut http = store.data_mut().http();
            let request = http.new_incoming_request(scheme.into(), request.map(Full::new))?;
            let answer = http.new_response_outparam(sender)?;
            exports.respond()?.call_handle(&mut *store, request, answer).await
        };
        let called = {
            let mut call = pin!(run(deadline, &meter, call));
            // It has no time of its own: what ends the call ends it.
            let mut collecting = pin!(tokio::task::unconstrained(collect(receiver, self.answer_bytes_max)));
            tokio::select! {
                biased;
                collected = &mut collecting => match collected {
                    Err(Unanswered::Broken(lie)) => Err(lie),
                    collected => Ok((call.await, collected)),
                },
                outcome = &mut call => {
                    let ended = collecting.now_or_never();
                    let without_end = || Err(Unanswered::Broken("the body of its answer has no end".into()));
                    Ok((outcome, ended.unwrap_or_else(without_end)))
                }
            }
        };
        let (outcome, collected) = called.map_err(|lie| instance.lie(lie, None))?;
        instance.finish(outcome)?;
        match collected {
            Ok(answer) => Ok(answer),
            Err(Unanswered::Code(error)) => {
                let text = format!("the component answered with the error `{error:?}`");
                Err(RespondError::Refused(Failure::new(code::REFUSED, text)))
            }
            Err(Unanswered::None) => Err(instance.lie("it returned without an answer".into(), None).into()),
            Err(Unanswered::Broken(lie)) => Err(instance.lie(lie, None).into()),
        }
    }
}

/// The whole answer, as soon as it has one.
async fn collect(receiver: oneshot::Receiver<Outgoing>, bytes_max: usize) -> Collected {
    let response = receiver.await.map_err(|_| Unanswered::None)?.map_err(Unanswered::Code)?;
    let (head, body) = response.into_parts();
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Unanswered::Broken(format!("an answer of more than {bytes_max} bytes")))
        }
        Err(_) => Err(Unanswered::Broken("the body of its answer broke off".into())),
    }
}

/// How long the body is, is known now; of an answer without one the component may say it.
fn finished(mut answer: Response<Bytes>, is_head: bool) -> Response<Bytes> {
    if !is_head {
        answer.headers_mut().remove(CONTENT_LENGTH);
    }
    answer
}

/// Every request has a host, of which a component is told as text.
fn name_host(headers: &mut HeaderMap) {
    if headers.get(HOST).is_none_or(|host| host.to_str().is_err()) {
        headers.insert(HOST, HeaderValue::from_static("localhost"));
    }
}

/// Settings as the variables of an environment: texts as they are, all else as JSON.
pub(crate) fn environment_of(settings: &str) -> Result<Vec<(String, String)>, Failure> {
    let refused = |text: String| Failure::new(code::plugin::BAD_SETTINGS, text);
    let settings: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(settings).map_err(|error| refused(error.to_string()))?;
    let mut variables = Vec::with_capacity(settings.len());
    for (name, value) in settings {
        let value = match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let name = name.escape_debug();
            return Err(refused(format!("the setting `{name}` cannot be a variable of an environment")));
        }
        variables.push((name, value));
    }
    let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    if variables.len() > VARIABLES_MAX || bytes > ENVIRONMENT_BYTES_MAX {
        let text =
            format!("the settings are more than {VARIABLES_MAX} variables or {ENVIRONMENT_BYTES_MAX} bytes");
        return Err(refused(text));
    }
    Ok(variables)
}

impl From<Scheme> for WasiScheme {
    fn from(scheme: Scheme) -> WasiScheme {
        match scheme {
            Scheme::Http => WasiScheme::Http,
            Scheme::Https => WasiScheme::Https,
        }
    }
}

impl From<Box<Fault>> for RespondError {
    fn from(fault: Box<Fault>) -> RespondError {
        RespondError::Fault(fault)
    }
}

impl From<CallError> for RespondError {
    fn from(error: CallError) -> RespondError {
        match error {
            CallError::Fault(fault) => RespondError::Fault(fault),
            CallError::Open(failure) => RespondError::Refused(failure),
            // It is never asked what only other kinds say.
            CallError::Busy | CallError::Trouble(_) => RespondError::Busy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_an_environment() {
        let variables = environment_of(r#"{"GREETING": "hi", "COUNT": 3, "LIST": [1], "ON": true}"#);
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let wanted = [("COUNT", "3"), ("GREETING", "hi"), ("LIST", "[1]"), ("ON", "true")].map(pair);
        assert_eq!(variables.unwrap(), wanted);
        for bad in [r#"{"a=b": 1}"#, r#"{"": 1}"#, r#"{"a": "x\u0000"}"#, "[1]"] {
            assert_eq!(environment_of(bad).unwrap_err().code, code::plugin::BAD_SETTINGS, "{bad}");
        }
        let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(ENVIRONMENT_BYTES_MAX));
        assert!(environment_of(&long).is_err());
    }
}
