//! One request, from its head to its answer.
//!
//! What can be refused without the body is refused before it is read. Answers to what was stored
//! come from the source's plugin alone; the host's own are refusals.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use portway_engine::ports::Clock;
use portway_model::{Attributes, Failure, code};
use portway_net::listen::Peer;
use tokio::time::timeout;

use super::auth::{AuthError, Known};
use super::ports::{Answer, Decision, Endpoint, Request, RequestIntake};
use super::respond::respond;
use super::routes::{Choice, Route, Serves, choose};
use crate::budget::Hold;
use crate::counters::Counters;
use crate::items::{count_fate, receipts, take_apart};
use crate::ports::{Arrival, CodecError, Item};

/// Headers that are about the connection or show who sends.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "expect",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What all exchanges of a listener share.
pub(super) struct Common<'a, I, E> {
    pub routes: &'a [Route<I, E>],
    pub clock: &'a dyn Clock,
    /// Counts what no route takes.
    pub strays: &'a Counters,
    /// Time for a whole body.
    pub body_timeout: Duration,
    pub peer: &'a Peer,
}

/// How an exchange ended.
pub(super) struct Ended {
    pub response: Response<Full<Bytes>>,
    /// The plugin failed on what this peer sent.
    pub is_fault: bool,
}

/// A refusal by the host.
struct Refused {
    status: StatusCode,
    failure: Failure,
    header: Option<(HeaderName, HeaderValue)>,
    is_fault: bool,
}

type Incomings = http::Request<Incoming>;

