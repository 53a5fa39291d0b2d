//! Certificates as they lie in files: how long they hold, and whether a key belongs to them.
//!
//! Nothing is listened to or dialled; whom a certificate names is not looked at.

use std::path::Path;

use crate::tls::{self, TlsFiles};

pub use crate::tls::TlsError;

/// How long a certificate holds, in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Such as `CN=lab`; empty where it names none.
    pub subject: String,
    pub not_before: i64,
    pub not_after: i64,
}

/// The certificates of a PEM file; what cannot be parsed is left out.
pub fn validities(path: &Path) -> Result<Vec<Validity>, TlsError> {
    let certificates = tls::certificates(path)?;
    let validity = |der: &rustls::pki_types::CertificateDer<'_>| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        Some(Validity {
            subject: certificate.subject().to_string(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        })
    };
    Ok(certificates.iter().filter_map(validity).collect())
}

/// Whether a client could show this certificate: both files can be read, and the key is the
/// certificate's.
pub fn check_pair(certificate: &Path, key: &Path) -> Result<(), TlsError> {
    tls::client_config_as(Some((certificate, key)), None, &[]).map(|_| ())
}

/// Whether a listener could use these files: they can be read, and the key is the certificate's.
pub fn check_files(files: &TlsFiles) -> Result<(), TlsError> {
    tls::server_config(files).map(|_| ())
}
