//! HTTP senders against a server on this machine.

use std::time::Duration;

use portway_model::{SendVerdict, Trouble};
use portway_runtime::{Batch, CallError, HttpSender, Opening};
use tokio::net::TcpListener;

use crate::server::{Server, by_body, granted};
use crate::support::{batch, bytes_batch, plugin};

async fn sender(url: &str, settings: &str) -> HttpSender {
    let grants = granted(url);
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
async fn a_peer_that_is_away_is_one_fact_and_no_message_is_blamed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/results", listener.local_addr().unwrap());
    drop(listener);
    // It takes connections and closes them in the handshake.
    let no_tls = closing().await.replace("http:", "https:");
    for url in [nobody, no_tls] {
        for ordered in [true, false] {
            let call = sender(&url, "{}").await.send(&Batch { ordered, ..batch(&["one", "two"]) }).await;
            let Err(CallError::Trouble(Trouble::Unavailable(later))) = call.result else {
                panic!("{url}: {:?}", call.result)
            };
            assert_eq!(later.failure.code, "unreachable", "{url}");
            assert!(call.sent.is_empty() && call.unsure.is_empty(), "nothing can have arrived");
        }
    }
}

/// The address of a server that takes connections and closes each as soon as it is spoken to.
async fn closing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/results", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 512]).await;
        }
    });
    url
}

#[tokio::test]
async fn a_connection_that_ends_before_its_answer_is_the_messages_own_retry() {
    let call = sender(&closing().await, "{}").await.send(&batch(&["one"])).await;
    assert_eq!(call.unsure, [0], "it may have arrived");
    match call.result.unwrap().as_slice() {
        [SendVerdict::Retry(later)] => assert_eq!(later.failure.code, "no-answer"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn wrong_credentials_stop_the_destination_and_what_was_sent_stays_sent() {
    let server = Server::start(by_body).await;
    let sender = sender(&server.url, "{}").await;
    let call = sender.send(&batch(&["stranger"])).await;
    assert!(
        matches!(&call.result, Err(CallError::Trouble(Trouble::Misconfigured(why))) if why.code == "401"),
        "{:?}",
        call.result
    );
    assert!(call.unsure.is_empty(), "the server has said that it did not take it");
    // In order the answers before it count; the next run meets it first and stops.
    let call = sender.send(&Batch { ordered: true, ..batch(&["one", "stranger", "three"]) }).await;
    assert_eq!(call.sent, [0]);
    assert!(call.unsure.is_empty());
    let verdicts = call.result.unwrap();
    assert_eq!(shape(&verdicts), ["sent", "untried", "untried"]);
    assert!(matches!(&verdicts[0], SendVerdict::Sent(answer) if answer.code == "201"), "{verdicts:?}");
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
