//! Peers on loopback for the tests: certificates, TLS both ways, servers that follow a script.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portway_net::listen::TlsFiles;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// A certificate pair in files.
pub struct Pair {
    folder: TempDir,
}

/// Whether a certificate is still good.
#[derive(Clone, Copy)]
pub enum Age {
    Fresh,
    Expired,
}

impl Pair {
    pub fn new(name: &str, age: Age) -> Pair {
        let pair = Pair { folder: tempfile::tempdir().unwrap() };
        pair.renew(name, age);
        pair
    }

    /// Puts another pair into the same files.
    pub fn renew(&self, name: &str, age: Age) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, "Hospital");
        if let Age::Expired = age {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(self.certificate(), certificate.pem()).unwrap();
        std::fs::write(self.key(), key.serialize_pem()).unwrap();
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    pub fn files(&self) -> TlsFiles {
        TlsFiles { certificate: self.certificate(), key: self.key(), clients: None }
    }

    pub async fn accept(&self, stream: TcpStream) -> io::Result<server::TlsStream<TcpStream>> {
        let chain = vec![CertificateDer::from_pem_file(self.certificate()).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.key()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config)).accept(stream).await
    }

    /// Connects as somebody who trusts this pair alone.
    pub async fn connect(&self, address: SocketAddr, name: &str) -> io::Result<client::TlsStream<TcpStream>> {
        self.connect_as(None, address, name).await
    }

    /// The same, and shows another pair.
    pub async fn connect_as(
        &self,
        own: Option<&Pair>,
        address: SocketAddr,
        name: &str,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.certificate()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let chain = vec![CertificateDer::from_pem_file(own.certificate()).unwrap()];
                config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(own.key()).unwrap()).unwrap()
            }
        };
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// A server that runs a script on every connection and counts them.
pub struct Server {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start<F, W>(script: F) -> Server
    where
        F: Fn(usize, TcpStream) -> W + Send + 'static,
        W: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = accepted.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(script(counter.fetch_add(1, Ordering::SeqCst), stream));
            }
        });
        Server { address, accepted }
    }

    /// Connections so far; a client may know of one before its server does.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Waits until so many connections came.
    pub async fn until_accepted(&self, count: usize) {
        while self.accepted() < count {
            tokio::task::yield_now().await;
        }
    }
}

/// Reads one HTTP request with its body; none if the peer closed before.
pub async fn read_request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Ok(Some(text));
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}