impl<I: RequestIntake, E: Endpoint> Common<'_, I, E> {
    /// Answers a request. `hold` counts its body.
    pub async fn exchange(&self, request: Incomings, hold: &mut Hold) -> Ended {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let route = match choose(self.routes, method, path) {
            Choice::Route(index) => self.routes.get(index),
            Choice::WrongMethod(allowed) => return self.no_method(allowed),
            Choice::None => None,
        };
        let Some(route) = route else {
            self.strays.refused(code::UNKNOWN_PATH);
            let failure = Failure::new(code::UNKNOWN_PATH, "no interface takes this path");
            return Refused::new(StatusCode::NOT_FOUND, failure).into_ended();
        };
        let answered = self.answer(route, request, hold).await;
        let ended = answered.unwrap_or_else(|refused| {
            route.refused(self.clock.now(), self.peer.address, refused.failure.clone());
            refused.into_ended()
        });
        route.counters.request(ended.response.status().as_u16());
        ended
    }

    fn no_method(&self, allowed: String) -> Ended {
        self.strays.refused(code::WRONG_METHOD);
        let failure = Failure::new(code::WRONG_METHOD, format!("this path takes {allowed}"));
        let header = HeaderValue::from_str(&allowed).ok().map(|value| (ALLOW, value));
        Refused { header, ..*Refused::new(StatusCode::METHOD_NOT_ALLOWED, failure) }.into_ended()
    }

    async fn answer(
        &self,
        route: &Route<I, E>,
        request: Incomings,
        hold: &mut Hold,
    ) -> Result<Ended, Box<Refused>> {
        let (head, incoming) = request.into_parts();
        let user = self.admit_head(route, &head.headers)?;
        if matches!(route.serves, Serves::Source { .. }) {
            refuse_encoded(&head.headers)?;
        }
        let body = self.read_body(route, incoming, hold).await?;
        if let Some(auth) = &route.auth {
            auth.check_body(&head.headers, &body).map_err(|error| unauthorised(route, error))?;
        }
        route.counters.bytes_in(body.len());
        let (endpoint, intake) = match &route.serves {
            Serves::Source { endpoint, intake } => (endpoint, intake),
            Serves::Component(component) => {
                let request = http::Request::from_parts(head, body);
                return Ok(respond(route, &**component, request, (self.peer, user, self.clock)).await);
            }
        };
        let parent = route.traced.then(|| traceparent(&head.headers)).flatten();
        let target = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        let request = Request {
            method: head.method.as_str().to_owned(),
            target,
            headers: plain_headers(&head.headers),
            peer: self.peer_attributes(user),
            body,
        };
        match endpoint.receive(request).await.map_err(|error| plugin_failed(route, error))? {
            Decision::Accept { items, ticket, cost } => {
                let arrival = Arrival { at: self.clock.now(), cost, parent };
                self.store(route, (endpoint, intake), arrival, (items, ticket)).await
            }
            Decision::Refuse(answer) => {
                let failure = Failure::new(code::REFUSED, format!("the source answered {}", answer.status));
                route.refused(self.clock.now(), self.peer.address, failure);
                Ok(written(answer))
            }
            Decision::Answer(answer) => {
                route.counters.control();
                route.counters.answered(1);
                Ok(written(answer))
            }
        }
    }

    async fn store(
        &self,
        route: &Route<I, E>,
        (endpoint, intake): (&E, &I),
        arrival: Arrival,
        (items, ticket): (Vec<Item>, Bytes),
    ) -> Result<Ended, Box<Refused>> {
        let count = items.len();
        let (slots, drafts) = take_apart(items, &route.counters);
        let fates = match drafts.is_empty() {
            true => Vec::new(),
            false => intake.submit(arrival, drafts).await,
        };
        fates.iter().for_each(|fate| count_fate(&route.counters, fate));
        let settled = endpoint.settle(ticket, receipts(slots, fates)).await;
        match settled {
            Ok(answer) => {
                route.counters.answered(count);
                route.counters.bytes_out(answer.body.len());
                Ok(written(answer))
            }
            Err(error) => {
                // Its messages may be stored: the peer hears that nobody can tell it so.
                route.counters.unanswered(count);
                Err(plugin_failed(route, error))
            }
        }
    }

    fn admit_head(&self, route: &Route<I, E>, headers: &HeaderMap) -> Result<Option<String>, Box<Refused>> {
        let Some(auth) = &route.auth else { return Ok(None) };
        match auth.check_head(headers, self.clock.now()) {
            Ok(Known::Admitted(user)) => Ok(user),
            Ok(Known::Unsigned) => Ok(None),
            Err(error) => Err(unauthorised(route, error)),
        }
    }

    async fn read_body(
        &self,
        route: &Route<I, E>,
        incoming: Incoming,
        hold: &mut Hold,
    ) -> Result<Bytes, Box<Refused>> {
        let announced = incoming.size_hint();
        if announced.lower() > route.body_bytes_max as u64 {
            return Err(too_large(route.body_bytes_max));
        }
        let wanted = announced.exact().and_then(|bytes| usize::try_from(bytes).ok());
        let reading = async {
            // Of a body in chunks the size is not known: it may have all that one may have.
            hold.resize(wanted.unwrap_or(route.body_bytes_max)).await;
            Limited::new(incoming, route.body_bytes_max).collect().await
        };
        match timeout(self.body_timeout, reading).await {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(route.body_bytes_max)),
            Ok(Err(error)) => {
                let failure = Failure::new(code::BROKEN, format!("the body broke off: {error}"));
                Err(Refused::new(StatusCode::BAD_REQUEST, failure))
            }
            Err(_) => {
                let failure = Failure::new(code::FRAME_TIMEOUT, "the body took too long");
                Err(Refused::new(StatusCode::REQUEST_TIMEOUT, failure))
            }
        }
    }

    fn peer_attributes(&self, user: Option<String>) -> Attributes {
        let mut pairs = peer_pairs(self.peer.address);
        pairs.extend(self.peer.tls_subject.clone().map(|subject| ("tls.subject".to_owned(), subject)));
        pairs.extend(user.map(|user| ("user".to_owned(), user)));
        Attributes::new(pairs).unwrap_or_default()
    }
}

