//! Hostile stream sources: the connection pays, the interface and its neighbour go on.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::project::{hostile_plugins, to_file};
use super::{Peer, Project, until};

fn interface(deed: &str) -> String {
    format!(
        "[source]\nplugin = \"hostile-stream-source\"\nlisten = \"127.0.0.1:0\"\n\
         settings = {{ deed = \"{deed}\", on = \"bad\" }}\n{}",
        to_file(&format!("of-{deed}"), "", "")
    )
}

/// What the source says to a good line, and to the lines behind it until it closes the
/// connection or has answered the last.
async fn say(address: SocketAddr, lines: &str) -> (String, String) {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    stream.write_all(b"one\n").await.unwrap();
    let mut first = String::new();
    stream.read_line(&mut first).await.unwrap();
    // A connection that is closed early is what this is about.
    let _ = stream.write_all(lines.as_bytes()).await;
    let _ = stream.shutdown().await;
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard).await;
    (first, String::from_utf8_lossy(heard.get(..2_000).unwrap_or(&heard)).into_owned())
}

/// One good line on a connection of its own; addresses may be slowed down after a fault.
async fn good_line(address: SocketAddr, number: u32) {
    until("a good line is stored", async || {
        let mut stream = BufReader::new(TcpStream::connect(address).await.ok()?);
        stream.write_all(format!("PWfine-{number}\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await.ok()?;
        answer.starts_with("stored ").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_hostile_source_costs_the_connection_and_nothing_else() {
    let deeds = [
        "endless-loop",
        "memory-bomb",
        "trap",
        "stack-overflow",
        "span-before-kept",
        "span-behind-input",
        "keep-from-ahead",
        "keep-from-going-back",
        "undeclared-control",
        "huge-ticket",
        "huge-reply",
        "settle-traps",
        "settle-loops",
    ];
    let limits = "[limits]\nfuel_per_message = 20000000\nmemory_bytes_max = \"24MB\"\n";
    let project = Project::new(&format!("{}{limits}", hostile_plugins()));
    for deed in deeds {
        project.interface(deed, &interface(deed));
    }
    project.mllp("neighbour", "", &to_file("good", "", ""));
    let mut engine = project.run().await;
    let mut neighbour = Peer::connect(engine.address("neighbour").await).await;
    for (number, deed) in (1..).zip(deeds) {
        let address = engine.address(deed).await;
        let (first, heard) = say(address, "this is bad\n").await;
        assert!(first.starts_with("stored "), "{deed}: {first}");
        assert!(heard.lines().all(|line| line.starts_with("stored ")), "{deed}: {heard}");
        neighbour.send_all("PWnext", [u64::from(number)]).await;
        good_line(address, number).await;
    }
    let status = engine.status().await;
    for deed in deeds {
        let found = status.interfaces.iter().find(|found| found.name == deed).unwrap();
        let faults = found.refusals.iter().find(|count| count.reason == "fault");
        assert!(faults.is_some_and(|faults| faults.count >= 1), "{deed} is not shown as a fault: {found:#?}");
    }
    engine.sent("neighbour", "good", deeds.len() as u64).await;
    assert!(engine.resident_bytes_max() < 700 << 20, "{} bytes", engine.resident_bytes_max());
}
