//! Listeners: accept, allow list, connection limit, TLS handshake; refusals counted by reason.
//!
//! Idle and in-frame time-outs are settings of the listener but are kept by who reads the
//! connection, since only he knows where a frame ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use portway_model::code;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use crate::tls::{self, FileMark};
pub use crate::tls::{TlsError, TlsFiles};

/// A handshake that takes longer is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections the system holds before they are accepted.
const BACKLOG: i32 = 512;
/// Pause after the system refused to accept, so that a lack of files does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often the certificate files are looked at, while connections come.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(10);
/// Probes after the keepalive time, five seconds apart, before a peer counts as dead.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenSettings {
    pub address: SocketAddr,
    /// Beyond it a connection is closed at once; at least one.
    pub connections_max: u32,
    /// Without a byte between frames for so long, a connection is closed.
    pub idle_timeout: Duration,
    /// A frame must be complete so long after its first byte.
    pub frame_timeout: Duration,
    /// Without a byte for so long the system asks whether the peer is still there.
    pub keepalive: Option<Duration>,
    /// Empty: all.
    pub allow: Vec<IpNet>,
    pub tls: Option<TlsFiles>,
}

/// Why a listener cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on `{address}`")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on `{address}` with TLS")]
    Tls {
        address: SocketAddr,
        #[source]
        source: Box<TlsError>,
    },
}

impl ListenError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            ListenError::Bind { .. } => code::CANNOT_LISTEN,
            ListenError::Tls { .. } => code::LISTENER_TLS,
        }
    }
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBecause {
    NotAllowed,
    TooMany,
    TlsFailed,
    TlsTimeout,
    AcceptFailed,
}

impl RefusedBecause {
    /// In the order of the counters.
    pub const ALL: [RefusedBecause; 5] = [
        RefusedBecause::NotAllowed,
        RefusedBecause::TooMany,
        RefusedBecause::TlsFailed,
        RefusedBecause::TlsTimeout,
        RefusedBecause::AcceptFailed,
    ];

    pub fn code(self) -> &'static str {
        match self {
            RefusedBecause::NotAllowed => code::NOT_ALLOWED,
            RefusedBecause::TooMany => code::TOO_MANY,
            RefusedBecause::TlsFailed => code::TLS_FAILED,
            RefusedBecause::TlsTimeout => code::TLS_TIMEOUT,
            RefusedBecause::AcceptFailed => code::ACCEPT_FAILED,
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: SocketAddr,
    /// Of the client's certificate; none where none is asked for.
    pub tls_subject: Option<String>,
}

/// An accepted connection.
pub struct Connection {
    pub reader: Reader,
    pub writer: Writer,
    pub peer: Peer,
    /// Counts against the limit as long as it lives.
    pub permit: Permit,
}

/// Held by a connection that counts.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
}

/// The half that is read.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The half that is written.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// What can be seen of a listener while somebody else accepts from it. Cheap to clone.
#[derive(Clone)]
pub struct ListenStatus {
    shared: Arc<ListenShared>,
}

struct ListenShared {
    connections_max: u32,
    permits: Arc<Semaphore>,
    refusals: [AtomicU64; RefusedBecause::ALL.len()],
}

/// Accepts connections.
pub struct Listener {
    settings: ListenSettings,
    listener: TcpListener,
    local_address: SocketAddr,
    tls: Option<Certificate>,
    handshakes: JoinSet<Option<Connection>>,
    shared: Arc<ListenShared>,
}

/// The certificate pair in use, and when its files were last looked at.
struct Certificate {
    files: TlsFiles,
    marks: [FileMark; 3],
    looked: Instant,
    acceptor: TlsAcceptor,
}

impl Listener {
    /// Binds and reads the certificate. Needs a runtime around it.
    pub fn bind(settings: ListenSettings) -> Result<Listener, ListenError> {
        let address = settings.address;
        let listener = bind(address).map_err(|source| ListenError::Bind { address, source })?;
        Listener::on(listener, settings)
    }

    /// The same on a socket that listens already and does not block; its address counts.
    pub fn bind_to(socket: std::net::TcpListener, settings: ListenSettings) -> Result<Listener, ListenError> {
        let address = settings.address;
        let listener =
            TcpListener::from_std(socket).map_err(|source| ListenError::Bind { address, source })?;
        Listener::on(listener, settings)
    }

    fn on(listener: TcpListener, settings: ListenSettings) -> Result<Listener, ListenError> {
        let address = settings.address;
        let tls = settings.tls.clone().map(Certificate::load).transpose();
        let tls = tls.map_err(|source| ListenError::Tls { address, source: Box::new(source) })?;
        let bind_error = |source| ListenError::Bind { address, source };
        let local_address = listener.local_addr().map_err(bind_error)?;
        let connections_max = settings.connections_max.max(1);
        let permits = Arc::new(Semaphore::new(connections_max as usize));
        let shared = Arc::new(ListenShared { connections_max, permits, refusals: Default::default() });
        Ok(Listener { settings, listener, local_address, tls, handshakes: JoinSet::new(), shared })
    }

