//! Durable answers over HTTP: N connections that are kept, each sends its next request when the last
//! one was answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::engine::{Bench, with_commits};
use super::figure::{Figure, round};

/// Before the measurement, so that plugins are compiled and files are open.
const WARM_UP: Duration = Duration::from_millis(500);
/// Bytes of an answer's head and body that a client takes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What clients saw.
struct Report {
    took: Duration,
    /// Of each answer.
    times: Vec<Duration>,
}

/// `ratio` is answers ÷ (commits × connections).
pub async fn measure(connections: usize, duration: Duration, body_bytes: usize) -> Result<Vec<Figure>> {
    let bench = Bench::new()?;
    let interface = format!(
        "[source]\nplugin = \"http\"\nlisten = \"{}\"\nconnections_max = 10000\n\
         [[destination]]\nname = \"file\"\n[destination.sender]\nplugin = \"file\"\n\
         settings = {{ mode = \"append\", file = \"out.txt\" }}\n\
         grants.folder = {{ type = \"folder\", path = \"out\" }}\n",
        bench.source
    );
    bench.write("interfaces/bench.toml", &interface)?;
    let flush_ms = bench.flush_ms()?;
    let running = bench.start().await?;
    let request = request(body_bytes);
    send(&bench, connections, WARM_UP, &request).await?;
    let before = running.engine.status().await?.commits;
    let mut report = send(&bench, connections, duration, &request).await?;
    let after = running.engine.status().await?.commits;
    running.stop().await?;
    let answers = report.times.len() as f64;
    let name = format!("http --connections {connections}");
    let figure = Figure::new(name, answers / report.took.as_secs_f64(), "answers/s");
    let mut figure = with_commits(figure, &before, &after);
    let commits = figure.commits.unwrap_or_default().max(1);
    figure.ratio = Some(round(answers / (commits as f64 * connections as f64)));
    figure.flush_ms = Some(flush_ms);
    report.times.sort();
    figure.p50_ms = report.at(0.5);
    figure.p99_ms = report.at(0.99);
    Ok(vec![figure])
}

impl Report {
    fn at(&self, part: f64) -> Option<f64> {
        let index = (self.times.len() as f64 * part) as usize;
        self.times.get(index).map(|time| round(time.as_secs_f64() * 1_000.0))
    }
}

fn request(body_bytes: usize) -> Vec<u8> {
    let body = format!("{{\"note\":\"{}\"}}", "x".repeat(body_bytes.saturating_sub(11)));
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

async fn send(bench: &Bench, connections: usize, duration: Duration, request: &[u8]) -> Result<Report> {
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let client = client(bench.source, request.to_vec(), began + duration);
        clients.spawn_on(client, bench.clients());
    }
    let mut times = Vec::new();
    while let Some(ended) = clients.join_next().await {
        times.extend(ended??);
    }
    Ok(Report { took: began.elapsed(), times })
}

async fn client(address: SocketAddr, request: Vec<u8>, end: Instant) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
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
        if !bytes.starts_with(b"HTTP/1.1 202") {
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
