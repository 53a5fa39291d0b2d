//! TCP and TLS connections by the name of a granted slot. The host dials, keeps and
//! closes, and writes credentials itself.

use std::time::Duration;

use crate::host;

/// Why there is no connection, or why it did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    Denied,
    /// As many connections as allowed are in use.
    Busy,
    Unreachable(String),
    Timeout,
    Closed,
    /// TLS failed for a reason that only a person can change.
    Untrusted(String),
    Other(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Denied => f.write_str("the connection is not granted, or not without TLS"),
            Error::Busy => f.write_str("as many connections as allowed are in use"),
            Error::Unreachable(text) => write!(f, "the peer cannot be reached: {text}"),
            Error::Timeout => f.write_str("the peer did not answer in time"),
            Error::Closed => f.write_str("the peer closed the connection"),
            Error::Untrusted(text) => write!(f, "the peer is not trusted: {text}"),
            Error::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// How a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Plain, as granted.
    None,
    /// Plain; the grant wants TLS where the peer offers it.
    Wanted,
    /// Plain, and of no use before TLS.
    Required,
    Tls,
}

/// A line of the grant's credentials, as SASL has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// User and password in one, the mechanism PLAIN.
    Plain,
    User,
    Password,
}

/// A connection that is this call's alone. Dropped without [`Connection::keep`] it is
/// closed.
#[derive(Debug)]
pub struct Connection(host::Connection);

/// One that was kept, or a new one.
pub fn open(name: &str) -> Result<Connection, Error> {
    host::connect_open(name).map(Connection)
}

impl Connection {
    /// True: just dialled, nothing was said on it.
    pub fn is_fresh(&self) -> bool {
        self.0.is_fresh()
    }

    /// All of the bytes, or an error.
    pub fn write(&mut self, bytes: &[u8], timeout: Duration) -> Result<(), Error> {
        self.0.write(bytes, millis(timeout))
    }

    /// At most `max` bytes; none: the peer has closed.
    pub fn read(&mut self, max: u32, timeout: Duration) -> Result<Vec<u8>, Error> {
        self.0.read(max, millis(timeout))
    }

    /// How it is protected now.
    pub fn protection(&self) -> Protection {
        self.0.protection()
    }

    /// Begins TLS on a plain connection. The peer must have agreed, and all it said must
    /// have been read.
    pub fn start_tls(&mut self, timeout: Duration) -> Result<(), Error> {
        self.0.start_tls(millis(timeout))
    }

    /// The grant has credentials.
    pub fn has_credentials(&self) -> bool {
        self.0.has_credentials()
    }

    /// Writes a line of them, over TLS alone.
    pub fn write_credential(&mut self, credential: Credential, timeout: Duration) -> Result<(), Error> {
        self.0.write_credential(credential, millis(timeout))
    }

    /// Gives it back for a later call.
    pub fn keep(self) {
        self.0.keep();
    }
}

fn millis(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32)
}
