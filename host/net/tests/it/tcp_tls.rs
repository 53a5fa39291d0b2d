//! TLS towards peers, from the first byte or begun later: what is kept, what is refused and as
//! what, and what a plugin cannot do without it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use portway_net::tcp::{
    Credential, Protection, TcpConnection, TcpCredentials, TcpError, TcpGrant, TcpPool, TcpTls, TlsPair,
    TlsStart,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::peers::{Age, Pair, Server};
use crate::tcp::grant;

const SOON: Duration = Duration::from_secs(10);

async fn echo(stream: impl AsyncRead + AsyncWrite) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut buffer = [0; 1_000];
    loop {
        let read = reader.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        writer.write_all(&buffer[..read]).await?;
        writer.flush().await?;
    }
}

/// Speaks TLS from the first byte, then echoes.
async fn tls_echo(pair: &Arc<Pair>) -> Server {
    let pair = pair.clone();
    Server::start(move |_, stream| {
        let pair = pair.clone();
        async move { echo(pair.accept(stream).await?).await }
    })
    .await
}

/// Greets, answers the first line, and then speaks TLS and echoes. `answer` is what it sends at once.
async fn upgrading_echo(pair: &Arc<Pair>, answer: &'static [u8]) -> Server {
    let pair = pair.clone();
    Server::start(move |_, mut stream: TcpStream| {
        let pair = pair.clone();
        async move {
            stream.write_all(b"hello\n").await?;
            let mut line = [0; 9];
            stream.read_exact(&mut line).await?;
            stream.write_all(answer).await?;
            echo(pair.accept(stream).await?).await
        }
    })
    .await
}

fn pair() -> Arc<Pair> {
    Arc::new(Pair::new("localhost", Age::Fresh))
}

fn trusting(pair: &Pair) -> TcpTls {
    TcpTls { roots: Some(pair.certificate()), ..TcpTls::default() }
}

fn pool(server: &Server, tls: TcpTls) -> TcpPool {
    TcpPool::new(TcpGrant { tls: Some(tls), ..grant(server) }).unwrap()
}

async fn say(connection: &mut TcpConnection, text: &str) -> Result<String, TcpError> {
    connection.write(text.as_bytes(), SOON).await?;
    let heard = connection.read(1_000, SOON).await?;
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

/// As far as the peer's consent to TLS.
async fn asked(pool: &TcpPool) -> TcpConnection {
    let mut connection = pool.open().await.unwrap();
    assert_eq!(&connection.read(100, SOON).await.unwrap()[..], b"hello\n");
    assert_eq!(say(&mut connection, "STARTTLS\n").await.unwrap().get(..3), Some("yes"));
    connection
}

#[tokio::test]
async fn a_connection_with_tls_is_kept() {
    let pair = pair();
    let server = tls_echo(&pair).await;
    let pool = pool(&server, trusting(&pair));
    for fresh in [true, false, false] {
        let mut connection = pool.open().await.unwrap();
        assert_eq!((connection.is_fresh(), connection.protection()), (fresh, Protection::Tls));
        assert_eq!(say(&mut connection, "hello").await.unwrap(), "hello");
        assert!(matches!(connection.start_tls(SOON).await, Err(TcpError::Denied(_))));
        connection.keep();
    }
}

#[tokio::test]
async fn a_peer_that_is_not_to_be_trusted_is_refused_as_that() {
    let (fresh, other) = (pair(), pair());
    let server = tls_echo(&fresh).await;
    let refused = [
        ("well-known roots alone", TcpTls::default()),
        ("another name", TcpTls { server_name: Some("elsewhere".into()), ..trusting(&fresh) }),
        ("another authority", trusting(&other)),
    ];
    for (what, tls) in refused {
        let opened = pool(&server, tls).open().await;
        assert!(matches!(opened, Err(TcpError::Untrusted(_))), "{what}: {:?}", opened.err());
    }
    let expired = Arc::new(Pair::new("localhost", Age::Expired));
    let server = tls_echo(&expired).await;
    let opened = pool(&server, trusting(&expired)).open().await;
    assert!(matches!(opened, Err(TcpError::Untrusted(_))), "{:?}", opened.err());
}

#[tokio::test]
async fn a_peer_without_tls_is_refused_as_that() {
    let server = Server::start(|_, mut stream| async move {
        stream.write_all(b"220 mail.example ESMTP\r\n").await?;
        stream.read(&mut [0; 10]).await.map(drop)
    })
    .await;
    let opened = pool(&server, TcpTls::default()).open().await;
    assert!(matches!(opened, Err(TcpError::Untrusted(_))), "{:?}", opened.err());
}

#[tokio::test]
async fn a_peer_that_closes_or_hangs_in_the_handshake_is_away() {
    let closing = Server::start(|_, mut stream| async move {
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).await.map(drop)
    })
    .await;
    let opened = pool(&closing, TcpTls::default()).open().await;
    assert!(matches!(opened, Err(TcpError::Unreachable(_))), "{:?}", opened.err());
    let hanging = Server::start(|_, mut stream| async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.map(drop)
    })
    .await;
    let short = TcpGrant {
        tls: Some(TcpTls::default()),
        connect_timeout: Duration::from_millis(100),
        ..grant(&hanging)
    };
    assert_eq!(TcpPool::new(short).unwrap().open().await.err(), Some(TcpError::Timeout));
}

