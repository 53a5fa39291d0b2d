//! The driver of one interface's stream source: accepts connections and runs them.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use portway_engine::ports::Clock;
use portway_model::{Attributes, Failure, code};
use portway_net::listen::{self, ListenStatus, Listener, Peer};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::backoff::{Backoff, Turn, wait_turn};
use crate::budget::Budget;
use crate::connection::Connection;
use crate::counters::{Closed, Counters, SourceStatus};
use crate::ports::{Codec, CodecError, Intake};
use crate::refusals::{Refusal, Refusals};
use crate::settings::SourceLimits;

/// Accepts, and runs a task for each connection, until it is told to stop.
pub struct Driver<I: Intake, C: Codec> {
    shared: Arc<Shared<I, C>>,
    listener: Listener,
}

/// What can be seen of a driver. Cheap to clone.
#[derive(Clone)]
pub struct DriverHandle {
    counters: Counters,
    listener: ListenStatus,
    seen: Arc<Seen>,
}

/// What the connections of a driver share.
pub(crate) struct Shared<I, C> {
    pub(crate) codec: C,
    pub(crate) intake: I,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: SourceLimits,
    pub(crate) idle_timeout: Duration,
    pub(crate) frame_timeout: Duration,
    pub(crate) budget: Budget,
    pub(crate) counters: Counters,
    seen: Arc<Seen>,
}

/// What was seen of peers that misbehaved.
#[derive(Default)]
struct Seen {
    refusals: Mutex<Refusals>,
    backoff: Mutex<Backoff>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<I: Intake, C: Codec> Driver<I, C> {
    /// `budget` and `clock` are the engine's, `counters` the interface's own.
    pub fn new(
        listener: Listener,
        codec: C,
        intake: I,
        limits: SourceLimits,
        (budget, counters, clock): (Budget, Counters, Arc<dyn Clock>),
    ) -> (Driver<I, C>, DriverHandle) {
        let seen = Arc::new(Seen::default());
        let handle =
            DriverHandle { counters: counters.clone(), listener: listener.status(), seen: seen.clone() };
        let shared = Shared {
            codec,
            intake,
            clock,
            limits,
            idle_timeout: listener.settings().idle_timeout,
            frame_timeout: listener.settings().frame_timeout,
            budget,
            counters,
            seen,
        };
        (Driver { shared: Arc::new(shared), listener }, handle)
    }

    /// Returns when all connections have ended after `shutdown`, within `stop_timeout`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Driver { shared, mut listener } = self;
        let (stop, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(ended) = connections.join_next(), if !connections.is_empty() => shared.joined(&ended),
                connection = listener.accept() => {
                    connections.spawn(serve(shared.clone(), connection, stopped.clone()));
                }
            }
        }
        drop(listener);
        // Nobody listens any more if there is no connection.
        let _ = stop.send(true);
        let drained = timeout(shared.limits.stop_timeout, async {
            while let Some(ended) = connections.join_next().await {
                shared.joined(&ended);
            }
        });
        if drained.await.is_err() {
            (0..connections.len()).for_each(|_| shared.counters.closed(Closed::StopTimeout));
            connections.shutdown().await;
        }
    }
}

impl DriverHandle {
    pub fn status(&self) -> SourceStatus {
        let refused = self.listener.refusals().into_iter().filter(|(_, count)| *count > 0);
        SourceStatus {
            connections_max: u64::from(self.listener.connections_max()),
            connections_refused: refused.map(|(code, count)| (code.to_owned(), count)).collect(),
            addresses_slowed: lock(&self.seen.backoff).slowed(Instant::now()) as u64,
            ..self.counters.status()
        }
    }

    /// The newest refusals, newest first.
    pub fn refusals(&self) -> Vec<Refusal> {
        lock(&self.seen.refusals).list()
    }
}

impl<I, C> Shared<I, C> {
    pub(crate) fn keep_refusal(&self, refusal: Refusal) {
        lock(&self.seen.refusals).add(refusal);
    }

    /// Counts a fault of the source and slows the address whose bytes were in hand.
    pub(crate) fn fault(&self, address: IpAddr) {
        self.counters.fault();
        lock(&self.seen.backoff).fault(address, Instant::now());
    }

    fn joined(&self, ended: &Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            self.counters.fault();
            tracing::error!(%error, "the task of a connection failed");
        }
    }
}

/// One accepted connection, from its welcome to its end.
async fn serve<I: Intake, C: Codec>(
    shared: Arc<Shared<I, C>>,
    connection: listen::Connection,
    mut stop: watch::Receiver<bool>,
) {
    let listen::Connection { reader, writer, peer, permit } = connection;
    let _open = shared.counters.open();
    match wait_turn(&shared.seen.backoff, peer.address.ip(), &mut stop).await {
        Turn::Come => {}
        Turn::Refused => return shared.counters.closed(Closed::Slowed),
        Turn::Stopped => return shared.counters.closed(Closed::Stopping),
    }
    match shared.codec.accept(peer_attributes(&peer), 0).await {
        Ok(codec) => Connection::new(shared, (reader, writer, peer), codec, stop).run().await,
        Err(error) => {
            let why = refuse_connection(&shared, &peer, error);
            shared.counters.closed(why);
        }
    }
    drop(permit);
}

fn refuse_connection<I, C>(shared: &Shared<I, C>, peer: &Peer, error: CodecError) -> Closed {
    let (why, failure) = match error {
        CodecError::Unavailable(_) => return Closed::Unavailable,
        CodecError::Fault(text) => {
            // No byte was read: the address is not to blame.
            shared.counters.fault();
            (Closed::Fault, Failure::new(code::FAULT, text))
        }
        CodecError::Refused(failure) => {
            shared.counters.refused(&failure.code);
            (Closed::Refused, failure)
        }
    };
    let at = shared.clock.now();
    shared.keep_refusal(Refusal { at, peer: peer.address, failure, bytes: Bytes::new() });
    why
}

fn peer_attributes(peer: &Peer) -> Attributes {
    let mut pairs = vec![
        ("address".to_owned(), peer.address.ip().to_canonical().to_string()),
        ("port".to_owned(), peer.address.port().to_string()),
    ];
    pairs.extend(peer.tls_subject.clone().map(|subject| ("tls.subject".to_owned(), subject)));
    Attributes::new(pairs).unwrap_or_default()
}
