//! Outbound TCP: kept connections are quiet ones, and nothing waits for ever.

use std::time::Duration;

use portway_net::AddressPolicy;
use portway_net::tcp::{TcpError, TcpGrant, TcpPool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::peers::Server;

const SOON: Duration = Duration::from_secs(10);
const NOW: Duration = Duration::from_millis(20);

pub fn grant(server: &Server) -> TcpGrant {
    TcpGrant {
        host: "localhost".into(),
        port: server.address.port(),
        connections_max: 1,
        connect_timeout: SOON,
        addresses: AddressPolicy::Operator,
        tls: None,
        credentials: None,
    }
}

async fn echo() -> Server {
    Server::start(|_, mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.map(drop)
    })
    .await
}

#[tokio::test]
async fn a_kept_connection_is_used_again_and_a_dropped_one_is_not() {
    let server = echo().await;
    let pool = TcpPool::new(grant(&server)).unwrap();
    for (round, fresh) in [(1, true), (2, false), (3, false)] {
        let mut connection = pool.open().await.unwrap();
        assert_eq!(connection.is_fresh(), fresh, "round {round}");
        connection.write(b"hello", SOON).await.unwrap();
        assert_eq!(&connection.read(3, SOON).await.unwrap()[..], b"hel");
        assert_eq!(&connection.read(100, SOON).await.unwrap()[..], b"lo");
        connection.keep();
    }
    drop(pool.open().await.unwrap());
    assert!(pool.open().await.unwrap().is_fresh());
    server.until_accepted(2).await;
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn one_more_than_allowed_is_busy() {
    let server = echo().await;
    let pool = TcpPool::new(grant(&server)).unwrap();
    let first = pool.open().await.unwrap();
    assert_eq!(pool.open().await.err(), Some(TcpError::Busy));
    drop(first);
    pool.open().await.unwrap();
}

#[tokio::test]
async fn a_kept_connection_on_which_the_peer_spoke_or_closed_is_not_used_again() {
    for late in [&b"late answer"[..], b""] {
        let (order, orders) = mpsc::channel::<()>(1);
        let (done, mut dones) = mpsc::channel::<()>(1);
        let orders = std::sync::Arc::new(tokio::sync::Mutex::new(orders));
        let server = Server::start(move |number, mut stream| {
            let (orders, done) = (orders.clone(), done.clone());
            async move {
                if number == 0 {
                    orders.lock().await.recv().await;
                    stream.write_all(late).await?;
                    if late.is_empty() {
                        drop(stream);
                        done.send(()).await.ok();
                        return Ok(());
                    }
                    done.send(()).await.ok();
                }
                stream.read(&mut [0]).await.map(drop)
            }
        })
        .await;
        let pool = TcpPool::new(grant(&server)).unwrap();
        pool.open().await.unwrap().keep();
        order.send(()).await.unwrap();
        dones.recv().await;
        assert!(pool.open().await.unwrap().is_fresh());
        server.until_accepted(2).await;
    }
}

#[tokio::test]
async fn a_connection_on_which_something_went_wrong_cannot_be_kept() {
    let server = Server::start(|_, mut stream| async move { stream.read(&mut [0]).await.map(drop) }).await;
    let pool = TcpPool::new(grant(&server)).unwrap();
    let mut connection = pool.open().await.unwrap();
    assert_eq!(connection.read(10, NOW).await, Err(TcpError::Timeout));
    connection.keep();
    assert!(pool.open().await.unwrap().is_fresh());
}

#[tokio::test]
async fn a_peer_that_never_reads_cannot_hold_a_write() {
    let server = Server::start(|_, stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
        Ok(())
    })
    .await;
    let pool = TcpPool::new(grant(&server)).unwrap();
    let mut connection = pool.open().await.unwrap();
    let much = vec![0; 64 << 20];
    assert_eq!(connection.write(&much, Duration::from_millis(200)).await, Err(TcpError::Timeout));
}

#[tokio::test]
async fn a_peer_that_closes_is_seen() {
    let server = Server::start(|_, stream| async move {
        drop(stream);
        Ok(())
    })
    .await;
    let pool = TcpPool::new(grant(&server)).unwrap();
    let mut connection = pool.open().await.unwrap();
    assert!(matches!(connection.read(10, SOON).await.as_deref(), Ok([]) | Err(TcpError::Closed)));
    connection.keep();
    assert!(pool.open().await.unwrap().is_fresh());
}

#[tokio::test]
async fn addresses_outside_the_grant_are_denied_before_they_are_dialled() {
    let server = echo().await;
    let public = TcpGrant { addresses: AddressPolicy::Public, ..grant(&server) };
    assert!(matches!(TcpPool::new(public).unwrap().open().await, Err(TcpError::Denied(_))));
    let metadata = TcpGrant { host: "169.254.169.254".into(), ..grant(&server) };
    assert!(matches!(TcpPool::new(metadata).unwrap().open().await, Err(TcpError::Denied(_))));
    assert_eq!(server.accepted(), 0);
    let nobody = TcpGrant { port: 1, ..grant(&server) };
    assert!(matches!(TcpPool::new(nobody).unwrap().open().await, Err(TcpError::Unreachable(_))));
}