/// Lets in who shows a certificate of the pair's own.
fn insisting(pair: &Pair) -> TlsAcceptor {
    let certificate = || CertificateDer::from_pem_file(pair.certificate()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate()], PrivateKeyDer::from_pem_file(pair.key()).unwrap())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn a_certificate_is_shown_where_the_grant_has_one() {
    let pair = pair();
    let acceptor = insisting(&pair);
    let server = Server::start(move |_, stream| {
        let acceptor = acceptor.clone();
        async move { echo(acceptor.accept(stream).await?).await }
    })
    .await;
    let own = TlsPair { certificate: pair.certificate(), key: pair.key() };
    let mut connection = pool(&server, TcpTls { pair: Some(own), ..trusting(&pair) }).open().await.unwrap();
    assert_eq!(say(&mut connection, "hello").await.unwrap(), "hello");
    // The peer says so only after the handshake, so it is seen with the first read.
    let mut connection = pool(&server, trusting(&pair)).open().await.unwrap();
    let said = say(&mut connection, "hello").await;
    assert!(matches!(said, Err(TcpError::Untrusted(_) | TcpError::Closed)), "{said:?}");
}

#[tokio::test]
async fn a_renewed_file_of_authorities_needs_no_restart() {
    let theirs = pair();
    let server = tls_echo(&theirs).await;
    let trusted = pair();
    let pool = pool(&server, trusting(&trusted));
    assert!(matches!(pool.open().await, Err(TcpError::Untrusted(_))));
    let mut renewed = std::fs::read(theirs.certificate()).unwrap();
    renewed.extend_from_slice(b"\n");
    std::fs::write(trusted.certificate(), renewed).unwrap();
    pool.open().await.unwrap();
    std::fs::write(trusted.certificate(), b"-----BEGIN").unwrap();
    pool.open().await.unwrap();
}

#[tokio::test]
async fn tls_begins_on_an_open_connection_and_is_kept() {
    let pair = pair();
    let server = upgrading_echo(&pair, b"yes\n").await;
    for (start, before) in
        [(TlsStart::Wanted, Protection::Wanted), (TlsStart::Required, Protection::Required)]
    {
        let pool = pool(&server, TcpTls { start, ..trusting(&pair) });
        let mut connection = asked(&pool).await;
        assert_eq!(connection.protection(), before);
        connection.start_tls(SOON).await.unwrap();
        assert_eq!(connection.protection(), Protection::Tls);
        assert_eq!(say(&mut connection, "hello").await.unwrap(), "hello");
        connection.keep();
        let mut kept = pool.open().await.unwrap();
        assert_eq!((kept.is_fresh(), kept.protection()), (false, Protection::Tls));
        assert_eq!(say(&mut kept, &"long ".repeat(200)).await.unwrap(), "long ".repeat(200));
    }
}

