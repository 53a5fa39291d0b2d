//! HTTP senders against a server on this machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portway_model::{SendVerdict, Trouble};
use portway_net::AddressPolicy;
use portway_net::http::{Credentials, HttpGrant};
use portway_runtime::{Batch, CallError, Grant, Grants, HttpSender, Opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{batch, bytes_batch, plugin};

/// Answers each request by its body, and remembers what it was asked.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: fn(&str) -> &'static str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/results", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let server = Server { url, asked: asked.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer, asked.clone()));
            }
        });
        server
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answer: fn(&str) -> &'static str, asked: Arc<Mutex<Vec<String>>>) {
    let mut input = Vec::new();
    loop {
        let (head, body_at, length) = loop {
            let text = String::from_utf8_lossy(&input).into_owned();
            if let Some(end) = text.find("\r\n\r\n") {
                let length = text[..end]
                    .lines()
                    .find_map(|line| {
                        line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned)
                    })
                    .map_or(0, |value| value.trim().parse::<usize>().unwrap());
                if input.len() >= end + 4 + length {
                    break (text[..end].to_owned(), end + 4, length);
                }
            }
            match stream.read_buf(&mut input).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let body = String::from_utf8_lossy(&input[body_at..body_at + length]).into_owned();
        input.drain(..body_at + length);
        let status = answer(&body);
        asked.lock().unwrap().push(format!("{head}\n\n{body}"));
        if status == "hang" {
            std::future::pending::<()>().await;
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn by_body(body: &str) -> &'static str {
    match body {
        "busy" => "503 Service Unavailable",
        "wrong" => "422 Unprocessable Content",
        "hang" => "hang",
        _ => "201 Created",
    }
}

async fn sender(url: &str, settings: &str) -> HttpSender {
    let mut grant = HttpGrant::new(url.parse().unwrap());
    grant.credentials = Some(Credentials::Bearer("s3cret".into()));
    grant.addresses = AddressPolicy::Any;
    grant.timeout = Duration::from_secs(10);
    let grants = Grants(BTreeMap::from([("api".to_owned(), Grant::Http(grant))]));
    let opening = Opening { grants, ..Opening::new("lab", "api", settings) };
    plugin("plugins", "http-sender").await.http_sender(opening).unwrap()
}

fn shape(verdicts: &[SendVerdict]) -> Vec<&'static str> {
    let shape = |verdict: &SendVerdict| match verdict {
        SendVerdict::Sent(_) => "sent",
        SendVerdict::Untried => "untried",
        SendVerdict::Retry(_) => "retry",
        SendVerdict::Quarantine(_) => "quarantine",
    };
    verdicts.iter().map(shape).collect()
}

#[tokio::test]
async fn requests_go_side_by_side_and_each_is_judged() {
    let server = Server::start(by_body).await;
    let sender = sender(&server.url, "{}").await;
    let call = sender.send(&batch(&["one", "busy", "wrong", "four"])).await;
    assert_eq!(call.sent, [0, 3]);
    assert_eq!(shape(&call.result.unwrap()), ["sent", "retry", "quarantine", "sent"]);
    let asked = server.asked();
    assert_eq!(asked.len(), 4);
    assert!(
        asked.iter().all(|request| request.to_ascii_lowercase().contains("authorization: bearer s3cret"))
    );
}

#[tokio::test]
async fn in_order_nothing_is_asked_after_the_first_that_is_not_sent() {
    let server = Server::start(by_body).await;
    let sender = sender(&server.url, "{}").await;
    let call = sender.send(&Batch { ordered: true, ..batch(&["one", "busy", "three"]) }).await;
    assert_eq!(call.sent, [0]);
    assert_eq!(shape(&call.result.unwrap()), ["sent", "retry", "untried"]);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_server_that_hangs_holds_no_instance_and_ends_with_the_time() {
    let server = Server::start(by_body).await;
    let sender = sender(&server.url, "{}").await;
    let hanging = Batch { timeout: Duration::from_millis(500), ..batch(&["hang"]) };
    let (hung, other) = (batch(&["one"]), hanging);
    let (slow, quick) = tokio::join!(sender.send(&other), sender.send(&hung));
    assert_eq!(shape(&quick.result.unwrap()), ["sent"]);
    match slow.result {
        Ok(verdicts) => assert_eq!(shape(&verdicts), ["retry"]),
        Err(error) => assert!(matches!(error, CallError::Trouble(Trouble::Unavailable(_))), "{error}"),
    }
}

#[tokio::test]
async fn a_peer_that_is_away_is_not_the_messages_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/results", listener.local_addr().unwrap());
    drop(listener);
    let call = sender(&url, "{}").await.send(&batch(&["one"])).await;
    match call.result {
        Ok(verdicts) => assert_eq!(shape(&verdicts), ["retry"]),
        Err(error) => assert!(matches!(error, CallError::Trouble(Trouble::Unavailable(_))), "{error}"),
    }
    assert!(call.sent.is_empty());
}

#[tokio::test]
async fn a_large_body_goes_as_it_is() {
    let server = Server::start(by_body).await;
    let body = bytes::Bytes::from(vec![b'x'; 2 << 20]);
    let call = sender(&server.url, "{}").await.send(&bytes_batch(vec![body.clone()])).await;
    assert_eq!(shape(&call.result.unwrap()), ["sent"]);
    let asked = server.asked();
    assert_eq!(asked[0].split_once("\n\n").unwrap().1.len(), body.len());
}
