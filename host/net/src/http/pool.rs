//! Kept HTTP connections, one pool a grant, and the exchange of one request over one of them.
//!
//! A connection is driven by the request that uses it, without a task of its own. While it is
//! idle nobody drives it; before it is used again the socket is looked at. One that broke while
//! idle is replaced without a word. A request that may have reached the peer is never sent
//! twice from here: whether it is repeated is the caller's to decide.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::request::WireRequest;
use super::{ConnectorSettings, Credentials, HttpError, HttpGrant, HttpResponse};
use crate::AddressPolicy;
use crate::dial::{self, DialError, Target, TlsTarget};
use crate::stream::{Probe, Wire};
use crate::tls::{self, FileMark};

/// Bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Bytes of an answer that are made room for before they come.
const BODY_FIRST_BYTES: u64 = 64 << 10;

/// What two grants must share to share connections.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PoolKey {
    https: bool,
    host: String,
    port: u16,
    addresses: AddressPolicy,
    tls_roots: Option<PathBuf>,
    credentials: Option<Credentials>,
}

/// TLS settings, and the state of the roots file they were made from.
type MarkedConfig = (FileMark, Arc<ClientConfig>);

/// All pools of a connector.
pub(super) struct Pools {
    settings: ConnectorSettings,
    pools: Mutex<HashMap<PoolKey, Arc<Pool>>>,
    tls: Mutex<HashMap<Option<PathBuf>, MarkedConfig>>,
    /// Set while a task waits for the next idle connection to expire.
    sweeping: Mutex<bool>,
}

struct Pool {
    /// One an exchange; idle connections need none, so that they never keep a request waiting.
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    live: Live,
    since: Instant,
}

/// A connection that speaks HTTP/1.1.
struct Live {
    sender: SendRequest<Full<Bytes>>,
    driver: Pin<Box<Connection<TokioIo<Wire>, Full<Bytes>>>>,
    ended: bool,
    probe: Probe,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pools {
    pub(super) fn new(settings: ConnectorSettings) -> Pools {
        Pools { settings, pools: Mutex::default(), tls: Mutex::default(), sweeping: Mutex::new(false) }
    }

    pub(super) fn idle_connections(&self) -> usize {
        lock(&self.pools).values().map(|pool| lock(&pool.idle).len()).sum()
    }

    /// One exchange. The caller holds the deadline; `begun` says whether the peer may have seen the
    /// request when it passes.
    pub(super) async fn send(
        self: &Arc<Self>,
        grant: &HttpGrant,
        mut request: WireRequest,
        begun: &AtomicBool,
    ) -> Result<HttpResponse, HttpError> {
        let pool = self.pool(grant);
        let turn = pool.turns.clone().acquire_owned().await;
        let _turn = turn.map_err(|_| HttpError::Other("the connector was closed".into()))?;
        while let Some(mut live) = pool.take_idle(self.settings.idle_timeout) {
            begun.store(true, Ordering::Relaxed);
            match live.exchange(request, grant.response_bytes_max).await {
                Ok(response) => return Ok(self.give_back(&pool, live, response)),
                Err(Failed::Unsent(unsent)) => {
                    begun.store(false, Ordering::Relaxed);
                    request = *unsent;
                }
                Err(Failed::Error(error)) => return Err(error),
            }
        }
        let mut live = self.open(grant).await?;
        begun.store(true, Ordering::Relaxed);
        match live.exchange(request, grant.response_bytes_max).await {
            Ok(response) => Ok(self.give_back(&pool, live, response)),
            Err(Failed::Error(error)) => Err(error),
            Err(Failed::Unsent(_)) => Err(HttpError::Unreachable("the peer closed a new connection".into())),
        }
    }

    fn pool(&self, grant: &HttpGrant) -> Arc<Pool> {
        let key = PoolKey {
            https: grant.base.scheme() == "https",
            host: grant.base.host_str().unwrap_or_default().to_owned(),
            port: grant.base.port_or_known_default().unwrap_or_default(),
            addresses: grant.addresses,
            tls_roots: grant.tls_roots.clone(),
            credentials: grant.credentials.clone(),
        };
        let new = || {
            let turns = Arc::new(Semaphore::new(self.settings.connections_per_grant_max.max(1)));
            Arc::new(Pool { turns, idle: Mutex::default() })
        };
        lock(&self.pools).entry(key).or_insert_with(new).clone()
    }

    async fn open(&self, grant: &HttpGrant) -> Result<Live, HttpError> {
        let tls = if grant.base.scheme() == "https" { Some(self.tls_target(grant)?) } else { None };
        let host = grant.base.host_str().unwrap_or_default();
        let target = Target {
            host: host.trim_start_matches('[').trim_end_matches(']'),
            port: grant.base.port_or_known_default().unwrap_or_default(),
            addresses: grant.addresses,
            tls,
        };
        let (wire, probe) = match timeout(self.settings.connect_timeout, dial::dial(target)).await {
            Err(_) => return Err(HttpError::Unreachable(format!("no connection to `{host}` in time"))),
            Ok(Err(DialError::Refused(refused))) => return Err(HttpError::Denied(refused.to_string())),
            Ok(Err(error)) => return Err(HttpError::Unreachable(error.to_string())),
            Ok(Ok(dialled)) => dialled,
        };
        let handshake = Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(wire)).await;
        let (sender, driver) = handshake.map_err(|error| HttpError::Unreachable(error.to_string()))?;
        Ok(Live { sender, driver: Box::pin(driver), ended: false, probe })
    }

