//! The receiver: takes messages over HTTP or MLLP, counts them, and misbehaves on request.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portway_model::code;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::ledger::Ledger;
use super::message;
use super::stop::Stop;
use super::tally::Tally;
use super::{http, mllp};

/// Bytes of one message.
pub(crate) const BODY_BYTES_MAX: usize = 256 << 20;
/// Connections at the same time.
const CONNECTIONS_MAX: usize = 4_096;

/// How messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Mllp,
}

/// Where to listen, and how to behave at first.
#[derive(Clone, Debug)]
pub struct ReceiveSettings {
    pub listen: SocketAddr,
    pub protocol: Protocol,
    pub behaviour: Behaviour,
    /// Where what arrived is written down, before it is answered.
    pub ledger: Option<PathBuf>,
}

/// How messages are answered. The default takes each at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// Before each answer.
    pub slow: Option<Duration>,
    /// Close every connection at once.
    pub refuse: bool,
    /// Never answer.
    pub hang: bool,
    /// Answer every message with this HTTP status; over MLLP with AE, or AR if it begins with 4.
    pub status: Option<u16>,
    /// Answer every Nth message as failed.
    pub fail_every: Option<u64>,
}

/// Why it could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("cannot listen on `{address}`")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot write the ledger `{path}`")]
    Ledger {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ReceiveError {
    /// Its page says more.
    pub fn code(&self) -> &'static str {
        match self {
            ReceiveError::Listen { .. } => code::CANNOT_LISTEN,
            ReceiveError::Ledger { .. } => code::LEDGER_NOT_WRITTEN,
        }
    }
}

/// A receiver that listens.
pub struct Receiver {
    listener: TcpListener,
    protocol: Protocol,
    desk: Arc<Desk>,
}

/// What all connections share: counts, behaviour, ledger.
pub struct Desk {
    tally: Tally,
    behaviour: Mutex<Behaviour>,
    ledger: Option<Ledger>,
    arrived: AtomicU64,
}

/// How one message is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Taken,
    /// With this HTTP status.
    Failed(u16),
    Never,
}

impl Receiver {
    pub async fn bind(settings: ReceiveSettings) -> Result<Receiver, ReceiveError> {
        let ReceiveSettings { listen, protocol, behaviour, ledger } = settings;
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(|source| ReceiveError::Listen { address: listen, source })?;
        let open =
            |path: PathBuf| Ledger::append(&path).map_err(|source| ReceiveError::Ledger { path, source });
        let ledger = ledger.map(open).transpose()?;
        let behaviour = Mutex::new(behaviour);
        let desk = Desk { tally: Tally::default(), behaviour, ledger, arrived: AtomicU64::new(0) };
        Ok(Receiver { listener, protocol, desk: Arc::new(desk) })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Counts that can be read, and a behaviour that can be changed, while it runs.
    pub fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// Takes messages until it is stopped; connections are closed then.
    pub async fn run(self, mut stop: Stop) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.asked() => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if tasks.len() < CONNECTIONS_MAX && !self.desk.behaviour().refuse => {
                        tasks.spawn(serve(stream, self.protocol, self.desk.clone()));
                    }
                    Ok(_) => {}
                    // Out of descriptors: accepting again at once would only burn a core.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

async fn serve(stream: TcpStream, protocol: Protocol, desk: Arc<Desk>) {
    let _ = stream.set_nodelay(true);
    match protocol {
        Protocol::Http => http::serve(stream, desk).await,
        Protocol::Mllp => mllp::serve(stream, desk).await,
    }
}

impl Desk {
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    pub fn behaviour(&self) -> Behaviour {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the next message on.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    /// Decides about a message, waits if it is to be slow, and writes it down if it is taken.
    pub(crate) async fn take(&self, body: &[u8]) -> Reply {
        let behaviour = self.behaviour();
        if let Some(slow) = behaviour.slow {
            tokio::time::sleep(slow).await;
        }
        if behaviour.hang {
            return Reply::Never;
        }
        let turn = self.arrived.fetch_add(1, Ordering::Relaxed) + 1;
        let fails = behaviour.fail_every.is_some_and(|every| every > 0 && turn.is_multiple_of(every));
        let failed = behaviour.status.filter(|status| !(200..300).contains(status)).or(fails.then_some(500));
        if let Some(status) = failed {
            self.tally.record_turned_away();
            return Reply::Failed(status);
        }
        let seen = message::read(body);
        if let (Some(ledger), Some(seen)) = (&self.ledger, &seen) {
            // Not written down is not taken: the sender tries again.
            if ledger.write(&seen.identity).is_err() {
                return Reply::Failed(503);
            }
        }
        self.tally.record(seen.as_ref(), message::now());
        Reply::Taken
    }
}
