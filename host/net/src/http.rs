//! The one HTTP client: every request a plugin causes leaves through here.
//!
//! It follows no redirect, asks no proxy, keeps connections per grant, and holds a request to
//! one deadline from the name to the last byte of the answer. What a request may look like is
//! in `request`, kept connections are in `pool`.

mod pool;
mod request;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use url::Url;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::AddressPolicy;

/// The limits of all pools of a process.
#[derive(Clone, Copy, Debug)]
pub struct ConnectorSettings {
    /// Connections of one grant at the same time; further requests wait within their deadline.
    pub connections_per_grant_max: usize,
    /// Connections of one grant that are kept without work.
    pub idle_per_grant_max: usize,
    /// How long one is kept without work.
    pub idle_timeout: Duration,
    /// From the name to the end of the TLS handshake, within the request's own deadline.
    pub connect_timeout: Duration,
}

impl Default for ConnectorSettings {
    fn default() -> Self {
        ConnectorSettings {
            connections_per_grant_max: 64,
            idle_per_grant_max: 32,
            idle_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// An API that may be called: everything at and below its base.
#[derive(Clone, Debug)]
pub struct HttpGrant {
    /// `http` or `https`; no user, no query, no fragment.
    pub base: Url,
    pub credentials: Option<Credentials>,
    /// Sent with every request; a request that names one of them is refused.
    pub headers: GrantedHeaders,
    /// The whole request; one that asks for more gets this.
    pub timeout: Duration,
    pub response_bytes_max: usize,
    pub addresses: AddressPolicy,
    /// PEM of the roots to trust; none: the public ones.
    pub tls_roots: Option<PathBuf>,
}

/// Headers of a grant, by name. They may hold keys: no value is shown, and their memory is
/// overwritten when they are dropped.
#[derive(Clone, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct GrantedHeaders(Vec<(String, String)>);

/// What the host adds so that the plugin need not know it. Its memory is overwritten when it is
/// dropped.
#[derive(Clone, PartialEq, Eq, Hash, Zeroize, ZeroizeOnDrop)]
pub enum Credentials {
    Bearer(String),
    Basic { user: String, password: String },
    Header { name: String, value: String },
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: String,
    /// A path under the grant's base, beginning with `/`, with its query; `/` alone or nothing
    /// is the base itself. Or an absolute URL at or below the base.
    pub path_or_url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// None: the grant's.
    pub timeout: Option<Duration>,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    /// Names are lower case; bytes that are no text are replaced.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Not granted; nothing was sent.
    #[error("denied: {0}")]
    Denied(String),
    /// The deadline passed; the request may have arrived.
    #[error("timed out")]
    Timeout,
    /// No connection; nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The connection ended before the answer did; the request may have arrived.
    #[error("{0}")]
    Broken(String),
    /// The answer is above the grant's limit; the request has arrived.
    #[error("the answer is larger than the grant allows")]
    TooLarge,
    /// Not a request HTTP knows; nothing was sent.
    #[error("invalid request: {0}")]
    Invalid(String),
    #[error("{0}")]
    Other(String),
}

impl HttpError {
    /// Whether the peer may have seen the request.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            HttpError::Denied(_) | HttpError::Unreachable(_) | HttpError::Invalid(_) => false,
            HttpError::Timeout | HttpError::Broken(_) | HttpError::TooLarge | HttpError::Other(_) => true,
        }
    }
}

/// Sends requests; one a process. Cheap to clone.
#[derive(Clone)]
pub struct Connector {
    pools: Arc<pool::Pools>,
}

impl HttpGrant {
    /// A grant with the usual limits and nothing attached.
    pub fn new(base: Url) -> HttpGrant {
        HttpGrant {
            base,
            credentials: None,
            headers: GrantedHeaders::default(),
            timeout: Duration::from_secs(30),
            response_bytes_max: 1 << 20,
            addresses: AddressPolicy::Operator,
            tls_roots: None,
        }
    }

    /// Says what is wrong with the grant, before anything is sent under it.
    pub fn check(&self) -> Result<(), HttpError> {
        request::check_grant(self)
    }

    /// Says what is wrong with a request under the grant; nothing is sent.
    pub fn check_request(&self, request: &HttpRequest) -> Result<(), HttpError> {
        request::prepare(self, request.clone()).map(drop)
    }
}

impl GrantedHeaders {
    pub fn iter(&self) -> std::slice::Iter<'_, (String, String)> {
        self.0.iter()
    }
}

impl FromIterator<(String, String)> for GrantedHeaders {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(pairs: T) -> Self {
        GrantedHeaders(pairs.into_iter().collect())
    }
}

impl<'h> IntoIterator for &'h GrantedHeaders {
    type Item = &'h (String, String);
    type IntoIter = std::slice::Iter<'h, (String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for GrantedHeaders {
    /// Names alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

impl fmt::Debug for Credentials {
    /// Never the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credentials::Bearer(_) => "Bearer(…)",
            Credentials::Basic { .. } => "Basic(…)",
            Credentials::Header { .. } => "Header(…)",
        })
    }
}

impl Default for Connector {
    fn default() -> Self {
        Connector::new(ConnectorSettings::default())
    }
}

impl Connector {
    pub fn new(settings: ConnectorSettings) -> Connector {
        Connector { pools: Arc::new(pool::Pools::new(settings)) }
    }

    /// Sends one request under a grant and waits for the whole answer.
    pub async fn send(&self, grant: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let within = request.timeout.map_or(grant.timeout, |timeout| timeout.min(grant.timeout));
        let prepared = request::prepare(grant, request)?;
        let begun = AtomicBool::new(false);
        match tokio::time::timeout(within, self.pools.send(grant, prepared, &begun)).await {
            Ok(result) => result,
            Err(_) if begun.into_inner() => Err(HttpError::Timeout),
            Err(_) => {
                let host = grant.base.host_str().unwrap_or_default();
                Err(HttpError::Unreachable(format!("no connection to `{host}` in time")))
            }
        }
    }

    /// Connections kept without work, over all grants.
    pub fn idle_connections(&self) -> usize {
        self.pools.idle_connections()
    }
}