#[tokio::test]
async fn tls_that_begins_later_checks_the_peer_as_well() {
    let theirs = pair();
    let server = upgrading_echo(&theirs, b"yes\n").await;
    let pool = pool(&server, TcpTls { start: TlsStart::Required, ..trusting(&pair()) });
    let mut connection = asked(&pool).await;
    assert!(matches!(connection.start_tls(SOON).await, Err(TcpError::Untrusted(_))));
    connection.keep();
    assert!(pool.open().await.unwrap().is_fresh());
}

#[tokio::test]
async fn what_was_said_before_tls_does_not_count_as_said_under_it() {
    let pair = pair();
    let server = upgrading_echo(&pair, b"yes\n250 injected\n").await;
    let pool = pool(&server, TcpTls { start: TlsStart::Required, ..trusting(&pair) });
    let mut connection = pool.open().await.unwrap();
    assert_eq!(&connection.read(100, SOON).await.unwrap()[..], b"hello\n");
    connection.write(b"STARTTLS\n", SOON).await.unwrap();
    assert_eq!(&connection.read(4, SOON).await.unwrap()[..], b"yes\n");
    assert!(matches!(connection.start_tls(SOON).await, Err(TcpError::Untrusted(_))));
    connection.keep();
    assert!(pool.open().await.unwrap().is_fresh());
}

#[tokio::test]
async fn next_to_nothing_is_written_where_tls_is_required_and_has_not_begun() {
    let server = Server::start(|_, stream| async move { echo(stream).await }).await;
    let pool = pool(&server, TcpTls { start: TlsStart::Required, ..TcpTls::default() });
    let mut connection = pool.open().await.unwrap();
    assert_eq!(say(&mut connection, &"x".repeat(300)).await.unwrap(), "x".repeat(300));
    assert!(matches!(say(&mut connection, &"x".repeat(213)).await, Err(TcpError::Denied(_))));
    connection.keep();
    let mut connection = pool.open().await.unwrap();
    assert!(connection.is_fresh());
    assert_eq!(say(&mut connection, "x").await.unwrap(), "x");
    connection.keep();
    assert!(pool.open().await.unwrap().is_fresh(), "nothing plain is kept");
}

#[tokio::test]
async fn credentials_go_over_tls_alone() {
    let pair = pair();
    let credentials = Some(TcpCredentials { user: "lab".into(), password: "s3cret".into() });
    let server = upgrading_echo(&pair, b"yes\n").await;
    for start in [TlsStart::Wanted, TlsStart::Required] {
        let tls = Some(TcpTls { start, ..trusting(&pair) });
        let pool =
            TcpPool::new(TcpGrant { tls, credentials: credentials.clone(), ..grant(&server) }).unwrap();
        let mut connection = asked(&pool).await;
        assert!(connection.has_credentials());
        let early = connection.write_credential(Credential::Plain, SOON).await;
        assert!(matches!(early, Err(TcpError::Denied(_))), "{early:?}");
        connection.start_tls(SOON).await.unwrap();
        connection.write_credential(Credential::Plain, SOON).await.unwrap();
        assert_eq!(&connection.read(100, SOON).await.unwrap()[..], b"AGxhYgBzM2NyZXQ=\r\n");
    }
    let plain = Server::start(|_, stream| async move { echo(stream).await }).await;
    let pool = TcpPool::new(TcpGrant { credentials, ..grant(&plain) }).unwrap();
    let early = pool.open().await.unwrap().write_credential(Credential::User, SOON).await;
    assert!(matches!(early, Err(TcpError::Denied(_))), "{early:?}");
}

#[tokio::test]
async fn a_connection_without_credentials_writes_none() {
    let pair = pair();
    let server = tls_echo(&pair).await;
    let mut connection = pool(&server, trusting(&pair)).open().await.unwrap();
    assert!(!connection.has_credentials());
    assert!(matches!(connection.write_credential(Credential::Plain, SOON).await, Err(TcpError::Denied(_))));
}
