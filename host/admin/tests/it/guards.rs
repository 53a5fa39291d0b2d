//! Who is not let in, and what does not bring the API down.

use portway_admin::{AdminError, AdminServer, AdminSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Api;

#[tokio::test]
async fn only_our_own_hosts_origins_and_token_holders_are_answered() {
    let api = Api::start().await;
    let (address, token) = (api.address(), api.file.token.reveal().to_owned());
    let bearer = format!("authorization: Bearer {token}");
    for (headers, wanted) in [
        (format!("host: {address}\r\n{bearer}"), 200),
        (format!("host: localhost:{}\r\n{bearer}", address.port()), 200),
        (format!("host: {address}\r\n{bearer}\r\norigin: http://{address}"), 200),
        (format!("host: {address}"), 401),
        (format!("host: {address}\r\nauthorization: Bearer {}", "0".repeat(64)), 401),
        (format!("host: {address}\r\nauthorization: Basic {token}"), 401),
        (format!("host: rebound.example:{}\r\n{bearer}", address.port()), 421),
        (format!("host: {address}\r\n{bearer}\r\norigin: http://rebound.example"), 403),
        (format!("host: {address}\r\n{bearer}\r\norigin: null"), 403),
    ] {
        let request = format!("GET /api/v1/status HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
        assert_eq!(api.send_raw(&request).await.0, wanted, "{headers}");
    }
    let rebound = "GET /health HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n\r\n";
    assert_eq!(api.send_raw(rebound).await.0, 421);
    api.stop().await;
}

#[tokio::test]
async fn bodies_and_heads_beyond_their_limits_are_refused() {
    let api = Api::start().await;
    let body = format!(r#"{{"reason":"{}"}}"#, "x".repeat(70_000));
    let (code, ..) = api.send("POST /api/v1/messages/42/dismiss", &body).await;
    assert_eq!(code, 422);
    let (code, ..) = api.send(&format!("GET /{}", "x".repeat(40_000)), "").await;
    assert!([414, 431].contains(&code), "{code}");
    assert!(api.engine.asked().is_empty());
    api.stop().await;
}

#[tokio::test]
async fn a_connection_too_many_is_closed_and_the_others_go_on() {
    let api = Api::start_with(1).await;
    let health = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", api.address());
    let mut first = TcpStream::connect(api.address()).await.unwrap();
    let mut answer = [0; 12];
    first.write_all(health.as_bytes()).await.unwrap();
    first.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let mut second = TcpStream::connect(api.address()).await.unwrap();
    let mut none = Vec::new();
    // Closed without a word: the end, or a reset.
    assert!(!matches!(second.read_to_end(&mut none).await, Ok(1..)));
    drop(first);
    api.stop().await;
}

#[tokio::test]
async fn garbage_is_no_harm() {
    let api = Api::start().await;
    for garbage in
        ["\x16\x03\x01\x02\x00\x01\x00\x01", "\x0bMSH|^~\\&|\x1c\r", "GET / HTTP/9.9\r\n\r\n", "\r\n\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(api.address()).await.unwrap();
        stream.write_all(garbage.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{garbage:?}");
    }
    assert_eq!(api.send("GET /api/v1/status", "").await.0, 200);
    api.stop().await;
}

#[tokio::test]
async fn it_stops_while_a_connection_is_open() {
    let api = Api::start().await;
    let _silent = TcpStream::connect(api.address()).await.unwrap();
    assert_eq!(api.send("GET /api/v1/status", "").await.0, 200);
    api.stop().await;
}

#[tokio::test]
async fn it_listens_on_loopback_only() {
    let dir = tempfile::tempdir().unwrap();
    let engine = std::sync::Arc::new(crate::engine::Engine::default());
    let listen = ([0, 0, 0, 0], 0).into();
    let settings =
        AdminSettings { listen, connections_max: 1, data_dir: dir.path().into(), message_bytes_max: 1_000 };
    assert!(matches!(AdminServer::bind(settings, engine).await, Err(AdminError::NotLoopback(_))));
    let api = Api::start().await;
    assert!(api.dir.path().join("control.json").exists());
    api.stop().await;
}
