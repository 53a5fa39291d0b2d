//! The SMTP sender on the runtime: real TLS, real logins, and servers that mean no good.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use portway_model::{SendVerdict, Trouble};
use portway_net::tcp::{TcpCredentials, TcpGrant, TcpTls, TlsStart};
use portway_runtime::{Batch, Call, CallError, CallLimits, Grant, Grants, Opening, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::smtp_server::{Entry, Seen, start};
use crate::support::{batch, bytes_batch, plugin};
use crate::tls::{Certificate, grant};

const SETTINGS: &str = r#"{"from": "lab@hospital.example", "to": ["ward@hospital.example"],
    "attachment": {"name": "{id}.bin"}, "timeout": "5s"}"#;

fn tls(certificate: &Certificate, start: TlsStart) -> TcpTls {
    TcpTls { roots: Some(certificate.file()), start, ..TcpTls::default() }
}

fn login(password: &str) -> Option<TcpCredentials> {
    Some(TcpCredentials { user: "lab".into(), password: password.into() })
}

/// A message of 16 MiB has 2,000,000,000 fuel in an engine that nobody configured: so much is it for
/// the one of these tests.
const FUEL: u64 = 2_000_000_000 / 16 * 6 / 5;

async fn sender(grant: TcpGrant) -> Sender {
    let grants = Grants(BTreeMap::from([("server".to_owned(), Grant::Tcp(grant))]));
    let limits = CallLimits { fuel_per_message: FUEL, ..CallLimits::default() };
    plugin("plugins", "smtp-sender")
        .await
        .sender(Opening { grants, limits, ..Opening::new("lab", "mail", SETTINGS) })
        .unwrap()
}

fn all(mut seen: UnboundedReceiver<Seen>) -> Vec<Seen> {
    let mut events = Vec::new();
    while let Ok(event) = seen.try_recv() {
        events.push(event);
    }
    events
}

fn trouble(call: Call<Vec<SendVerdict>>) -> Trouble {
    match call.result {
        Err(CallError::Trouble(trouble)) => trouble,
        other => panic!("{other:?}"),
    }
}

fn stopped(call: Call<Vec<SendVerdict>>) -> String {
    match trouble(call) {
        Trouble::Misconfigured(why) => why.code,
        Trouble::Unavailable(later) => panic!("{later:?}"),
    }
}

fn body() -> Bytes {
    (0..300_000_u32).flat_map(|number| number.to_le_bytes()).collect()
}

/// The file in a mail.
fn attached(mail: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(mail).unwrap();
    let (_, encoded) = text.rsplit_once("base64\r\n\r\n").unwrap();
    let (encoded, _) = encoded.split_once("\r\n--").unwrap();
    STANDARD.decode(encoded.replace("\r\n", "")).unwrap()
}

#[tokio::test]
async fn a_mail_arrives_byte_for_byte_over_tls_of_both_kinds() {
    for (entry, begin) in [(Entry::Tls, TlsStart::Connect), (Entry::StartTls, TlsStart::Required)] {
        let certificate = Arc::new(Certificate::new());
        let (port, seen) = start(certificate.clone(), entry).await;
        let granted = grant(port, Some(tls(&certificate, begin)));
        let sender = sender(TcpGrant { credentials: login("s3cret"), ..granted }).await;
        let call = sender.send(&bytes_batch(vec![body()])).await;
        assert!(matches!(call.result.as_deref(), Ok([SendVerdict::Sent(_)])), "{:?}", call.result);
        let seen = all(seen);
        let Some(Seen::Mail { from, to, bytes }) = seen.last() else { panic!("{seen:?}") };
        assert_eq!((from.as_str(), to.len()), ("lab@hospital.example", 1));
        assert_eq!(attached(bytes), body());
        let plain: Vec<&Seen> = seen.iter().filter(|seen| matches!(seen, Seen::Line(_))).collect();
        let expected = if entry == Entry::Tls { 0 } else { 2 };
        assert_eq!(plain.len(), expected, "{plain:?}");
    }
}

