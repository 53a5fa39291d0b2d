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
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{AlertDescription, ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};

/// What a listener shows, a certificate chain and its key, both PEM; and whom it lets in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities of clients, PEM: without a certificate of theirs no client gets in. None: a
    /// client is asked for nothing.
    pub clients: Option<PathBuf>,
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
    #[error("the authorities in `{path}` cannot be used: {reason}")]
    Authorities { path: PathBuf, reason: String },
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

/// For a client that shows nothing: the given roots alone, or those every browser has.
pub(crate) fn client_config(roots: Option<&Path>, alpn: &[&[u8]]) -> Result<ClientConfig, TlsError> {
    client_config_as(None, roots, alpn)
}

/// For a client that shows a certificate: its chain and its key, both PEM.
pub(crate) fn client_config_as(
    pair: Option<(&Path, &Path)>,
    roots: Option<&Path>,
    alpn: &[&[u8]],
) -> Result<ClientConfig, TlsError> {
    let store = match roots {
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        Some(path) => authorities(path)?,
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let builder = builder.with_root_certificates(store);
    let mut config = match pair {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let unfit = |source| pair_unfit(certificate, key, source);
            builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?).map_err(unfit)?
        }
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// For a listener.
pub(crate) fn server_config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = private_key(&files.key)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let builder = match &files.clients {
        None => builder.with_no_client_auth(),
        Some(path) => builder.with_client_cert_verifier(client_verifier(path)?),
    };
    let unfit = |source| pair_unfit(&files.certificate, &files.key, source);
    builder.with_single_cert(chain, key).map_err(unfit)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let unreadable = |error: rustls::pki_types::pem::Error| TlsError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    PrivateKeyDer::from_pem_file(path).map_err(unreadable)
}

fn pair_unfit(certificate: &Path, key: &Path, source: rustls::Error) -> TlsError {
    TlsError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), source: Box::new(source) }
}

/// Whether TLS failed for a reason that no later attempt makes better: a certificate that is not
/// good, a peer that speaks no TLS or none of ours, or one that refuses what we show.
pub(crate) fn is_lasting(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        None => false,
        Some(rustls::Error::AlertReceived(alert)) => !matches!(
            alert,
            AlertDescription::InternalError | AlertDescription::CloseNotify | AlertDescription::UserCanceled
        ),
        Some(
            rustls::Error::General(_)
            | rustls::Error::FailedToGetCurrentTime
            | rustls::Error::FailedToGetRandomBytes,
        ) => false,
        Some(_) => true,
    }
}

fn client_verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = Arc::new(authorities(path)?);
    WebPkiClientVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|error| TlsError::Authorities { path: path.to_owned(), reason: error.to_string() })
}

/// The subject of a certificate that was checked, as in `CN=lab, O=Hospital`.
pub(crate) fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = certificate.subject().to_string();
    (!subject.is_empty()).then_some(subject)
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates(path)?);
    if added == 0 {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(store)
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
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
