//! An MLLP port that hears everything but MLLP.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::process::refused;
use super::project::to_file;
use super::{Engine, Peer, Project, message};

async fn engine() -> (Project, Engine, SocketAddr) {
    let project = Project::new("[limits]\nmessage_bytes_max = \"64KB\"\n");
    project.mllp("lab", "frame_timeout = \"300ms\"\n", &to_file("out", "", ""));
    let mut engine = project.run().await;
    let address = engine.address("lab").await;
    (project, engine, address)
}

/// Sends bytes and returns what comes back until the connection is closed.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The engine may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

async fn is_counted(engine: &mut Engine, reason: &str) {
    engine
        .until_status(&format!("`{reason}` is counted"), |status| {
            (refused(status, "lab", reason) >= 1).then_some(())
        })
        .await;
}

async fn still_takes(engine: &mut Engine, address: SocketAddr, sequence: u64) {
    Peer::connect(address).await.send_all("PWgood", [sequence]).await;
    engine.sent("lab", "out", sequence).await;
}

#[tokio::test]
async fn other_protocols_are_refused_in_their_own_language() {
    let (_project, mut engine, address) = engine().await;
    let mut hello = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    hello.extend((0..506_u32).map(|n| n as u8));
    let answer = exchange(address, &hello).await;
    // An alert.
    assert_eq!(answer.first(), Some(&0x15), "{answer:?}");
    is_counted(&mut engine, "tls").await;
    let answer = exchange(address, b"GET / HTTP/1.1\r\nhost: lab\r\n\r\n").await;
    assert!(answer.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&answer));
    is_counted(&mut engine, "http").await;
    still_takes(&mut engine, address, 1).await;
}

#[tokio::test]
async fn a_frame_that_is_too_large_or_never_ends_closes_its_connection() {
    let (_project, mut engine, address) = engine().await;
    still_takes(&mut engine, address, 1).await;
    let before = engine.resident_bytes_max();
    // Far more than a message may have, and no end.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"\x0bMSH|^~\\&|A|B|C|D|20260101||ORU^R01|big|P|2.5\r").await.unwrap();
    let chunk = vec![b'x'; 1 << 20];
    let mut written = 0_usize;
    while written < 1 << 30 && stream.write_all(&chunk).await.is_ok() {
        written += chunk.len();
    }
    assert!(written < 64 << 20, "{written} bytes were taken");
    drop(stream);
    is_counted(&mut engine, "too-large").await;
    let grown = engine.resident_bytes_max().saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");

    // One that begins and stays silent.
    let answer = exchange(address, b"\x0bMSH|^~\\&|A|B|C|D|20260101||ORU^R01|half").await;
    assert_eq!(answer, b"");
    is_counted(&mut engine, "idle-in-frame").await;
    // One that is alive but never comes to an end.
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let closed = tokio::spawn(async move { reader.read_to_end(&mut Vec::new()).await.map(|_| ()) });
    let _ = writer.write_all(b"\x0b").await;
    let dripping = tokio::spawn(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        while writer.write_all(b"M").await.is_ok() {
            pause.tick().await;
        }
    });
    let ended = tokio::time::timeout(super::PATIENCE, closed).await;
    dripping.abort();
    assert!(ended.is_ok(), "a dripping frame was never closed");
    still_takes(&mut engine, address, 2).await;
}

#[tokio::test]
async fn random_bytes_are_refused_and_counted() {
    let (_project, mut engine, address) = engine().await;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..30 {
        let mut bytes = vec![];
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Every second round is full of the bytes that frames are made of.
            let byte = state as u8;
            bytes.push(if round % 2 == 0 {
                byte
            } else {
                [0x0b, 0x1c, 0x0d, b'M', b'S', b'H', b'|'][byte as usize % 7]
            });
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    let mut peer = Peer::connect(address).await;
    peer.send_all("PWgood", [1]).await;
    engine
        .until_status("refusals are shown", |status| {
            let lab = &status.interfaces[0];
            let all: u64 = lab.refusals.iter().map(|count| count.count).sum();
            (all > 0 && lab.items.refused > 0).then_some(())
        })
        .await;
    engine.drained("lab", "out").await;
}

#[tokio::test]
async fn a_peer_that_never_reads_its_acknowledgements_hurts_only_itself() {
    let (_project, mut engine, address) = engine().await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    // Little room for answers, so that they back up soon.
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let stream = socket.connect(address).await.unwrap();
    let (_never_read, mut writer) = stream.into_split();
    let writing = tokio::spawn(async move {
        let mut sequence = 0;
        loop {
            sequence += 1;
            let mut frame = Vec::new();
            let body = message("PWdeaf", sequence);
            portway::traffic::frame::write_frame(&mut frame, |into| into.extend_from_slice(&body));
            if writer.write_all(&frame).await.is_err() {
                return;
            }
        }
    });
    // It gets as far as its answers fit somewhere; then nothing more of it is taken.
    let mut last = 0;
    super::until("nothing more of it is taken", async || {
        let now = engine.status().await.interfaces[0].items.messages;
        let stands = now > 0 && now == last;
        last = now;
        // Several looks in a row would be needed to be sure; a neighbour's delivery is one of them.
        if stands {
            tokio::time::sleep(Duration::from_millis(200)).await;
            return (engine.status().await.interfaces[0].items.messages == now).then_some(());
        }
        None
    })
    .await;
    let mut peer = Peer::connect(address).await;
    peer.send_all("PWgood", 1..=50).await;
    assert!(engine.resident_bytes_max() < 500 << 20, "{} bytes", engine.resident_bytes_max());
    writing.abort();
}
