//! The generator against the receiver, well behaved and not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portway::traffic::{
    Behaviour, GenerateReport, GenerateSettings, Protocol, ReceiveSettings, Receiver, Stop, Stopper,
    TallyReport, generate, ledger,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn receiver(protocol: Protocol, behaviour: Behaviour) -> (Receiver, SocketAddr) {
    let settings = ReceiveSettings { listen: ([127, 0, 0, 1], 0).into(), protocol, behaviour, ledger: None };
    let receiver = Receiver::bind(settings).await.unwrap();
    let address = receiver.local_addr().unwrap();
    (receiver, address)
}

fn settings(to: SocketAddr) -> GenerateSettings {
    GenerateSettings { connections: 4, keys: 8, count: Some(200), ..GenerateSettings::to(to.to_string()) }
}

/// What both ends say after the generator is done.
async fn exchange(
    behaviour: Behaviour,
    settings: impl FnOnce(SocketAddr) -> GenerateSettings,
) -> (GenerateReport, TallyReport) {
    let (receiver, address) = receiver(Protocol::Mllp, behaviour).await;
    let desk = receiver.desk();
    let (_stopper, stop) = Stopper::new();
    let receiving = tokio::spawn(receiver.run(stop.clone()));
    let report = generate(settings(address), Arc::default(), stop).await.unwrap();
    receiving.abort();
    (report, desk.tally().report())
}

#[tokio::test]
async fn everything_sent_arrives_in_order_and_is_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("acknowledged");
    let ledger_path = path.clone();
    let (sent, received) = exchange(Behaviour::default(), move |to| GenerateSettings {
        ledger: Some(ledger_path),
        ..settings(to)
    })
    .await;
    assert!(sent.is_good() && received.is_good(), "{sent:?} {received:?}");
    assert_eq!((sent.acknowledged, sent.latency.count, sent.resent), (200, 200, 0));
    assert_eq!((received.distinct, received.keys, received.duplicates), (200, 8, 0));
    assert_eq!(received.latency.count, 200);
    assert_eq!(ledger::read(&path).unwrap().len(), 200);
}

#[tokio::test]
async fn what_is_answered_with_ae_is_sent_again_and_keeps_its_order() {
    let behaviour = Behaviour { fail_every: Some(20), ..Behaviour::default() };
    let (sent, received) = exchange(behaviour, settings).await;
    assert_eq!((sent.acknowledged, received.distinct, received.late), (200, 200, 0));
    assert!(
        sent.refused > 0 && sent.refused == sent.resent && sent.refused == received.turned_away,
        "{sent:?}"
    );
}

#[tokio::test]
async fn what_is_answered_with_ar_is_given_up_and_reported() {
    let behaviour = Behaviour { status: Some(400), ..Behaviour::default() };
    let (sent, received) = exchange(behaviour, settings).await;
    assert_eq!((sent.acknowledged, sent.rejected, received.received), (0, 200, 0));
    assert!(!sent.is_good());
}

#[tokio::test]
async fn a_receiver_that_comes_back_gets_what_was_not_acknowledged() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stopper, stop) = Stopper::new();
    let sending = tokio::spawn(generate(
        GenerateSettings { connections: 1, count: Some(5), ..settings(address) },
        Arc::default(),
        stop,
    ));
    // The first connection reads a whole message and ends without an answer.
    let (mut first, _) = listener.accept().await.unwrap();
    let mut bytes = [0; 2_000];
    let mut read = 0;
    while !bytes[..read].ends_with(b"\x1c\r") {
        read += first.read(&mut bytes[read..]).await.unwrap();
    }
    drop((first, listener));
    let settings = ReceiveSettings {
        listen: address,
        protocol: Protocol::Mllp,
        behaviour: Behaviour::default(),
        ledger: None,
    };
    let receiver = Receiver::bind(settings).await.unwrap();
    let desk = receiver.desk();
    let (_stopper, stop) = Stopper::new();
    tokio::spawn(receiver.run(stop));
    let report = sending.await.unwrap().unwrap();
    assert_eq!((report.acknowledged, report.resent, report.reconnects), (5, 1, 1));
    assert!(desk.tally().report().is_good());
}

