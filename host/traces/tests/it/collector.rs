//! A collector that answers as told, and keeps what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Status line and headers, and the body, of the answer to the request of a number, from 0.
type Answering = dyn Fn(usize) -> (String, Vec<u8>) + Send + Sync;

pub struct Collector {
    pub address: SocketAddr,
    requests: watch::Receiver<Vec<ExportTraceServiceRequest>>,
}

impl Collector {
    pub async fn start(answering: impl Fn(usize) -> (String, Vec<u8>) + Send + Sync + 'static) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, requests) = watch::channel(Vec::new());
        let (seen, answering) = (Arc::new(Mutex::new(seen)), Arc::new(answering) as Arc<Answering>);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), answering.clone()));
            }
        });
        Collector { address, requests }
    }

    /// Waits for so many requests.
    pub async fn requests(&self, count: usize) -> Vec<ExportTraceServiceRequest> {
        let mut requests = self.requests.clone();
        requests.wait_for(|requests| requests.len() >= count).await.unwrap().clone()
    }
}

type Seen = Arc<Mutex<watch::Sender<Vec<ExportTraceServiceRequest>>>>;

async fn serve(mut stream: TcpStream, seen: Seen, answering: Arc<Answering>) {
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
                break at + 4;
            }
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        assert!(head.starts_with("post /base/v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/x-protobuf\r\n"), "{head}");
        let (_, rest) = head.split_once("content-length: ").unwrap();
        let length: usize = rest.split("\r\n").next().unwrap().parse().unwrap();
        while bytes.len() < end + length {
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
        }
        let request = ExportTraceServiceRequest::decode(&bytes[end..end + length]).unwrap();
        bytes.drain(..end + length);
        let number = {
            let seen = seen.lock().unwrap();
            seen.send_modify(|seen| seen.push(request));
            seen.borrow().len() - 1
        };
        let (head, body) = answering(number);
        let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(&[answer.as_bytes(), &body].concat()).await.is_err() {
            return;
        }
    }
}
