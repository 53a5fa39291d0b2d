//! `http`: requests to granted APIs by slot. What a grant lets through is decided by `net`.
//!
//! Waiting for an answer is the world's time, and ends early enough for the guest to answer.

use std::time::Duration;

use futures::{StreamExt, stream};
use portway_bindings::portway::host::blobs::Body;
use portway_bindings::portway::host::http::{Content, Error, Request, Response};
use portway_net::http::{HttpError, HttpResponse};
use tokio::time::Instant as Moment;
use wasmtime::component::Linker;

use super::{SYSTEM, define_waiting};
use crate::convert::BATCH_INLINE_BYTES_MAX;
use crate::guest::Guest;
use crate::guest_time::Purity;
use crate::outgoing::{Outgoing, outcome_of, outgoing_in};
use crate::reach::Reach;
use crate::things::{QUOTA_BYTES, QuotaExceeded};

/// Requests of one call, and how many of them at the same time.
const REQUESTS_MAX: usize = 256;
const SIDE_BY_SIDE_MAX: usize = 32;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut http = linker.instance("portway:host/http@0.1.0")?;
    define_waiting(
        &mut http,
        "send",
        SYSTEM,
        |(request,): &(Request,)| bytes_of(request),
        |guest, (request,)| {
            Box::pin(async move {
                let outcome = send_all(guest, vec![request]).await.pop();
                Ok((outcome.unwrap_or_else(|| Err(Error::Other("there is no answer".into()))),))
            })
        },
    )?;
    define_waiting(
        &mut http,
        "send-all",
        SYSTEM,
        |(requests,): &(Vec<Request>,)| requests.iter().map(|request| bytes_of(request) + BASE_BYTES).sum(),
        |guest, (requests,)| Box::pin(async move { Ok((send_all(guest, requests).await,)) }),
    )
}

/// As many bytes as cost what a request costs beside its bytes.
const BASE_BYTES: usize = (SYSTEM.base / SYSTEM.per_byte) as usize;

fn bytes_of(request: &Request) -> usize {
    let body = match &request.content {
        Content::Body(Body::Inline(bytes)) => bytes.len(),
        Content::Body(Body::Blob(_)) | Content::OfMessage(_) | Content::None => 0,
    };
    let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    request.url.len() + headers + body
}

async fn send_all(guest: &mut Guest, requests: Vec<Request>) -> Vec<Result<Response, Error>> {
    if requests.len() > REQUESTS_MAX {
        let text = format!("{} requests at once, at most {REQUESTS_MAX} are made", requests.len());
        return requests.iter().map(|_| Err(Error::Invalid(text.clone()))).collect();
    }
    let made: Vec<_> = requests.into_iter().map(|request| make(guest, request)).collect();
    let deadline = Moment::now() + guest.wait_of(Duration::MAX);
    guest.call.reached |= made.iter().any(Result::is_ok);
    let reach = guest.reach.clone();
    let asked = made.into_iter().map(|outgoing| async {
        match outgoing {
            Ok(outgoing) => reach.ask(outgoing, deadline).await,
            Err(error) => Err(error),
        }
    });
    let mut outcomes = stream::iter(asked).buffered(side_by_side(&reach));
    let mut inline_left = BATCH_INLINE_BYTES_MAX;
    let mut answers = Vec::new();
    while let Some(outcome) = guest.serve(outcomes.next()).await {
        let bytes = answer_bytes(&outcome);
        guest.meter.owe(SYSTEM.per_byte * bytes as u64);
        let outcome = match guest.things.hold(bytes) {
            Ok(()) => outcome,
            Err(QuotaExceeded) => Err(HttpError::TooLarge),
        };
        answers.push(outcome_of(&mut guest.things, outcome, &mut inline_left));
    }
    answers
}

/// So many at the same time that their answers together are not more than a call may hold.
fn side_by_side(reach: &Reach) -> usize {
    let longest = reach.http.values().map(|api| api.grant.response_bytes_max).max().unwrap_or_default();
    (QUOTA_BYTES / longest.max(1)).clamp(1, SIDE_BY_SIDE_MAX)
}

/// A request that cannot be made is told so; the guest may go on.
fn make(guest: &mut Guest, request: Request) -> Result<Outgoing, HttpError> {
    if guest.purity == Purity::Pure && !guest.reach.http.is_empty() {
        return Err(HttpError::Denied("an HTTP sender asks by its plan alone".into()));
    }
    let outgoing = outgoing_in(guest, request, |guest, index| guest.call.bodies.get(index).cloned());
    let outgoing = outgoing.map_err(HttpError::Invalid)??;
    guest.meter.owe(SYSTEM.per_byte * outgoing.request.body.len() as u64);
    Ok(outgoing)
}

fn answer_bytes(outcome: &Result<HttpResponse, HttpError>) -> usize {
    let Ok(response) = outcome else { return 0 };
    let headers = response.headers.iter().map(|(name, value)| name.len() + value.len());
    response.body.len() + headers.sum::<usize>()
}
