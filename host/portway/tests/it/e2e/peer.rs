//! Peers of an engine: one that sends over MLLP, and an HTTP server that answers as told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use portway::traffic::Template;
use portway::traffic::answer::Acknowledgement;
use portway::traffic::frame::{FrameReader, write_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A message of one key. Every text in the key is in the message, so that it can provoke.
pub fn message(key: &str, sequence: u64) -> Vec<u8> {
    Template::new(400).message(key, sequence)
}

/// One connection that sends messages and reads acknowledgements.
pub struct Peer {
    pub reader: FrameReader<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
}

impl Peer {
    pub async fn connect(address: SocketAddr) -> Peer {
        let (reader, writer) = TcpStream::connect(address).await.unwrap().into_split();
        Peer { reader: FrameReader::new(reader, 1 << 20), writer }
    }

    /// MSA-1 of the answer to a message.
    pub async fn send(&mut self, message: &[u8]) -> String {
        self.ask(message).await.code
    }

    pub async fn ask(&mut self, message: &[u8]) -> Acknowledgement {
        let mut frame = Vec::new();
        write_frame(&mut frame, |into| into.extend_from_slice(message));
        self.writer.write_all(&frame).await.unwrap();
        let answer = self.reader.next().await.unwrap().expect("an answer");
        Acknowledgement::read(&answer).expect("an acknowledgement")
    }

    /// Sends messages that all have to be taken.
    pub async fn send_all(&mut self, key: &str, sequences: impl IntoIterator<Item = u64>) {
        for sequence in sequences {
            assert_eq!(self.send(&message(key, sequence)).await, "AA", "{key}-{sequence}");
        }
    }
}

/// What a server was asked, and when.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at: std::time::Instant,
    pub head: String,
    pub body: Vec<u8>,
}

/// Decides about a request: status line and headers, without the end of the head.
type Answering = dyn Fn(usize, &Asked) -> String + Send + Sync;

/// An HTTP server that answers each request as a function says.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// `answering` gets the number of the request, from 0, and the request.
    pub async fn start(answering: impl Fn(usize, &Asked) -> String + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, answering) = (asked.clone(), Arc::new(answering) as Arc<Answering>);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), answering.clone()));
            }
        });
        Server { address, asked, task }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, asked: Arc<Mutex<Vec<Asked>>>, answering: Arc<Answering>) {
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
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        let length = length.unwrap_or(0);
        while bytes.len() < end + length {
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
        }
        let one = Asked { at: std::time::Instant::now(), head, body: bytes[end..end + length].to_vec() };
        bytes.drain(..end + length);
        let number = {
            let mut asked = asked.lock().unwrap();
            asked.push(one.clone());
            asked.len() - 1
        };
        let answer = format!("HTTP/1.1 {}\r\ncontent-length: 0\r\n\r\n", answering(number, &one));
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Sends one request, and reads until the connection is closed: status and body.
pub async fn ask(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, "GET", path, "", "").await
}

pub async fn post(address: SocketAddr, path: &str, headers: &str, body: &str) -> (u16, String) {
    ask(address, "POST", path, headers, body).await
}

/// A port that nobody used a moment ago.
pub fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
