//! Listeners: who gets in, who is refused, and that both can be seen.

use std::io;
use std::time::Duration;

use portway_net::listen::{ListenError, ListenSettings, Listener, TlsFiles};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::peers::{Age, Pair};

fn settings() -> ListenSettings {
    ListenSettings {
        address: "127.0.0.1:0".parse().unwrap(),
        connections_max: 2,
        idle_timeout: Duration::from_secs(60),
        frame_timeout: Duration::from_secs(30),
        keepalive: Some(Duration::from_secs(15)),
        allow: Vec::new(),
        tls: None,
    }
}

fn refused(listener: &Listener) -> Vec<(&'static str, u64)> {
    listener.refusals().into_iter().filter(|(_, count)| *count > 0).collect()
}

/// True once the other side has closed, whatever it said before.
async fn is_closed(mut stream: TcpStream) -> bool {
    stream.read_to_end(&mut Vec::new()).await.is_ok()
        || stream.read(&mut [0]).await.map_or(true, |read| read == 0)
}

#[tokio::test]
async fn bytes_go_both_ways() {
    let mut listener = Listener::bind(settings()).unwrap();
    let mut client = TcpStream::connect(listener.local_addr()).await.unwrap();
    let mut connection = listener.accept().await;
    assert_eq!(connection.peer.address, client.local_addr().unwrap());
    client.write_all(b"ping").await.unwrap();
    let mut bytes = [0; 4];
    connection.reader.read_exact(&mut bytes).await.unwrap();
    connection.writer.write_all(&bytes).await.unwrap();
    client.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"ping");
}

#[tokio::test]
async fn one_too_many_is_closed_and_counted_and_a_place_becomes_free() {
    let mut listener = Listener::bind(settings()).unwrap();
    let address = listener.local_addr();
    let (_first, _second) =
        (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
    let (kept, given_up) = (listener.accept().await, listener.accept().await);
    assert_eq!(listener.status().connections(), 2);
    let third = TcpStream::connect(address).await.unwrap();
    tokio::select! {
        _ = listener.accept() => panic!("a connection above the limit was accepted"),
        closed = is_closed(third) => assert!(closed),
    }
    assert_eq!(refused(&listener), [("too-many", 1)]);
    drop(given_up);
    let _fourth = TcpStream::connect(address).await.unwrap();
    let _accepted = listener.accept().await;
    drop(kept);
}

#[tokio::test]
async fn only_listed_networks_get_in() {
    let allow = vec!["10.0.0.0/8".parse().unwrap(), "127.0.0.2/32".parse().unwrap()];
    let mut listener = Listener::bind(ListenSettings { allow, ..settings() }).unwrap();
    let stranger = TcpStream::connect(listener.local_addr()).await.unwrap();
    tokio::select! {
        _ = listener.accept() => panic!("a stranger was accepted"),
        closed = is_closed(stranger) => assert!(closed),
    }
    assert_eq!(refused(&listener), [("not-allowed", 1)]);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let friend = socket.connect(listener.local_addr()).await.unwrap();
    assert_eq!(listener.accept().await.peer.address, friend.local_addr().unwrap());
}

#[tokio::test]
async fn a_good_tls_client_gets_in_and_bad_ones_are_counted() {
    let pair = Pair::new("localhost", Age::Fresh);
    let mut listener = Listener::bind(ListenSettings { tls: Some(pair.files()), ..settings() }).unwrap();
    let address = listener.local_addr();
    let clients = async {
        let distrusts = Pair::new("localhost", Age::Fresh).connect(address, "localhost").await;
        assert!(distrusts.is_err(), "a client must not trust another's certificate");
        assert!(pair.connect(address, "elsewhere").await.is_err());
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"\x0bMSH|^~\\&|not TLS\x1c\r").await.unwrap();
        assert!(is_closed(plain).await);
        let silent = TcpStream::connect(address).await.unwrap();
        let mut good = pair.connect(address, "localhost").await.unwrap();
        good.write_all(b"ping").await.unwrap();
        let mut bytes = [0; 4];
        good.read_exact(&mut bytes).await.unwrap();
        drop(silent);
        bytes
    };
    let server = async {
        let mut connection = listener.accept().await;
        let mut bytes = [0; 4];
        connection.reader.read_exact(&mut bytes).await.unwrap();
        connection.writer.write_all(&bytes).await.unwrap();
        connection.writer.flush().await.unwrap();
    };
    let (bytes, ()) = tokio::join!(clients, server);
    assert_eq!(&bytes, b"ping");
    assert_eq!(refused(&listener), [("tls-failed", 3)]);
}

