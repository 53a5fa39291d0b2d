//! TLS of a TCP grant, from the first byte or begun later, and the credentials that are written
//! over it.
//!
//! A grant that requires TLS is kept to it here, whatever the plugin does: before it, next to
//! nothing may be written, and credentials nothing at all.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::timeout;

use super::{TcpConnection, TcpError};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::dial::{self, TlsTarget};
use crate::stream::Wire;
use crate::tls::{self, FileMark, TlsError};

/// TLS towards the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpTls {
    /// PEM of the roots to trust; none: the public ones.
    pub roots: Option<PathBuf>,
    /// The name on the peer's certificate; none: the grant's host.
    pub server_name: Option<String>,
    /// What the peer is shown; none: nothing.
    pub pair: Option<TlsPair>,
    pub start: TlsStart,
}

/// A client's certificate chain and its key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsPair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// When TLS begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TlsStart {
    /// With the first byte.
    #[default]
    Connect,
    /// On an open connection, where the peer offers it.
    Wanted,
    /// On an open connection, or nothing is said on it.
    Required,
}

/// How a connection is protected now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Plain, as granted.
    None,
    /// Plain; TLS is wanted.
    Wanted,
    /// Plain; TLS has to begin.
    Required,
    Tls,
}

/// A user and a password, never shown; their memory is overwritten when they are dropped.
#[derive(Clone, PartialEq, Eq, Hash, Zeroize, ZeroizeOnDrop)]
pub struct TcpCredentials {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for TcpCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TcpCredentials(…)")
    }
}

/// A line of credentials, as SASL has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// User and password in one, the mechanism PLAIN.
    Plain,
    User,
    Password,
}

impl TcpCredentials {
    fn line(&self, credential: Credential) -> Zeroizing<String> {
        let TcpCredentials { user, password } = self;
        let encoded = Zeroizing::new(match credential {
            Credential::Plain => STANDARD.encode(Zeroizing::new(format!("\0{user}\0{password}")).as_bytes()),
            Credential::User => STANDARD.encode(user),
            Credential::Password => STANDARD.encode(password),
        });
        // Made in one piece: a text that grows leaves its former places behind.
        Zeroizing::new([encoded.as_str(), "\r\n"].concat())
    }
}

/// The state of the files that TLS settings are made from.
type Marks = [FileMark; 3];

/// TLS settings of a grant, made anew when their files change.
pub(super) struct Tls {
    settings: TcpTls,
    name: ServerName<'static>,
    made: Mutex<(Marks, Arc<ClientConfig>)>,
}

impl Tls {
    pub(super) fn new(settings: &TcpTls, host: &str) -> Result<Tls, TlsError> {
        let name = settings.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError::Setup(rustls::Error::General(format!("`{name}` is no server name"))))?;
        let made = (settings.marks(), Arc::new(settings.make()?));
        Ok(Tls { settings: settings.clone(), name, made: Mutex::new(made) })
    }

    pub(super) fn start(&self) -> TlsStart {
        self.settings.start
    }

    /// What to dial with. Files that cannot be used at the moment, such as half of a renewed pair,
    /// leave what was made before in use.
    pub(super) fn target(&self) -> TlsTarget {
        let marks = self.settings.marks();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.0 != marks {
            match self.settings.make() {
                Ok(config) => *made = (marks, Arc::new(config)),
                Err(error) => tracing::warn!(%error, "changed TLS files cannot be used"),
            }
        }
        TlsTarget { config: made.1.clone(), name: self.name.clone() }
    }
}

impl TcpTls {
    fn marks(&self) -> Marks {
        let pair = self.pair.as_ref();
        let files = [
            self.roots.as_deref(),
            pair.map(|pair| pair.certificate.as_path()),
            pair.map(|pair| pair.key.as_path()),
        ];
        files.map(|file| file.and_then(tls::file_mark))
    }

    fn make(&self) -> Result<ClientConfig, TlsError> {
        let pair = self.pair.as_ref().map(|pair| (pair.certificate.as_path(), pair.key.as_path()));
        tls::client_config_as(pair, self.roots.as_deref(), &[])
    }
}

impl TcpConnection {
    /// How it is protected now.
    pub fn protection(&self) -> Protection {
        match (&self.live.wire, &self.pool.tls) {
            (Wire::Tls(_), _) => Protection::Tls,
            (Wire::Plain(_), None) => Protection::None,
            (Wire::Plain(_), Some(tls)) => match tls.start() {
                // A connection of this kind is never plain.
                TlsStart::Connect | TlsStart::Required => Protection::Required,
                TlsStart::Wanted => Protection::Wanted,
            },
        }
    }

    /// Begins TLS. What the peer said before must have been read: bytes that somebody put behind
    /// its consent would otherwise count as said under TLS.
    pub async fn start_tls(&mut self, within: Duration) -> Result<(), TcpError> {
        let Some(tls) = self.pool.tls.as_ref().filter(|_| self.protection() != Protection::Tls) else {
            return Err(TcpError::Denied("the grant does not speak of TLS on this connection".into()));
        };
        if self.broken || !self.live.probe.is_quiet() {
            self.broken = true;
            return Err(TcpError::Untrusted("the peer spoke on before TLS began".into()));
        }
        self.broken = true;
        let within = within.min(self.pool.grant.connect_timeout);
        let handshake = dial::protect(self.live.probe.socket(), tls.target(), &self.pool.grant.host);
        match timeout(within, handshake).await {
            Err(_) => Err(TcpError::Timeout),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(wire)) => {
                self.live.wire = wire;
                self.broken = false;
                self.plain_left = None;
                Ok(())
            }
        }
    }

    /// The grant has credentials.
    pub fn has_credentials(&self) -> bool {
        self.pool.grant.credentials.is_some()
    }

    /// Writes a line of the grant's credentials, over TLS alone.
    pub async fn write_credential(
        &mut self,
        credential: Credential,
        within: Duration,
    ) -> Result<(), TcpError> {
        let Some(credentials) = &self.pool.grant.credentials else {
            return Err(TcpError::Denied("the grant has no credentials".into()));
        };
        if self.protection() != Protection::Tls {
            return Err(TcpError::Denied("credentials are written over TLS alone".into()));
        }
        let line = credentials.line(credential);
        self.write(line.as_bytes(), within).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_lines_of_base64_and_are_not_shown() {
        let credentials = TcpCredentials { user: "lab".into(), password: "s3cret".into() };
        assert_eq!(*credentials.line(Credential::Plain), "AGxhYgBzM2NyZXQ=\r\n");
        assert_eq!(*credentials.line(Credential::User), "bGFi\r\n");
        assert_eq!(*credentials.line(Credential::Password), "czNjcmV0\r\n");
        assert_eq!(format!("{credentials:?}"), "TcpCredentials(…)");
    }
}