#[tokio::test]
async fn a_connection_is_kept_between_calls_and_mails_begin_with_a_reset() {
    let certificate = Arc::new(Certificate::new());
    let (port, seen) = start(certificate.clone(), Entry::StartTls).await;
    let granted = grant(port, Some(tls(&certificate, TlsStart::Required)));
    let sender = sender(TcpGrant { credentials: login("s3cret"), ..granted }).await;
    for _ in 0..2 {
        let call = sender.send(&Batch { ordered: true, ..batch(&["one", "two"]) }).await;
        assert_eq!(call.sent, [0, 1], "{:?}", call.result);
    }
    let seen = all(seen);
    let count = |wanted: fn(&Seen) -> bool| seen.iter().filter(|seen| wanted(seen)).count();
    assert_eq!(count(|seen| *seen == Seen::Connection), 1);
    assert_eq!(count(|seen| *seen == Seen::Reset), 3);
    assert_eq!(count(|seen| matches!(seen, Seen::Mail { .. })), 4);
    assert_eq!(count(|seen| matches!(seen, Seen::Violation(_))), 0, "{seen:?}");
}

#[tokio::test]
async fn nothing_is_said_to_a_server_that_is_not_who_it_says() {
    let certificate = Arc::new(Certificate::new());
    for (entry, begin) in [(Entry::Tls, TlsStart::Connect), (Entry::StartTls, TlsStart::Required)] {
        let (port, seen) = start(certificate.clone(), entry).await;
        let other = Certificate::new();
        let granted = grant(port, Some(tls(&other, begin)));
        let granted = TcpGrant { credentials: login("s3cret"), ..granted };
        assert_eq!(stopped(sender(granted).await.send(&batch(&["one"])).await), "untrusted");
        let seen = all(seen);
        assert!(!seen.iter().any(|seen| matches!(seen, Seen::Mail { .. } | Seen::Violation(_))), "{seen:?}");
    }
}

#[tokio::test]
async fn without_the_tls_that_is_required_nothing_of_a_mail_is_said() {
    let certificate = Arc::new(Certificate::new());
    let (port, seen) = start(certificate.clone(), Entry::Plain).await;
    let granted = grant(port, Some(tls(&certificate, TlsStart::Required)));
    let sender = sender(TcpGrant { credentials: login("s3cret"), ..granted }).await;
    assert_eq!(stopped(sender.send(&batch(&["one"])).await), "no-starttls");
    assert_eq!(all(seen), [Seen::Connection, Seen::Line("EHLO localhost".into())]);
}

#[tokio::test]
async fn a_wrong_password_stops_the_destination() {
    let certificate = Arc::new(Certificate::new());
    let (port, _seen) = start(certificate.clone(), Entry::Tls).await;
    let granted = grant(port, Some(tls(&certificate, TlsStart::Connect)));
    let sender = sender(TcpGrant { credentials: login("wrong"), ..granted }).await;
    assert_eq!(stopped(sender.send(&batch(&["one"])).await), "login-refused");
}

/// A server that runs a script once, in plain text.
async fn scripted<W>(script: fn(TcpStream) -> W) -> Sender
where
    W: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(stream));
        }
    });
    sender(grant(port, None)).await
}

/// Agrees to everything as far as the mail itself.
async fn agree(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"220 mail\r\n").await?;
    for answer in ["250 mail\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n"] {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.push(stream.read_u8().await?);
        }
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_line_that_never_ends_costs_neither_memory_nor_time() {
    let sender = scripted(|mut stream| async move {
        stream.write_all(b"220 ").await?;
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..1_024 {
            stream.write_all(&piece).await?;
        }
        Ok(())
    })
    .await;
    let started = Instant::now();
    match trouble(sender.send(&batch(&["one"])).await) {
        Trouble::Unavailable(later) => assert_eq!(later.failure.code, "bad-reply", "{later:?}"),
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_closes_in_the_mail_has_not_taken_it() {
    let sender = scripted(|mut stream| async move {
        agree(&mut stream).await?;
        stream.read_exact(&mut [0; 100]).await?;
        Ok(())
    })
    .await;
    let call = sender.send(&bytes_batch(vec![body()])).await;
    assert!(matches!(call.result.as_deref(), Ok([SendVerdict::Retry(_)])), "{:?}", call.result);
    assert!(call.sent.is_empty());
}

#[tokio::test]
async fn answers_that_nobody_asked_for_make_no_message_sent() {
    let sender = scripted(|mut stream| async move {
        stream.write_all(b"220 mail\r\n250 mail\r\n250 ok\r\n250 ok\r\n354 go\r\n250 queued\r\n").await?;
        stream.read_to_end(&mut Vec::new()).await.map(drop)
    })
    .await;
    match trouble(sender.send(&batch(&["one"])).await) {
        Trouble::Unavailable(later) => assert_eq!(later.failure.code, "bad-reply", "{later:?}"),
        other => panic!("{other:?}"),
    }
}
