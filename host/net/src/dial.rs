//! Dialling: resolve a name, check every address, connect to one that was checked.
//!
//! The one way out for `tcp` and `http`. A name is resolved anew for each connection and the
//! checked address itself is dialled, never the name again.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use crate::stream::{Probe, SharedTcp, Wire};
use crate::{AddressPolicy, AddressRefused};

/// How long the first address has before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);
/// A dead peer is found out after about half a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 16;

/// Where to, and under which rules.
pub(crate) struct Target<'a> {
    /// A name or an address, without brackets.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) addresses: AddressPolicy,
    pub(crate) tls: Option<TlsTarget>,
}

/// TLS on top of the connection.
pub(crate) struct TlsTarget {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Refused(AddressRefused),
    #[error("`{host}` has no address")]
    NoAddress { host: String },
    #[error("cannot resolve `{host}`: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("cannot connect to `{address}`: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("the TLS handshake with `{host}` failed: {source}")]
    Tls { host: String, source: io::Error },
}

/// Opens a connection. The caller sets the deadline.
pub(crate) async fn dial(target: Target<'_>) -> Result<(Wire, Probe), DialError> {
    let addresses = checked_addresses(target.host, target.port, target.addresses).await?;
    let stream = connect_first(&addresses).await?;
    prepare(&stream);
    let (shared, probe) = SharedTcp::new(stream);
    let Some(tls) = target.tls else {
        return Ok((Wire::Plain(shared), probe));
    };
    Ok((protect(shared, tls, target.host).await?, probe))
}

/// TLS over a connection that is open. The caller sets the deadline.
pub(crate) async fn protect(shared: SharedTcp, tls: TlsTarget, host: &str) -> Result<Wire, DialError> {
    match TlsConnector::from(tls.config).connect(tls.name, shared).await {
        Ok(stream) => Ok(Wire::Tls(Box::new(stream))),
        Err(source) => Err(DialError::Tls { host: host.to_owned(), source }),
    }
}

async fn checked_addresses(
    host: &str,
    port: u16,
    policy: AddressPolicy,
) -> Result<Vec<SocketAddr>, DialError> {
    let resolved: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => match lookup_host((host, port)).await {
            Ok(addresses) => addresses.take(ADDRESSES_MAX).collect(),
            Err(source) => return Err(DialError::Resolve { host: host.to_owned(), source }),
        },
    };
    let mut refused = None;
    let mut allowed = Vec::with_capacity(resolved.len());
    for address in resolved {
        match policy.check(address.ip()) {
            Ok(()) => allowed.push(address),
            Err(reason) => refused = Some(reason),
        }
    }
    match (allowed.is_empty(), refused) {
        (false, _) => Ok(allowed),
        (true, Some(refused)) => Err(DialError::Refused(refused)),
        (true, None) => Err(DialError::NoAddress { host: host.to_owned() }),
    }
}

/// Tries the addresses in order, the next one as soon as one fails or has had its head start;
/// the first that answers wins.
async fn connect_first(addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
    let mut waiting = addresses.iter().copied();
    let mut attempts = FuturesUnordered::new();
    let mut last = None;
    loop {
        if let Some(address) = waiting.next() {
            attempts.push(async move {
                TcpStream::connect(address).await.map_err(|source| DialError::Connect { address, source })
            });
        }
        let finished = if waiting.len() == 0 {
            attempts.next().await
        } else {
            match tokio::time::timeout(HEAD_START, attempts.next()).await {
                Ok(finished) => finished,
                Err(_) => continue,
            }
        };
        match finished {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => last = Some(error),
            None => {}
        }
        if attempts.is_empty() && waiting.len() == 0 {
            return Err(last.unwrap_or_else(|| DialError::NoAddress { host: String::new() }));
        }
    }
}

/// Small writes go at once, a dead peer is noticed. Neither is worth a failed connection.
fn prepare(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
    let set = stream.set_nodelay(true).and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keepalive));
    if let Err(error) = set {
        tracing::debug!(%error, "socket options were not taken");
    }
}
