//! Requests that a component answers itself: nothing is stored.
//!
//! The component gets the request as it came, without what is the host's: how it was let in, and
//! headers under the host's names, which say who asks.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use portway_engine::ports::Clock;
use portway_model::Failure;
use portway_net::listen::Peer;

use super::auth::Auth;
use super::exchange::{Ended, own_answer};
use super::ports::{Respond, RespondError};
use super::routes::Route;

/// What headers begin with that the host alone writes.
const HOST_PREFIX: &str = "portway-";
const ADDRESS: HeaderName = HeaderName::from_static("portway-peer-address");
const SUBJECT: HeaderName = HeaderName::from_static("portway-tls-subject");
const USER: HeaderName = HeaderName::from_static("portway-user");

/// The answer of a route's component, or the host's where it has none.
pub(super) async fn respond<I, E>(
    route: &Route<I, E>,
    responder: &dyn Respond,
    mut request: http::Request<Bytes>,
    (peer, user, clock): (&Peer, Option<String>, &dyn Clock),
) -> Ended {
    introduce(request.headers_mut(), route.auth.as_ref(), peer, user);
    match responder.respond(request).await {
        Ok(answer) => {
            route.counters.bytes_out(answer.body().len());
            Ended { response: answer.map(Full::new), is_fault: false }
        }
        Err(error) => {
            let (status, failure) = told(&error);
            route.refused(clock.now(), peer.address, reason(error));
            let mut response: Response<Full<Bytes>> = own_answer(status, &failure);
            if status == StatusCode::SERVICE_UNAVAILABLE {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // The address is not slowed: others may ask through the same one, and a fresh
            // instance costs little.
            Ended { response, is_fault: false }
        }
    }
}

/// What the peer hears: no word of the component's own.
fn told(error: &RespondError) -> (StatusCode, Failure) {
    let (status, text) = match error {
        RespondError::Failed(_) => (StatusCode::BAD_GATEWAY, "the component failed"),
        RespondError::TimedOut(_) => (StatusCode::GATEWAY_TIMEOUT, "the component took too long"),
        RespondError::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "the component is busy"),
    };
    let (RespondError::Failed(failure) | RespondError::TimedOut(failure) | RespondError::Busy(failure)) =
        error;
    (status, Failure::new(failure.code.clone(), text))
}

/// What the operator sees.
fn reason(error: RespondError) -> Failure {
    match error {
        RespondError::Failed(failure) | RespondError::TimedOut(failure) | RespondError::Busy(failure) => {
            failure
        }
    }
}

/// Says who asks, in the host's own headers. What was shown to get in stays with the host.
fn introduce(headers: &mut HeaderMap, auth: Option<&Auth>, peer: &Peer, user: Option<String>) {
    match auth {
        None => {}
        Some(Auth::Header { name, .. }) => {
            headers.remove(name.as_str());
        }
        Some(Auth::Bearer(_) | Auth::Basic { .. } | Auth::Signature(_)) => {
            headers.remove(AUTHORIZATION);
        }
    }
    let forged: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(HOST_PREFIX)).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
    let says = [(ADDRESS, Some(address(peer.address))), (SUBJECT, peer.tls_subject.clone()), (USER, user)];
    for (name, value) in says {
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
}

fn address(address: SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}