    /// Where it listens, with the port the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_address
    }

    pub fn settings(&self) -> &ListenSettings {
        &self.settings
    }

    pub fn status(&self) -> ListenStatus {
        ListenStatus { shared: self.shared.clone() }
    }

    /// Refused connections by reason.
    pub fn refusals(&self) -> Vec<(&'static str, u64)> {
        self.status().refusals()
    }

    /// The next connection that passed every check. Refused ones are counted and closed;
    /// nothing a peer does makes this fail. May be dropped and called again.
    pub async fn accept(&mut self) -> Connection {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        if let Some(connection) = self.admit(stream, address) {
                            return connection;
                        }
                    }
                    Err(error) => {
                        self.shared.refuse(RefusedBecause::AcceptFailed);
                        tracing::debug!(%error, "a connection was not accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(shaken) = self.handshakes.join_next(), if !self.handshakes.is_empty() => {
                    if let Ok(Some(connection)) = shaken {
                        return connection;
                    }
                }
            }
        }
    }

    /// Checks a connection; with TLS it comes back when its handshake is done.
    fn admit(&mut self, stream: TcpStream, address: SocketAddr) -> Option<Connection> {
        if !self.is_allowed(address.ip()) {
            self.shared.refuse(RefusedBecause::NotAllowed);
            return None;
        }
        let Ok(permit) = self.shared.permits.clone().try_acquire_owned() else {
            self.shared.refuse(RefusedBecause::TooMany);
            return None;
        };
        let permit = Permit { _permit: permit };
        self.prepare(&stream);
        let Some(certificate) = &mut self.tls else {
            return Some(plain_connection(stream, address, permit));
        };
        let acceptor = certificate.acceptor();
        self.handshakes.spawn(shake(acceptor, stream, address, permit, self.shared.clone()));
        None
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        // A listener on `::` sees IPv4 peers as mapped addresses.
        let address = address.to_canonical();
        self.settings.allow.is_empty() || self.settings.allow.iter().any(|net| net.contains(&address))
    }

    fn prepare(&self, stream: &TcpStream) {
        let mut set = stream.set_nodelay(true);
        if let Some(time) = self.settings.keepalive {
            let keepalive = TcpKeepalive::new()
                .with_time(time)
                .with_interval(KEEPALIVE_INTERVAL)
                .with_retries(KEEPALIVE_RETRIES);
            set = set.and(SockRef::from(stream).set_tcp_keepalive(&keepalive));
        }
        if let Err(error) = set {
            tracing::debug!(%error, "socket options were not taken");
        }
    }
}

impl ListenStatus {
    /// Refused connections by reason.
    pub fn refusals(&self) -> Vec<(&'static str, u64)> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RefusedBecause::ALL
            .iter()
            .map(|reason| reason.code())
            .zip(self.shared.refusals.iter().map(count))
            .collect()
    }

    /// Connections that are open now, with those in their handshake.
    pub fn connections(&self) -> u32 {
        let free = u32::try_from(self.shared.permits.available_permits()).unwrap_or(u32::MAX);
        self.shared.connections_max.saturating_sub(free)
    }

    pub fn connections_max(&self) -> u32 {
        self.shared.connections_max
    }
}

impl ListenShared {
    fn refuse(&self, because: RefusedBecause) {
        if let Some(counter) = self.refusals.get(because as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Certificate {
    fn load(files: TlsFiles) -> Result<Certificate, TlsError> {
        let marks = marks(&files);
        let acceptor = TlsAcceptor::from(Arc::new(tls::server_config(&files)?));
        Ok(Certificate { files, marks, looked: Instant::now(), acceptor })
    }

    /// The pair as it stands in its files; one that cannot be read leaves the old one in use.
    fn acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() >= CERTIFICATE_LOOK {
            self.looked = Instant::now();
            if marks(&self.files) != self.marks {
                match Certificate::load(self.files.clone()) {
                    Ok(renewed) => *self = renewed,
                    Err(error) => tracing::warn!(%error, "a changed certificate was not taken"),
                }
            }
        }
        self.acceptor.clone()
    }
}

fn marks(files: &TlsFiles) -> [FileMark; 3] {
    let clients = files.clients.as_deref().and_then(tls::file_mark);
    [tls::file_mark(&files.certificate), tls::file_mark(&files.key), clients]
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted engine must not wait for old connections to be forgotten.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn plain_connection(stream: TcpStream, address: SocketAddr, permit: Permit) -> Connection {
    let (reader, writer) = stream.into_split();
    Connection {
        reader: Box::new(reader),
        writer: Box::new(writer),
        peer: Peer { address, tls_subject: None },
        permit,
    }
}

async fn shake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    address: SocketAddr,
    permit: Permit,
    shared: Arc<ListenShared>,
) -> Option<Connection> {
    match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let peer = Peer { address, tls_subject: shown.and_then(tls::subject) };
            let (reader, writer) = tokio::io::split(stream);
            Some(Connection { reader: Box::new(reader), writer: Box::new(writer), peer, permit })
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, %address, "a TLS handshake failed");
            shared.refuse(RefusedBecause::TlsFailed);
            None
        }
        Err(_) => {
            shared.refuse(RefusedBecause::TlsTimeout);
            None
        }
    }
}
