//! Outbound TCP and TLS connections of one grant, kept between calls.
//!
//! A connection belongs to one call at a time. Only `keep` gives it back; dropped in any other way it
//! is closed. One on which the peer spoke or closed while nobody listened is not used again, so that a
//! late answer is never taken for the answer to something else. How TLS is spoken and what is written
//! of credentials is in `protect`.

mod protect;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::AddressPolicy;
use crate::dial::{self, DialError, Target};
use crate::stream::{Probe, Wire};
use crate::tls::{self, TlsError};

use protect::Tls;

pub use protect::{Credential, Protection, TcpCredentials, TcpTls, TlsPair, TlsStart};

/// Bytes of one read at most.
const READ_MAX: usize = 1 << 20;
/// Bytes that may be written where TLS is required and has not begun: enough to ask for it.
const PLAIN_BYTES_MAX: usize = 512;

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
    /// Written over TLS alone.
    pub credentials: Option<TcpCredentials>,
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
    /// TLS failed for a reason that only a person can change.
    #[error("{0}")]
    Untrusted(String),
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
    tls: Option<Tls>,
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
    /// What may still be written before TLS; none: as much as you like.
    plain_left: Option<usize>,
}

impl TcpPool {
    /// Fails if a file of the TLS settings cannot be read or the peer's name is none.
    pub fn new(grant: TcpGrant) -> Result<TcpPool, TlsError> {
        let tls = grant.tls.as_ref().map(|tls| Tls::new(tls, &grant.host)).transpose()?;
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
                return Ok(TcpConnection::new(live, pool.clone(), Age::Kept));
            }
        }
        let permit = pool.permits.clone().try_acquire_owned().map_err(|_| TcpError::Busy)?;
        let at_once = pool.tls.as_ref().filter(|tls| tls.start() == TlsStart::Connect);
        let target = Target {
            host: &pool.grant.host,
            port: pool.grant.port,
            addresses: pool.grant.addresses,
            tls: at_once.map(Tls::target),
        };
        match timeout(pool.grant.connect_timeout, dial::dial(target)).await {
            Err(_) => Err(TcpError::Timeout),
            Ok(Err(error)) => Err(TcpError::from(error)),
            Ok(Ok((wire, probe))) => {
                let live = Live { wire, probe, _permit: permit };
                Ok(TcpConnection::new(live, pool.clone(), Age::Fresh))
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

/// Whether a connection was used before.
enum Age {
    Fresh,
    Kept,
}

impl TcpConnection {
    fn new(live: Live, pool: Arc<PoolInner>, age: Age) -> TcpConnection {
        let mut connection =
            TcpConnection { live, pool, fresh: matches!(age, Age::Fresh), broken: false, plain_left: None };
        if connection.protection() == Protection::Required {
            connection.plain_left = Some(PLAIN_BYTES_MAX);
        }
        connection
    }

    /// True: just dialled, nothing was said on it.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// All of the bytes, or an error; after an error the connection cannot be kept.
    pub async fn write(&mut self, bytes: &[u8], within: Duration) -> Result<(), TcpError> {
        if let Some(left) = self.plain_left {
            let Some(left) = left.checked_sub(bytes.len()) else {
                self.broken = true;
                return Err(TcpError::Denied("TLS has not begun, and the grant requires it".into()));
            };
            self.plain_left = Some(left);
        }
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
        if !self.broken && self.plain_left.is_none() && self.live.is_quiet() {
            let pool = self.pool.clone();
            pool.lock_kept().push(self.live);
        }
    }
}

async fn timed<T>(within: Duration, work: impl Future<Output = io::Result<T>>) -> Result<T, TcpError> {
    match timeout(within, work).await {
        Err(_) => Err(TcpError::Timeout),
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if tls::is_lasting(&error) => Err(TcpError::Untrusted(error.to_string())),
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

impl From<DialError> for TcpError {
    fn from(error: DialError) -> TcpError {
        match &error {
            DialError::Refused(refused) => TcpError::Denied(refused.to_string()),
            DialError::Tls { source, .. } if tls::is_lasting(source) => {
                TcpError::Untrusted(error.to_string())
            }
            _ => TcpError::Unreachable(error.to_string()),
        }
    }
}
