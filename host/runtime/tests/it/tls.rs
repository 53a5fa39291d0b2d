//! TLS for peers of the tests, and the senders that get it with their grant.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portway_model::{SendVerdict, Trouble};
use portway_net::AddressPolicy;
use portway_net::tcp::{TcpGrant, TcpTls};
use portway_runtime::{CallError, Grant, Grants, Opening};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::support::{batch, plugin};

/// A certificate for `localhost`, as a peer shows it and a grant trusts it.
pub struct Certificate {
    folder: TempDir,
    acceptor: TlsAcceptor,
}

impl Certificate {
    pub fn new() -> Certificate {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), certificate.pem()).unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        Certificate { folder, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }
}

/// A grant of a peer on this machine.
pub fn grant(port: u16, tls: Option<TcpTls>) -> TcpGrant {
    TcpGrant {
        host: "localhost".into(),
        port,
        connections_max: 2,
        connect_timeout: Duration::from_secs(5),
        addresses: AddressPolicy::Any,
        tls,
        credentials: None,
    }
}

/// Acknowledges what comes over TLS, as MLLP and with one byte at once.
async fn receiver(certificate: Arc<Certificate>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let certificate = certificate.clone();
            tokio::spawn(async move {
                let mut stream = certificate.accept(stream).await?;
                let mut input = [0; 4_096];
                while stream.read(&mut input).await? > 0 {
                    let answer = "\x0bMSH|^~\\&|||||20260101||ACK|a|P|2.5.1\rMSA|AA|4711\r\x1c\r";
                    stream.write_all(answer.as_bytes()).await?;
                    stream.flush().await?;
                }
                io::Result::Ok(())
            });
        }
    });
    port
}

const MESSAGE: &str = "MSH|^~\\&|LAB|HOSP|EHR|HOSP|20260101120000||ORU^R01|4711|P|2.5.1\rPID|1||42\r";

#[tokio::test]
async fn the_mllp_and_tcp_senders_speak_tls_where_the_grant_does() {
    let certificate = Arc::new(Certificate::new());
    let port = receiver(certificate.clone()).await;
    let tcp = r#"{"framing": {"type": "delimiters", "start": "\\x0b", "end": "\\x1c\\r"},
        "answer": {"success": {"matches": "MSA.AA"}}}"#;
    for (name, settings) in [("mllp-sender", "{}"), ("tcp-sender", tcp)] {
        let open = |tls: TcpTls| {
            let grants = BTreeMap::from([("peer".to_owned(), Grant::Tcp(grant(port, Some(tls))))]);
            Opening { grants: Grants(grants), ..Opening::new("lab", "ehr", settings) }
        };
        let plugin = plugin("plugins", name).await;
        let trusting = TcpTls { roots: Some(certificate.file()), ..TcpTls::default() };
        let sent = plugin.sender(open(trusting)).unwrap().send(&batch(&[MESSAGE])).await;
        assert!(matches!(sent.result.as_deref(), Ok([SendVerdict::Sent(_)])), "{name}: {:?}", sent.result);
        let refused = plugin.sender(open(TcpTls::default())).unwrap().send(&batch(&[MESSAGE])).await;
        match refused.result {
            Err(CallError::Trouble(Trouble::Misconfigured(why))) => {
                assert_eq!(why.code, "untrusted", "{why}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}
