//! TLS settings of both sides: roots for what is dialled, a certificate pair for what listens.
//!
//! Files are read anew when they change, so that a renewed certificate needs no restart.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};

/// A certificate chain and its key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read `{path}` as PEM: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("`{path}` holds no certificate")]
    NoCertificate { path: PathBuf },
    #[error("certificate `{certificate}` and key `{key}` cannot be used")]
    Pair { certificate: PathBuf, key: PathBuf, source: Box<rustls::Error> },
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// What tells one state of a file from the next.
pub(crate) type FileMark = Option<(SystemTime, u64)>;

/// The mark of a file as it is now; none if it cannot be looked at.
pub(crate) fn file_mark(path: &Path) -> FileMark {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// For a client: the given roots alone, or those every browser has.
pub(crate) fn client_config(roots: Option<&Path>, alpn: &[&[u8]]) -> Result<ClientConfig, TlsError> {
    let mut store = RootCertStore::empty();
    match roots {
        None => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let (added, _) = store.add_parsable_certificates(certificates(path)?);
            if added == 0 {
                return Err(TlsError::NoCertificate { path: path.to_owned() });
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let mut config = builder.with_root_certificates(store).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// For a listener.
pub(crate) fn server_config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| TlsError::File { path: files.key.clone(), reason: error.to_string() })?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    builder.with_no_client_auth().with_single_cert(chain, key).map_err(|source| TlsError::Pair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        source: Box::new(source),
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |reason: String| TlsError::File { path: path.to_owned(), reason };
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?.collect();
    let found = found.map_err(|error| unreadable(error.to_string()))?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> io::Error {
        io::Error::other(error)
    }
}
