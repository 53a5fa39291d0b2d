//! The driver of HTTP sources: one listener, the interfaces behind its paths.
//!
//! Listens, routes, authenticates, reads, hands over, answers. What a request carries is for the
//! plugin to say; nothing it says can answer before the commit. Behind other paths components
//! answer themselves, and nothing is stored.

mod auth;
mod exchange;
pub mod ports;
mod respond;
mod routes;
mod table;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use portway_engine::ports::Clock;
use portway_model::{Failure, code};
use portway_net::listen::{self, ListenStatus, Listener, Peer};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::backoff::{Backoff, Turn, wait_turn};
use crate::budget::Budget;
use crate::counters::{Counters, SourceStatus};

pub use auth::{Auth, Scheme, Signature};
use exchange::{Answered, Common, own_answer};
use ports::{Endpoint, RequestIntake};
pub use routes::{KeptRefusals, Methods, Route, RoutePath, Serves};
pub use table::RouteTable;

/// Bytes of a request's head, and how many headers it may have.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;

/// See the file.
pub struct HttpDriver<I, E> {
    listener: Listener,
    shared: Arc<Shared<I, E>>,
    stop_timeout: Duration,
}

/// What the connections of a driver share.
struct Shared<I, E> {
    routes: table::Current<I, E>,
    clock: Arc<dyn Clock>,
    budget: Budget,
    /// For a whole head, and for a whole body.
    request_timeout: Duration,
    backoff: Mutex<Backoff>,
    /// What is of no route: connections, and requests that no route takes.
    strays: Counters,
}

/// What can be seen of one route and its listener. Cheap to clone.
#[derive(Clone)]
pub struct HttpHandle {
    counters: Counters,
    listener: ListenStatus,
    /// Of all routes of the listener.
    strays: Counters,
    refusals: KeptRefusals,
}

impl<I: RequestIntake, E: Endpoint> HttpDriver<I, E> {
    /// One handle a route. `budget` and `clock` are the engine's.
    pub fn new(
        listener: Listener,
        routes: Vec<Route<I, E>>,
        stop_timeout: Duration,
        (budget, clock): (Budget, Arc<dyn Clock>),
    ) -> (Self, Vec<HttpHandle>) {
        let strays = Counters::new();
        let status = listener.status();
        let handles = routes.iter().map(|route| HttpHandle::new(route, &status, &strays)).collect();
        let routes = table::Current::new(routes);
        let request_timeout = listener.settings().frame_timeout;
        let backoff = Mutex::default();
        let shared = Arc::new(Shared { routes, clock, budget, request_timeout, backoff, strays });
        (HttpDriver { listener, shared, stop_timeout }, handles)
    }

    /// Where its routes can be exchanged while it runs.
    pub fn table(&self) -> RouteTable<I, E> {
        RouteTable::new(self.shared.clone(), self.listener.status())
    }

    /// Returns when all requests that had begun are answered after `shutdown`, within the time to stop.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let HttpDriver { mut listener, shared, stop_timeout } = self;
        let (stop, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(ended) = connections.join_next(), if !connections.is_empty() => joined(&ended),
                connection = listener.accept() => {
                    connections.spawn(serve(shared.clone(), connection, stopped.clone()));
                }
            }
        }
        drop(listener);
        // Nobody listens any more if there is no connection.
        let _ = stop.send(true);
        let drained = timeout(stop_timeout, async {
            while let Some(ended) = connections.join_next().await {
                joined(&ended);
            }
        });
        if drained.await.is_err() {
            connections.shutdown().await;
        }
    }
}

impl HttpHandle {
    fn new<I, E>(route: &Route<I, E>, listener: &ListenStatus, strays: &Counters) -> HttpHandle {
        HttpHandle {
            counters: route.counters.clone(),
            listener: listener.clone(),
            strays: strays.clone(),
            refusals: route.refusals.clone(),
        }
    }

    /// Connections and requests without a route are those of the whole listener.
    pub fn status(&self) -> SourceStatus {
        let strays = self.strays.status();
        let refused = self.listener.refusals().into_iter().filter(|(_, count)| *count > 0);
        let refused = refused.map(|(code, count)| (code.to_owned(), count));
        SourceStatus {
            connections: strays.connections,
            connections_total: strays.connections_total,
            connections_max: u64::from(self.listener.connections_max()),
            connections_refused: refused.chain(strays.refused_by).collect(),
            ..self.counters.status()
        }
    }

    /// The newest refusals, newest first.
    pub fn refusals(&self) -> Vec<crate::Refusal> {
        self.refusals.list()
    }
}

fn joined(ended: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a connection failed");
    }
}

/// One accepted connection, from its welcome to its end.
async fn serve<I: RequestIntake, E: Endpoint>(
    shared: Arc<Shared<I, E>>,
    connection: listen::Connection,
    mut stop: watch::Receiver<bool>,
) {
    let listen::Connection { reader, writer, peer, permit } = connection;
    if wait_turn(&shared.backoff, peer.address.ip(), &mut stop).await != Turn::Come {
        return;
    }
    let _open = shared.strays.open();
    let stopping = stop.clone();
    let service = service_fn(|request| {
        let (shared, peer, is_stopping) = (shared.clone(), peer.clone(), *stopping.borrow());
        async move { Answered::Ok(answer(&shared, &peer, request, is_stopping).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.request_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let io = TokioIo::new(tokio::io::join(reader, writer));
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.as_mut().await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, peer = %peer.address, "a connection ended");
    }
    drop(permit);
}

/// Ready when the word to stop was given, or nobody can give it any more.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn answer<I: RequestIntake, E: Endpoint>(
    shared: &Shared<I, E>,
    peer: &Peer,
    request: http::Request<hyper::body::Incoming>,
    is_stopping: bool,
) -> http::Response<http_body_util::Full<bytes::Bytes>> {
    if is_stopping {
        let failure = Failure::new(code::STOPPED, "the engine stops");
        let mut response = own_answer(http::StatusCode::SERVICE_UNAVAILABLE, &failure);
        let later = http::HeaderValue::from_static("5");
        response.headers_mut().insert(http::header::RETRY_AFTER, later);
        return response;
    }
    let body_timeout = shared.request_timeout;
    let Shared { clock, strays, .. } = shared;
    let routes = shared.routes.get();
    let common = Common { routes: &routes, clock: &**clock, strays, body_timeout, peer };
    let ended = common.exchange(request, &mut shared.budget.hold()).await;
    if ended.is_fault {
        shared.lock().fault(peer.address.ip(), Instant::now());
    }
    ended.response
}

impl<I, E> Shared<I, E> {
    fn lock(&self) -> MutexGuard<'_, Backoff> {
        self.backoff.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
