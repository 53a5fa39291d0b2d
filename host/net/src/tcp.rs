//! Outbound TCP and TLS connections of one grant, kept between calls.
//!
//! A connection belongs to one call at a time. Only `keep` gives it back; dropped in any other
//! way it is closed. One on which the peer spoke or closed while nobody listened is not used
//! again, so that a late answer is never taken for the answer to something else.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::AddressPolicy;
use crate::dial::{self, DialError, Target, TlsTarget};
use crate::stream::{Probe, Wire};
use crate::tls::{self, TlsError};

/// Bytes of one read at most.
const READ_MAX: usize = 1 << 20;

/// A peer that may be dialled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TcpGrant {
    /// A name or an address.
    pub host: String,
    pub port: u16,
    /// In use and kept together.
    pub connections_max: u32,
    /// From the name to the end of the TLS handshake.
    pub connect_timeout: Duration,
    pub addresses: AddressPolicy,
    pub tls: Option<TcpTls>,
}

/// TLS towards the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpTls {
    /// PEM of the roots to trust; none: the public ones.
    pub roots: Option<PathBuf>,
    /// The name on the peer's certificate; none: the grant's host.
    pub server_name: Option<String>,
}

/// Why there is no connection, or why it did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpError {
    #[error("denied: {0}")]
    Denied(String),
    #[error("all connections of the grant are in use")]
    Busy,
    #[error("{0}")]
    Unreachable(String),
    #[error("timed out")]
    Timeout,
    #[error("the peer closed the connection")]
    Closed,
    #[error("{0}")]
    Other(String),
}

/// The connections of one grant. Cheap to clone.
#[derive(Clone)]
pub struct TcpPool {
    inner: Arc<PoolInner>,
}

struct PoolInner {
    grant: TcpGrant,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    permits: Arc<Semaphore>,
    kept: Mutex<Vec<Live>>,
}

struct Live {
    wire: Wire,
    probe: Probe,
    _permit: OwnedSemaphorePermit,
}

/// A connection that is one call's alone.
pub struct TcpConnection {
    live: Live,
    pool: Arc<PoolInner>,
    fresh: bool,
    /// An error or a time-out was seen: what comes next cannot be told from what was before.
    broken: bool,
}

impl TcpPool {
    /// Fails if the TLS roots cannot be read or the peer's name is none.
    pub fn new(grant: TcpGrant) -> Result<TcpPool, TlsError> {
        let tls = match &grant.tls {
            None => None,
            Some(tls) => {
                let config = tls::client_config(tls.roots.as_deref(), &[])?;
                let name = tls.server_name.as_deref().unwrap_or(&grant.host);
                let name = ServerName::try_from(name.to_owned()).map_err(|_| {
                    TlsError::Setup(rustls::Error::General(format!("`{name}` is no server name")))
                })?;
                Some((Arc::new(config), name))
            }
        };
        let permits = Arc::new(Semaphore::new(grant.connections_max.max(1) as usize));
        Ok(TcpPool { inner: Arc::new(PoolInner { grant, tls, permits, kept: Mutex::default() }) })
    }

    /// What the pool reaches.
    pub fn grant(&self) -> &TcpGrant {
        &self.inner.grant
    }

    /// One that was kept, or a new one.
    pub async fn open(&self) -> Result<TcpConnection, TcpError> {
        let pool = &self.inner;
        while let Some(mut live) = pool.take_kept() {
            if live.is_quiet() {
                return Ok(TcpConnection { live, pool: pool.clone(), fresh: false, broken: false });
            }
        }
        let permit = pool.permits.clone().try_acquire_owned().map_err(|_| TcpError::Busy)?;
        let tls = pool.tls.as_ref();
        let target = Target {
            host: &pool.grant.host,
            port: pool.grant.port,
            addresses: pool.grant.addresses,
            tls: tls.map(|(config, name)| TlsTarget { config: config.clone(), name: name.clone() }),
        };
        match timeout(pool.grant.connect_timeout, dial::dial(target)).await {
            Err(_) => Err(TcpError::Timeout),
            Ok(Err(DialError::Refused(refused))) => Err(TcpError::Denied(refused.to_string())),
            Ok(Err(error)) => Err(TcpError::Unreachable(error.to_string())),
            Ok(Ok((wire, probe))) => {
                let live = Live { wire, probe, _permit: permit };
                Ok(TcpConnection { live, pool: pool.clone(), fresh: true, broken: false })
            }
        }
    }

    /// Closes what is kept; what is in use is not touched.
    pub fn close_kept(&self) {
        self.inner.lock_kept().clear();
    }
}

impl PoolInner {
    fn lock_kept(&self) -> std::sync::MutexGuard<'_, Vec<Live>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_kept(&self) -> Option<Live> {
        self.lock_kept().pop()
    }
}

impl Live {
    /// Nothing came since the last read, below TLS and above it.
    fn is_quiet(&mut self) -> bool {
        if let Wire::Tls(_) = &self.wire {
            // Session tickets may wait below; reading them away must give no byte for us.
            let mut byte = [0];
            let mut buf = ReadBuf::new(&mut byte);
            let polled =
                Pin::new(&mut self.wire).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf);
            if polled.is_ready() {
                return false;
            }
        }
        self.probe.is_quiet()
    }
}

impl TcpConnection {
    /// True: just dialled, nothing was said on it.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// All of the bytes, or an error; after an error the connection cannot be kept.
    pub async fn write(&mut self, bytes: &[u8], within: Duration) -> Result<(), TcpError> {
        let wire = &mut self.live.wire;
        let write = async {
            wire.write_all(bytes).await?;
            wire.flush().await
        };
        // Set beforehand: a call that is dropped half-way leaves half a message behind.
        self.broken = true;
        let result = timed(within, write).await;
        self.broken = result.is_err();
        result
    }

    /// At most `max` bytes; none: the peer has closed.
    pub async fn read(&mut self, max: usize, within: Duration) -> Result<Bytes, TcpError> {
        let mut buffer = BytesMut::with_capacity(max.clamp(1, 8 << 10));
        let limit = max.clamp(1, READ_MAX);
        let wire = &mut self.live.wire;
        let result = timed(within, async {
            let mut limited = wire.take(limit as u64);
            limited.read_buf(&mut buffer).await
        });
        match result.await {
            Ok(read) => {
                self.broken |= read == 0;
                Ok(buffer.freeze())
            }
            Err(error) => {
                self.broken = true;
                Err(error)
            }
        }
    }

    /// Gives it back for a later call, unless something went wrong on it.
    pub fn keep(mut self) {
        if !self.broken && self.live.is_quiet() {
            let pool = self.pool.clone();
            pool.lock_kept().push(self.live);
        }
    }
}

async fn timed<T>(within: Duration, work: impl Future<Output = io::Result<T>>) -> Result<T, TcpError> {
    match timeout(within, work).await {
        Err(_) => Err(TcpError::Timeout),
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(match error.kind() {
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => TcpError::Closed,
            io::ErrorKind::TimedOut => TcpError::Timeout,
            _ => TcpError::Other(error.to_string()),
        }),
    }
}
