//! Clients of HTTP: N connections that are kept, each sends its next request when the last one was
//! answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::engine::Bench;
use super::figure::round;

/// Before the measurement, so that plugins are compiled and files are open.
pub const WARM_UP: Duration = Duration::from_millis(500);
/// Bytes of an answer's head and body that a client takes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What clients saw.
pub struct Report {
    pub took: Duration,
    /// Of each answer, the shortest first.
    pub times: Vec<Duration>,
}

impl Report {
    /// The time within which such a part of the answers came, in milliseconds.
    pub fn at(&self, part: f64) -> Option<f64> {
        let index = (self.times.len() as f64 * part) as usize;
        self.times.get(index).map(|time| round(time.as_secs_f64() * 1_000.0))
    }
}

/// Asks for so long; every answer has to have the status.
pub async fn ask(
    bench: &Bench,
    connections: usize,
    duration: Duration,
    (request, status): (&[u8], u16),
) -> Result<Report> {
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let client = client(bench.source, request.to_vec(), status, began + duration);
        clients.spawn_on(client, bench.clients());
    }
    let mut times = Vec::new();
    while let Some(ended) = clients.join_next().await {
        times.extend(ended??);
    }
    times.sort();
    Ok(Report { took: began.elapsed(), times })
}

async fn client(address: SocketAddr, request: Vec<u8>, status: u16, end: Instant) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let begins = format!("HTTP/1.1 {status}");
    let (mut times, mut bytes) = (Vec::new(), Vec::with_capacity(4_096));
    while Instant::now() < end {
        let began = Instant::now();
        stream.write_all(&request).await?;
        bytes.clear();
        while !is_whole(&bytes)? {
            let read = stream.read_buf(&mut bytes).await?;
            if read == 0 || bytes.len() > ANSWER_BYTES_MAX {
                bail!("no answer: {}", String::from_utf8_lossy(&bytes));
            }
        }
        if !bytes.starts_with(begins.as_bytes()) {
            bail!("answered {}", String::from_utf8_lossy(&bytes));
        }
        times.push(began.elapsed());
    }
    Ok(times)
}

/// Whether these bytes are an answer from its head to its end.
fn is_whole(bytes: &[u8]) -> Result<bool> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(false) };
    let head = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.context("an answer without a length")?.parse()?;
    Ok(bytes.len() >= end + 4 + length)
}
