//! A web server on this machine that answers as it is told, and remembers what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portway_net::AddressPolicy;
use portway_net::http::{Credentials, HttpGrant};
use portway_runtime::{Grant, Grants};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers each request by its body, and remembers what it was asked.
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A status such as `200 OK` for a body; `hang` never answers.
    pub async fn start(answer: fn(&str) -> &'static str) -> Server {
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

    /// Head and body of each request, an empty line between them.
    pub fn asked(&self) -> Vec<String> {
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

/// What a body is answered.
pub fn by_body(body: &str) -> &'static str {
    match body {
        "busy" => "503 Service Unavailable",
        "wrong" => "422 Unprocessable Content",
        "stranger" => "401 Unauthorized",
        "hang" => "hang",
        _ => "201 Created",
    }
}

/// The slot `api`, with credentials.
pub fn granted(url: &str) -> Grants {
    let mut grant = HttpGrant::new(url.parse().unwrap());
    grant.credentials = Some(Credentials::Bearer("s3cret".into()));
    grant.addresses = AddressPolicy::Any;
    grant.timeout = Duration::from_secs(10);
    Grants(BTreeMap::from([("api".to_owned(), Grant::Http(grant))]))
}