/// What the server says of a client that may be refused only after its own handshake is done.
async fn greeted(connected: io::Result<TlsStream<TcpStream>>) -> bool {
    let mut byte = [0];
    match connected {
        Ok(mut stream) => matches!(stream.read(&mut byte).await, Ok(1)),
        Err(_) => false,
    }
}

#[tokio::test]
async fn only_clients_with_a_certificate_of_the_named_authorities_get_in() {
    let (pair, client, stranger) =
        (Pair::new("localhost", Age::Fresh), Pair::new("lab", Age::Fresh), Pair::new("lab", Age::Fresh));
    let expired = Pair::new("lab", Age::Expired);
    let tls = TlsFiles { clients: Some(client.certificate()), ..pair.files() };
    let mut listener = Listener::bind(ListenSettings { tls: Some(tls), ..settings() }).unwrap();
    let address = listener.local_addr();
    let clients = async {
        for own in [None, Some(&stranger), Some(&expired)] {
            assert!(!greeted(pair.connect_as(own, address, "localhost").await).await);
        }
        assert!(greeted(pair.connect_as(Some(&client), address, "localhost").await).await);
    };
    let server = async {
        let mut connection = listener.accept().await;
        connection.writer.write_all(b"+").await.unwrap();
        connection.writer.flush().await.unwrap();
        connection
    };
    let ((), connection) = tokio::join!(clients, server);
    let subject = connection.peer.tls_subject.unwrap();
    assert!(subject.contains("O=Hospital"), "{subject}");
    assert_eq!(refused(&listener), [("tls-failed", 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_handshake_holds_up_nobody_and_is_given_up() {
    let pair = Pair::new("localhost", Age::Fresh);
    let mut listener = Listener::bind(ListenSettings { tls: Some(pair.files()), ..settings() }).unwrap();
    let address = listener.local_addr();
    let mut slow = TcpStream::connect(address).await.unwrap();
    // The head of a handshake that never goes on.
    slow.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    let (accepted, good) = tokio::join!(listener.accept(), pair.connect(address, "localhost"));
    good.unwrap();
    drop(accepted);
    tokio::select! {
        _ = listener.accept() => panic!("a connection without a handshake was accepted"),
        closed = is_closed(slow) => assert!(closed),
    }
    assert_eq!(refused(&listener), [("tls-timeout", 1)]);
    assert_eq!(listener.status().connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_is_taken_without_a_restart() {
    let pair = Pair::new("localhost", Age::Expired);
    let mut listener = Listener::bind(ListenSettings { tls: Some(pair.files()), ..settings() }).unwrap();
    let address = listener.local_addr();
    let (expired, _) = tokio::join!(pair.connect(address, "localhost"), async {
        tokio::time::timeout(Duration::from_secs(1), listener.accept()).await.is_ok()
    });
    assert!(expired.is_err());
    std::fs::write(pair.key(), "half a ke").unwrap();
    tokio::time::advance(Duration::from_secs(11)).await;
    let (still, _) = tokio::join!(pair.connect(address, "localhost"), async {
        tokio::time::timeout(Duration::from_secs(1), listener.accept()).await.is_ok()
    });
    assert!(still.is_err());
    pair.renew("localhost", Age::Fresh);
    tokio::time::advance(Duration::from_secs(11)).await;
    let (fresh, _accepted) = tokio::join!(pair.connect(address, "localhost"), listener.accept());
    fresh.unwrap();
}

#[tokio::test]
async fn what_cannot_listen_says_why() {
    let first = Listener::bind(settings()).unwrap();
    let taken = Listener::bind(ListenSettings { address: first.local_addr(), ..settings() });
    assert!(matches!(taken, Err(ListenError::Bind { .. })));
    let (one, other) = (Pair::new("localhost", Age::Fresh), Pair::new("localhost", Age::Fresh));
    for (certificate, key) in [
        (one.certificate(), other.key()),
        (one.key(), one.certificate()),
        (one.certificate().with_file_name("none"), one.key()),
    ] {
        let tls = Some(TlsFiles { certificate, key, clients: None });
        assert!(matches!(Listener::bind(ListenSettings { tls, ..settings() }), Err(ListenError::Tls { .. })));
    }
}
