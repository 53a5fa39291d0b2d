//! The service `http`: what a plugin asks of a granted API, and what comes of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use portway_model::{Output, TransformVerdict};
use portway_net::http::{HttpError, HttpResponse};
use portway_runtime::{
    Asked, Batch, CallLimits, FaultKind, Grant, Grants, HttpAnswers, Opening, Transformer,
};

use crate::server::{Server, by_body, granted};
use crate::support::{batch, bytes_batch, deed, deed_with, fault, hostile_transform};

async fn transformer(grants: Grants, opening: Opening) -> Transformer {
    hostile_transform().await.transformer(Opening { grants, ..opening }).unwrap()
}

async fn ask(transformer: &Transformer, messages: &[&str]) -> Vec<TransformVerdict> {
    transformer.transform(&batch(messages)).await.result.unwrap()
}

fn text(verdict: &TransformVerdict) -> String {
    match verdict {
        TransformVerdict::Deliver(outputs) => match outputs.as_slice() {
            [Output { body, .. }] => String::from_utf8_lossy(body).into_owned(),
            other => panic!("{} outputs", other.len()),
        },
        TransformVerdict::Quarantine(failure) => format!("quarantine: {failure}"),
        TransformVerdict::Retry(later) => format!("retry: {}", later.failure),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_transform_asks_and_the_host_shows_the_credentials() {
    let server = Server::start(by_body).await;
    let transformer = transformer(granted(&server.url), deed("ask", "")).await;
    let absolute = format!("{}/two", server.url);
    let verdicts = ask(&transformer, &["api:/one?x=1", &absolute]).await;
    assert_eq!(verdicts.iter().map(text).collect::<Vec<_>>(), ["201 ok", "201 ok"]);
    let asked = server.asked();
    assert!(asked[0].starts_with("GET /results/one?x=1 HTTP/1.1"), "{}", asked[0]);
    assert!(asked[1].starts_with("GET /results/two HTTP/1.1"), "{}", asked[1]);
    for one in &asked {
        let head = one.to_ascii_lowercase();
        assert!(
            head.contains("authorization: bearer s3cret") && head.contains("accept: text/plain"),
            "{one}"
        );
    }
}

#[tokio::test]
async fn what_is_not_granted_is_denied_and_never_sent() {
    let server = Server::start(by_body).await;
    let granted = transformer(granted(&server.url), deed("ask", "")).await;
    let origin = server.url.trim_end_matches("/results");
    let elsewhere = format!("{origin}/other");
    let above = format!("{}/../other", server.url);
    for url in [elsewhere.as_str(), &above, "other:/x", "api:/../x", "http://127.0.0.1:1/results"] {
        let said = text(&ask(&granted, &[url]).await[0]);
        assert!(said.starts_with("quarantine: denied"), "{url}: {said}");
    }
    let nothing = transformer(Grants::default(), deed("ask", "")).await;
    for url in ["api:/one", server.url.as_str()] {
        let said = text(&ask(&nothing, &[url]).await[0]);
        assert!(said.starts_with("quarantine: denied"), "{url}: {said}");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn several_go_at_once_with_the_body_of_the_message() {
    let server = Server::start(by_body).await;
    let transformer = transformer(granted(&server.url), deed("ask-all", "")).await;
    let long = Bytes::from(vec![b'x'; 300 << 10]);
    let messages = vec![Bytes::from_static(b"busy"), long.clone()];
    let verdicts = transformer.transform(&bytes_batch(messages)).await.result.unwrap();
    assert_eq!(text(&verdicts[0]), "503,503,503");
    assert_eq!(text(&verdicts[1]), "201,201,201");
    let asked = server.asked();
    let bodies = asked.iter().map(|one| one.split_once("\n\n").unwrap().1.len());
    assert_eq!(bodies.collect::<Vec<_>>(), [4, 4, 4, long.len(), long.len(), long.len()]);
}

#[tokio::test]
async fn a_server_that_hangs_is_the_networks_fault_and_leaves_time_to_say_so() {
    let server = Server::start(|_| "hang").await;
    let limits = CallLimits { call_timeout: Duration::from_millis(700), ..CallLimits::default() };
    let transformer = transformer(granted(&server.url), deed_with("ask", "", limits)).await;
    let said = text(&ask(&transformer, &["api:/one"]).await[0]);
    assert_eq!(said, "retry: not-answered: no answer in time");
}

#[tokio::test]
async fn asking_is_paid_for() {
    let server = Server::start(by_body).await;
    let limits = CallLimits { fuel_per_message: 1_000_000, ..CallLimits::default() };
    let transformer = transformer(granted(&server.url), deed_with("ask-all", "", limits)).await;
    let cheap = transformer.transform(&batch(&["one"])).await;
    assert_eq!(text(&cheap.result.unwrap()[0]), "201,201,201");
    assert!(cheap.fuel > 90_000, "three requests cost {}", cheap.fuel);
    let long = bytes_batch(vec![Bytes::from(vec![b'x'; 1 << 20])]);
    let dear = fault(transformer.transform(&Batch { ordered: true, ..long }).await);
    assert_eq!(dear.kind, FaultKind::OutOfFuel);
}

#[derive(Debug, Default)]
struct Desk(Mutex<Vec<Asked>>);

impl HttpAnswers for Desk {
    fn answer(&self, asked: Asked) -> Result<HttpResponse, HttpError> {
        self.0.lock().unwrap().push(asked);
        Ok(HttpResponse { status: 200, headers: Vec::new(), body: "stated".into() })
    }
}

#[tokio::test]
async fn in_a_rehearsal_somebody_else_answers_and_nothing_leaves() {
    let server = Server::start(by_body).await;
    let desk = Arc::new(Desk::default());
    let mut grants = granted(&server.url);
    for grant in grants.0.values_mut() {
        if let Grant::Http(http) = grant {
            *grant = Grant::Rehearsed(http.clone(), desk.clone());
        }
    }
    let transformer = transformer(grants, deed("ask", "")).await;
    let verdicts = ask(&transformer, &["api:/one", "api://two"]).await;
    assert_eq!(text(&verdicts[0]), "200 stated");
    assert!(text(&verdicts[1]).starts_with("quarantine: denied"));
    let asked = desk.0.lock().unwrap();
    assert_eq!((asked.len(), asked[0].slot.as_str(), asked[0].path_or_url.as_str()), (1, "api", "/one"));
    assert!(server.asked().is_empty());
}