    fn tls_target(&self, grant: &HttpGrant) -> Result<TlsTarget, HttpError> {
        let host = grant.base.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|error| HttpError::Invalid(error.to_string()))?;
        let mark = grant.tls_roots.as_deref().and_then(tls::file_mark);
        let known = lock(&self.tls).get(&grant.tls_roots).cloned();
        if let Some((_, config)) = known.filter(|(then, _)| *then == mark) {
            return Ok(TlsTarget { config, name });
        }
        let config = tls::client_config(grant.tls_roots.as_deref(), &[b"http/1.1"]);
        let config = Arc::new(config.map_err(|error| HttpError::Unreachable(error.to_string()))?);
        lock(&self.tls).insert(grant.tls_roots.clone(), (mark, config.clone()));
        Ok(TlsTarget { config, name })
    }

    fn give_back(self: &Arc<Self>, pool: &Pool, mut live: Live, response: HttpResponse) -> HttpResponse {
        if live.is_reusable() {
            let mut idle = lock(&pool.idle);
            if idle.len() < self.settings.idle_per_grant_max {
                idle.push(Idle { live, since: Instant::now() });
                drop(idle);
                self.keep_swept();
            }
        }
        response
    }

    /// Sees to it that idle connections end also when no request comes any more.
    fn keep_swept(self: &Arc<Self>) {
        let mut sweeping = lock(&self.sweeping);
        if !*sweeping {
            *sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.settings.idle_timeout));
        }
    }

    /// Closes what was idle for too long and forgets pools nobody uses; true if any is left.
    fn sweep_once(&self) -> bool {
        let mut left = false;
        lock(&self.pools).retain(|_, pool| {
            let mut idle = lock(&pool.idle);
            idle.retain(|idle| idle.since.elapsed() < self.settings.idle_timeout);
            left |= !idle.is_empty();
            !idle.is_empty() || Arc::strong_count(pool) > 1
        });
        let mut sweeping = lock(&self.sweeping);
        *sweeping = left;
        left
    }
}

async fn sweep(pools: Weak<Pools>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match pools.upgrade() {
            Some(pools) if pools.sweep_once() => {}
            _ => return,
        }
    }
}

impl Pool {
    /// The one used last that is still good; the others that are not are closed on the way.
    fn take_idle(&self, idle_timeout: Duration) -> Option<Live> {
        loop {
            let Idle { mut live, since } = lock(&self.idle).pop()?;
            if since.elapsed() < idle_timeout && live.is_reusable() {
                return Some(live);
            }
        }
    }
}

/// Why an exchange gave no answer.
enum Failed {
    /// Not a byte of it left: it may go over another connection.
    Unsent(Box<WireRequest>),
    Error(HttpError),
}

impl Live {
    /// Waits for a future while it drives the connection.
    async fn drive<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            self.advance(cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    fn advance(&mut self, cx: &mut Context<'_>) {
        if !self.ended && self.driver.as_mut().poll(cx).is_ready() {
            self.ended = true;
        }
    }

    fn is_reusable(&mut self) -> bool {
        self.advance(&mut Context::from_waker(Waker::noop()));
        !self.ended && self.sender.is_ready() && self.probe.is_quiet()
    }

    async fn exchange(&mut self, request: WireRequest, bytes_max: usize) -> Result<HttpResponse, Failed> {
        let answer = self.sender.try_send_request(request);
        let response = match self.drive(answer).await {
            Ok(response) => response,
            Err(mut error) => match error.take_message() {
                Some(request) => return Err(Failed::Unsent(Box::new(request))),
                None => return Err(Failed::Error(no_answer(&error.into_error()))),
            },
        };
        self.collect(response, bytes_max).await.map_err(Failed::Error)
    }

    async fn collect(
        &mut self,
        response: ::http::Response<Incoming>,
        bytes_max: usize,
    ) -> Result<HttpResponse, HttpError> {
        let (head, mut body) = response.into_parts();
        let announced = body.size_hint().exact().unwrap_or(0);
        if announced > bytes_max as u64 {
            return Err(HttpError::TooLarge);
        }
        let mut bytes =
            BytesMut::with_capacity(usize::try_from(announced.min(BODY_FIRST_BYTES)).unwrap_or(0));
        while let Some(frame) = self.drive(body.frame()).await {
            let frame = frame.map_err(|error| no_answer(&error))?;
            let Ok(part) = frame.into_data() else { continue };
            if bytes.len() + part.len() > bytes_max {
                return Err(HttpError::TooLarge);
            }
            bytes.extend_from_slice(&part);
        }
        self.settle_down().await;
        let headers = head.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok(HttpResponse { status: head.status.as_u16(), headers: headers.collect(), body: bytes.freeze() })
    }

    /// Lets the connection notice that the exchange is over, without waiting for it.
    async fn settle_down(&mut self) {
        std::future::poll_fn(|cx| {
            self.advance(cx);
            Poll::Ready(())
        })
        .await;
    }
}

fn no_answer(error: &hyper::Error) -> HttpError {
    if error.is_parse() || error.is_parse_too_large() {
        return HttpError::Other(format!("the answer is not HTTP: {error}"));
    }
    HttpError::Broken(format!(
        "the connection ended before the answer, the request may have arrived: {error}"
    ))
}
