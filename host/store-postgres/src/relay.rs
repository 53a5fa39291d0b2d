//! TCP connections that send what they are given at once.
//!
//! The driver opens its connections itself and leaves the system's habit on of holding back the end of what
//! is written until the peer has confirmed what went before. A statement that is written at once never waits
//! for that. Under TLS it is written in records, and with the peer's habit of confirming late one that is
//! larger than a record waits some 40 ms for nothing. So where TLS may be spoken the connection is opened
//! here, without that habit, and the driver is given a socket of this machine to it.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{Connection as _, Error};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::{TcpStream, UnixListener};

/// Bytes on their way in each direction.
const BUFFER_BYTES: usize = 64 << 10;
/// A peer that vanished is noticed after the first and some of the second.
const SILENCE: Duration = Duration::from_secs(10);
const PROBES: Duration = Duration::from_secs(5);
const PROBES_MAX: u32 = 3;

/// What a client asks first that would like to speak TLS, and what a server answers that does not.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const NO_TLS: u8 = b'N';

/// Connects as the options say. `is_plain` remembers of a server that it speaks no TLS.
pub(crate) async fn connect(
    options: &PgConnectOptions,
    is_plain: &Arc<AtomicBool>,
) -> Result<PgConnection, Error> {
    let is_local = options.get_socket().is_some() || options.get_host().starts_with('/');
    // The driver never speaks it in these modes.
    let never_tls = matches!(options.get_ssl_mode(), PgSslMode::Disable | PgSslMode::Allow);
    if is_local || never_tls || is_plain.load(Ordering::Relaxed) {
        return PgConnection::connect_with(options).await;
    }
    let host = options.get_host().trim_matches(['[', ']']);
    let server = TcpStream::connect((host, options.get_port())).await?;
    prepare(&server)?;
    let (folder, listener) = match listen(options.get_port()) {
        Ok(listening) => listening,
        Err(error) => {
            tracing::warn!(%error, "no socket for a connection to the database: large batches are slow");
            return PgConnection::connect_with(options).await;
        }
    };
    let relay = tokio::spawn(relay(listener, server, Arc::clone(is_plain)));
    let connected = PgConnection::connect_with(&options.clone().socket(folder.path())).await;
    if connected.is_err() {
        relay.abort();
    }
    connected
}

fn prepare(server: &TcpStream) -> io::Result<()> {
    server.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(PROBES).with_retries(PROBES_MAX);
    SockRef::from(server).set_tcp_keepalive(&keepalive)
}

/// A folder that nobody else of this machine can look into, and where the driver looks for a server in it.
/// It is removed as soon as the driver is connected.
fn listen(port: u16) -> io::Result<(TempDir, UnixListener)> {
    let own = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("portway-").permissions(own).tempdir()?;
    let listener = UnixListener::bind(folder.path().join(format!(".s.PGSQL.{port}")))?;
    Ok((folder, listener))
}

/// Carries bytes until both sides are done. What goes wrong the driver sees as an end of its connection.
async fn relay(listener: UnixListener, mut server: TcpStream, is_plain: Arc<AtomicBool>) -> io::Result<()> {
    let (mut driver, _) = listener.accept().await?;
    drop(listener);
    let mut asked = [0; TLS_REQUEST.len()];
    driver.read_exact(&mut asked).await?;
    server.write_all(&asked).await?;
    if asked == TLS_REQUEST {
        let answer = server.read_u8().await?;
        is_plain.store(answer == NO_TLS, Ordering::Relaxed);
        driver.write_u8(answer).await?;
    }
    copy_bidirectional_with_sizes(&mut driver, &mut server, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_sends_at_once_and_notices_a_peer_that_vanished() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        prepare(&server).unwrap();
        assert!(server.nodelay().unwrap());
        assert!(SockRef::from(&server).keepalive().unwrap());
    }

    #[tokio::test]
    async fn bytes_go_both_ways_until_a_side_ends_and_an_answer_about_tls_is_remembered() {
        for (asked, answer, is_plain) in [
            (TLS_REQUEST, b'N', true),
            (TLS_REQUEST, b'S', false),
            // Nothing about TLS, so this answer is none about it.
            (*b"anything", b'N', false),
        ] {
            let echo = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let server = TcpStream::connect(echo.local_addr().unwrap()).await.unwrap();
            let (folder, listener) = listen(5432).unwrap();
            let remembered = Arc::new(AtomicBool::new(false));
            let relay = tokio::spawn(relay(listener, server, Arc::clone(&remembered)));
            let socket = folder.path().join(".s.PGSQL.5432");
            let mut driver = tokio::net::UnixStream::connect(socket).await.unwrap();
            drop(folder);
            let (mut peer, _) = echo.accept().await.unwrap();
            driver.write_all(&asked).await.unwrap();
            let mut bytes = [0; 8];
            peer.read_exact(&mut bytes).await.unwrap();
            assert_eq!(bytes, asked);
            peer.write_all(&[answer]).await.unwrap();
            assert_eq!(driver.read_u8().await.unwrap(), answer);
            driver.write_all(b"more").await.unwrap();
            let mut bytes = [0; 4];
            peer.read_exact(&mut bytes).await.unwrap();
            assert_eq!(&bytes, b"more");
            peer.write_all(b"told.").await.unwrap();
            drop(peer);
            let mut told = String::new();
            driver.read_to_string(&mut told).await.unwrap();
            assert_eq!(told, "told.");
            drop(driver);
            relay.await.unwrap().unwrap();
            assert_eq!(remembered.load(Ordering::Relaxed), is_plain);
        }
    }
}