#[tokio::test]
async fn a_foreign_answer_closes_the_connection_and_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stopper, stop) = Stopper::new();
    let progress: Arc<portway::traffic::GenerateProgress> = Arc::default();
    let sending = tokio::spawn(generate(
        GenerateSettings { connections: 1, count: Some(1), ..settings(address) },
        progress,
        stop,
    ));
    let (mut first, _) = listener.accept().await.unwrap();
    first.write_all(b"\x0bMSH|^~\\&|\rMSA|AA|PWother-1\r\x1c\r").await.unwrap();
    let (second, _) = listener.accept().await.unwrap();
    stopper.stop();
    drop((first, second, listener));
    let report = sending.await.unwrap().unwrap();
    assert_eq!((report.acknowledged, report.foreign, report.unacknowledged.len()), (0, 1, 1));
}

#[tokio::test]
async fn it_ends_when_asked_and_when_its_time_is_over() {
    let hang = Behaviour { hang: true, ..Behaviour::default() };
    let short = |to| GenerateSettings {
        duration: Some(Duration::from_secs(2)),
        answer_timeout: Duration::from_millis(50),
        count: None,
        ..settings(to)
    };
    let (sent, _) = exchange(hang, short).await;
    assert_eq!((sent.acknowledged, sent.unacknowledged.len()), (0, 4));
    let slow_rate = |to| GenerateSettings {
        rate: Some(0.001),
        duration: Some(Duration::from_millis(50)),
        count: None,
        ..settings(to)
    };
    let (sent, _) = exchange(Behaviour::default(), slow_rate).await;
    assert!(sent.acknowledged <= 1 && sent.is_good(), "{sent:?}");
}

#[tokio::test]
async fn fewer_keys_than_connections_is_refused() {
    let (_stopper, stop) = Stopper::new();
    let settings = GenerateSettings { connections: 9, keys: 8, ..GenerateSettings::to("127.0.0.1:1") };
    assert!(generate(settings, Arc::default(), stop).await.is_err());
}

async fn post(address: SocketAddr, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn over_http_it_takes_fails_and_refuses_as_told() {
    let (receiver, address) = receiver(Protocol::Http, Behaviour::default()).await;
    let desk = receiver.desk();
    let (stopper, stop): (Stopper, Stop) = Stopper::new();
    let running = tokio::spawn(receiver.run(stop));
    assert_eq!(post(address, "{\"control_id\":\"PWa-1\"}").await, "HTTP/1.1 200 OK");
    desk.behave(Behaviour { status: Some(503), ..Behaviour::default() });
    assert_eq!(post(address, "{\"control_id\":\"PWa-2\"}").await, "HTTP/1.1 503 Service Unavailable");
    desk.behave(Behaviour {
        status: Some(202),
        slow: Some(Duration::from_millis(1)),
        ..Behaviour::default()
    });
    assert_eq!(post(address, "{\"control_id\":\"PWa-2\"}").await, "HTTP/1.1 202 Accepted");
    desk.behave(Behaviour { fail_every: Some(4), ..Behaviour::default() });
    assert_eq!(post(address, "{\"control_id\":\"PWa-3\"}").await, "HTTP/1.1 500 Internal Server Error");
    assert_eq!(post(address, "no message of ours").await, "HTTP/1.1 200 OK");
    desk.behave(Behaviour { refuse: true, ..Behaviour::default() });
    assert_eq!(post(address, "{}").await, "");
    let report = desk.tally().report();
    assert_eq!((report.distinct, report.turned_away, report.unknown), (2, 2, 1));
    stopper.stop();
    running.await.unwrap();
}