/// A source reads what was meant; a component may undo an encoding itself.
fn refuse_encoded(headers: &HeaderMap) -> Result<(), Box<Refused>> {
    match headers.get(CONTENT_ENCODING).filter(|value| *value != "identity") {
        None => Ok(()),
        Some(encoding) => {
            let text = format!("bodies encoded as {encoding:?} are not taken");
            Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Failure::new(code::ENCODED, text)))
        }
    }
}

/// The trace a request belongs to; of several nobody knows which.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let mut all = headers.get_all("traceparent").iter();
    let only = all.next().filter(|_| all.next().is_none())?;
    only.to_str().ok().map(str::to_owned)
}

fn peer_pairs(address: SocketAddr) -> Vec<(String, String)> {
    vec![
        ("address".to_owned(), address.ip().to_canonical().to_string()),
        ("port".to_owned(), address.port().to_string()),
    ]
}

/// Names in lower case; a value that is no text is read byte by byte, so that nothing is lost.
fn plain_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let others = headers.iter().filter(|(name, _)| !OWN_HEADERS.contains(&name.as_str()));
    let text = |value: &HeaderValue| match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().map(|byte| char::from(*byte)).collect(),
    };
    others.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

impl Refused {
    fn new(status: StatusCode, failure: Failure) -> Box<Self> {
        Box::new(Refused { status, failure, header: None, is_fault: false })
    }

    /// A body that was not read cannot be followed by another request.
    fn into_ended(self) -> Ended {
        let mut response = own_answer(self.status, &self.failure);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        Ended { response, is_fault: self.is_fault }
    }
}

/// An answer of the host's own.
pub(super) fn own_answer(status: StatusCode, failure: &Failure) -> Response<Full<Bytes>> {
    let document = serde_json::json!({ "error": { "code": failure.code, "text": failure.text } });
    let mut response = Response::new(Full::new(Bytes::from(document.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn too_large(bytes_max: usize) -> Box<Refused> {
    let text = format!("a body of at most {bytes_max} bytes is taken");
    Refused::new(StatusCode::PAYLOAD_TOO_LARGE, Failure::new(code::TOO_LARGE, text))
}

fn unauthorised<I, E>(route: &Route<I, E>, error: AuthError) -> Box<Refused> {
    let failure = Failure::new(code::NOT_AUTHENTICATED, error.to_string());
    let challenge = route.auth.as_ref().and_then(super::auth::Auth::challenge);
    let header = challenge.map(|challenge| (WWW_AUTHENTICATE, HeaderValue::from_static(challenge)));
    Box::new(Refused { header, ..*Refused::new(StatusCode::UNAUTHORIZED, failure) })
}

/// The text of a fault is for the operator, not for the peer.
fn plugin_failed<I, E>(route: &Route<I, E>, error: CodecError) -> Box<Refused> {
    match error {
        CodecError::Fault(text) => {
            route.counters.fault();
            tracing::warn!(fault = text, "the source failed on a request");
            let failure = Failure::new(code::FAULT, "the source failed");
            Box::new(Refused { is_fault: true, ..*Refused::new(StatusCode::INTERNAL_SERVER_ERROR, failure) })
        }
        CodecError::Refused(failure) => Refused::new(StatusCode::INTERNAL_SERVER_ERROR, failure),
        CodecError::Unavailable(text) => {
            let failure = Failure::new(code::UNAVAILABLE, text);
            let header = Some((http::header::RETRY_AFTER, HeaderValue::from_static("1")));
            Box::new(Refused { header, ..*Refused::new(StatusCode::SERVICE_UNAVAILABLE, failure) })
        }
    }
}

/// What a plugin answered; it was checked when it was handed over.
fn written(answer: Answer) -> Ended {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        if let Some((name, value)) = pair.filter(|(name, _)| *name != AUTHORIZATION) {
            response.headers_mut().append(name, value);
        }
    }
    Ended { response, is_fault: false }
}

/// What hyper wants a service to give.
pub(super) type Answered = Result<Response<Full<Bytes>>, Infallible>;
