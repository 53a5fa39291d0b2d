//! The first-party MLLP plugins on the runtime: a codec fed in every split, and a sender on a
//! connection that is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use portway_model::{Attributes, MessageId, SendVerdict};
use portway_net::AddressPolicy;
use portway_net::tcp::TcpGrant;
use portway_runtime::{
    Batch, CallError, Fate, Grant, Grants, Opening, Receipt, Sender, SourceItem, StreamSource,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{batch, plugin};

const MESSAGE: &str = "MSH|^~\\&|LAB|HOSP|EHR|HOSP|20260101120000||ORU^R01|4711|P|2.5.1\rPID|1||42^^^HOSP\r";

async fn source() -> StreamSource {
    let settings = r#"{"key": "PID-3.1", "dedupe": "MSH-10"}"#;
    plugin("plugins", "mllp-source").await.stream_source(Opening::new("lab", "", settings)).unwrap()
}

#[tokio::test]
async fn a_frame_gives_the_same_message_however_it_is_split() {
    let source = source().await;
    let frame = Bytes::from(format!("\x0b{MESSAGE}\x1c\r"));
    for at in 0..=frame.len() {
        let mut connection = source.accept(Attributes::default(), 0).await.unwrap();
        let mut items = connection.receive(frame.slice(..at)).await.unwrap();
        items.extend(connection.receive(frame.slice(at..)).await.unwrap());
        let [SourceItem::Message { draft, ticket }] = items.as_slice() else { panic!("{at}: {items:?}") };
        assert_eq!(draft.body, MESSAGE.as_bytes());
        assert_eq!(draft.key.as_ref().map(|key| key.as_str()), Some("42"));
        assert_eq!(draft.dedupe.as_ref().map(|key| key.as_str()), Some("4711"));
        let receipts = vec![Receipt { fate: Fate::Stored(MessageId(1)), ticket: ticket.clone() }];
        let reply = source.settle(receipts).await.unwrap();
        assert!(String::from_utf8_lossy(&reply.bytes).contains("MSA|AA|4711"), "{reply:?}");
        assert_eq!(connection.kept_bytes(), 0);
    }
}

#[tokio::test]
async fn a_frame_of_many_chunks_is_put_together_once() {
    let source = source().await;
    let body = format!("{MESSAGE}OBX|1|ED|PDF||{}\r", "QUJD".repeat(1 << 20));
    let frame = Bytes::from(format!("\x0b{body}\x1c\r"));
    let mut connection = source.accept(Attributes::default(), 0).await.unwrap();
    let mut items = Vec::new();
    for at in (0..frame.len()).step_by(50_000) {
        items.extend(connection.receive(frame.slice(at..frame.len().min(at + 50_000))).await.unwrap());
    }
    let [SourceItem::Message { draft, .. }] = items.as_slice() else { panic!("{} items", items.len()) };
    assert_eq!(draft.body, body.as_bytes());
}

/// Acknowledges what comes; counts the connections.
async fn receiver() -> (u16, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (said, heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            said.send("connection".into()).unwrap();
            tokio::spawn(acknowledge(stream, said.clone()));
        }
    });
    (port, heard)
}

async fn acknowledge(mut stream: TcpStream, said: tokio::sync::mpsc::UnboundedSender<String>) {
    let mut input = Vec::new();
    while stream.read_buf(&mut input).await.is_ok_and(|read| read > 0) {
        while let Some(end) = input.windows(2).position(|window| window == b"\x1c\r") {
            let frame: Vec<u8> = input.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&frame).into_owned();
            let id = text.split('|').nth(9).unwrap_or_default().to_owned();
            let answer = format!("\x0bMSH|^~\\&|||||20260101||ACK|a{id}|P|2.5.1\rMSA|AA|{id}\r\x1c\r");
            if said.send(id).is_err() || stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn sender(port: u16) -> Sender {
    let grant = TcpGrant {
        host: "127.0.0.1".into(),
        port,
        connections_max: 1,
        connect_timeout: Duration::from_secs(5),
        addresses: AddressPolicy::Any,
        tls: None,
        credentials: None,
    };
    let grants = Grants(BTreeMap::from([("peer".to_owned(), Grant::Tcp(grant))]));
    let opening = Opening { grants, ..Opening::new("lab", "ehr", "{}") };
    plugin("plugins", "mllp-sender").await.sender(opening).unwrap()
}

#[tokio::test]
async fn a_run_goes_over_one_kept_connection() {
    let (port, mut heard) = receiver().await;
    let sender = sender(port).await;
    for _ in 0..2 {
        let messages = [MESSAGE, &MESSAGE.replace("4711", "4712")].map(str::to_owned);
        let batch = batch(&[&messages[0], &messages[1]]);
        let call = sender.send(&Batch { ordered: true, ..batch }).await;
        assert_eq!(call.sent, [0, 1]);
        assert!(call.result.unwrap().iter().all(|verdict| matches!(verdict, SendVerdict::Sent(_))));
    }
    let mut events = Vec::new();
    while let Ok(event) = heard.try_recv() {
        events.push(event);
    }
    assert_eq!(events, ["connection", "4711", "4712", "4711", "4712"]);
}

#[tokio::test]
async fn a_receiver_that_is_away_is_one_fact() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let call = sender(port).await.send(&Batch { ordered: true, ..batch(&[MESSAGE]) }).await;
    assert!(matches!(call.result, Err(CallError::Trouble(_))), "{:?}", call.result);
}

#[tokio::test]
async fn a_receiver_that_never_answers_ends_with_the_time_and_is_not_the_plugins_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(listener.local_addr().unwrap().port()).await;
    let batch = Batch { ordered: true, timeout: Duration::from_millis(400), ..batch(&[MESSAGE]) };
    let call = sender.send(&batch).await;
    match call.result {
        Ok(verdicts) => assert!(matches!(verdicts.as_slice(), [SendVerdict::Retry(_)]), "{verdicts:?}"),
        Err(CallError::Trouble(_)) => {}
        Err(CallError::Fault(fault)) => assert!(!fault.kind.is_runaway(), "{fault}"),
        Err(error) => panic!("{error}"),
    }
    drop(listener);
}
