//! `wasi:http` outgoing, in 0.2: the same grants and the same connector as `http`.
//!
//! Such a guest knows no slots: a request goes under the grant whose scheme, host, port and path
//! it fits, and is denied where there is none. Answers are read whole before the guest sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use portway_net::http::{HttpError, HttpRequest, HttpResponse};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant as Moment;
use wasmtime::component::Linker;
use wasmtime_wasi_http::{Error, RequestOptions, Result, WasiBody, WasiHttpHooks};

use super::SYSTEM;
use crate::guest::{ANSWER_TIME, Guest, WASI_FUEL};
use crate::outgoing::Outgoing;
use crate::reach::Reach;

/// Bytes of a request's body.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// Requests of one guest that are under way or whose answers it still holds.
const REQUESTS_MAX: usize = 16;
/// Bytes of one write to a body, of which two may wait.
const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Headers that are of the connection, which is the host's.
const OWN_HEADERS: [HeaderName; 5] = [CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER];

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

/// What a guest's requests need.
pub(crate) struct Outbound {
    reach: Arc<Reach>,
    /// A pure plugin asks nothing itself.
    is_closed: bool,
    /// Where calls into WASI are counted: what bytes cost is counted as calls.
    wasi_calls: Arc<AtomicU64>,
    places: Arc<Semaphore>,
    pub deadline: Moment,
    /// A request was made in the call at hand.
    pub reached: bool,
}

type Ended = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Ended)>> + Send>;

impl Outbound {
    pub fn new(reach: Arc<Reach>, wasi_calls: Arc<AtomicU64>, is_closed: bool) -> Outbound {
        Outbound {
            reach,
            is_closed,
            wasi_calls,
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            deadline: Moment::now(),
            reached: false,
        }
    }

    /// The request as the connector takes it, still without its body.
    fn outgoing(
        &self,
        head: http::request::Parts,
        options: Option<RequestOptions>,
    ) -> Result<Outgoing, Error> {
        let url = head.uri.to_string();
        let slot = self.reach.slot_of(&url).map_err(error_of)?.to_owned();
        let options = options.unwrap_or_default();
        let first_byte = options.first_byte_timeout;
        let timeout = first_byte.map(|first| first + options.connect_timeout.unwrap_or_default());
        let request = HttpRequest {
            method: head.method.as_str().to_owned(),
            path_or_url: url,
            headers: headers_in(&head.headers)?,
            body: Bytes::new(),
            timeout,
        };
        Ok(Outgoing { slot, request })
    }
}

impl WasiHttpHooks for Outbound {
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _ended: Ended,
    ) -> Sending {
        let (head, body) = request.into_parts();
        let outgoing = match self.is_closed {
            true => Err(Error::HttpRequestDenied),
            false => self.outgoing(head, options),
        };
        let place = self.places.clone().try_acquire_owned();
        let (reach, calls) = (self.reach.clone(), self.wasi_calls.clone());
        let deadline = self.deadline.checked_sub(ANSWER_TIME).unwrap_or(self.deadline);
        self.reached |= outgoing.is_ok();
        pay(&calls, SYSTEM.base);
        Box::new(async move {
            let mut outgoing = outgoing?;
            let place = place.map_err(|_| Error::ConnectionLimitReached)?;
            outgoing.request.body = collect(body).await?;
            pay(&calls, SYSTEM.per_byte * outgoing.request.body.len() as u64);
            let answer = reach.ask(outgoing, deadline).await.map_err(error_of)?;
            pay(&calls, SYSTEM.per_byte * answer.body.len() as u64);
            let response = response_of(answer, place)?;
            let ended: Ended = Box::new(async { Ok(()) });
            Ok((response, ended))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES_MAX
    }
}

/// Counts fuel as calls into WASI, which are paid for together.
fn pay(wasi_calls: &AtomicU64, fuel: u64) {
    wasi_calls.fetch_add(fuel.div_ceil(WASI_FUEL), Ordering::Relaxed);
}

async fn collect(body: WasiBody) -> Result<Bytes, Error> {
    match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Error::HttpRequestBodySize(Some(REQUEST_BYTES_MAX as u64 + 1)))
        }
        Err(error) => Err(Error::InternalError(Some(error.to_string()))),
    }
}

/// What the connection says itself is left out.
fn headers_in(headers: &HeaderMap) -> Result<Vec<(String, String)>, Error> {
    let others = headers.iter().filter(|(name, _)| !OWN_HEADERS.contains(name));
    let pair = |(name, value): (&HeaderName, &HeaderValue)| match std::str::from_utf8(value.as_bytes()) {
        Ok(value) => Ok((name.as_str().to_owned(), value.to_owned())),
        Err(_) => Err(Error::HttpProtocolError),
    };
    others.map(pair).collect()
}

/// The answer; its place is free when its body is gone.
fn response_of(answer: HttpResponse, place: OwnedSemaphorePermit) -> Result<Response<WasiBody>, Error> {
    let mut headers = HeaderMap::with_capacity(answer.headers.len());
    for (name, value) in answer.headers {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        if let Some((name, value)) = pair {
            headers.append(name, value);
        }
    }
    let body = Full::new(answer.body).map_frame(move |frame| {
        let _held = &place;
        frame
    });
    let mut response = Response::new(body.map_err(Error::from).boxed_unsync());
    *response.status_mut() = answer.status.try_into().map_err(|_| Error::HttpProtocolError)?;
    *response.headers_mut() = headers;
    Ok(response)
}

fn error_of(error: HttpError) -> Error {
    match error {
        HttpError::Denied(_) => Error::HttpRequestDenied,
        HttpError::Timeout => Error::HttpResponseTimeout,
        HttpError::Unreachable(_) => Error::DestinationUnavailable,
        HttpError::Broken(_) => Error::ConnectionTerminated,
        HttpError::TooLarge => Error::HttpResponseBodySize(None),
        HttpError::Invalid(_) => Error::HttpRequestUriInvalid,
        HttpError::Other(text) => Error::InternalError(Some(text)),
    }
}
