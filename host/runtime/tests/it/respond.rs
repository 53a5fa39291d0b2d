//! Components that answer requests themselves: one made for any host of `wasi:http`, well and badly.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use portway_runtime::{
    CallLimits, Fault, FaultKind, Grants, Isolation, Opening, PluginKind, RespondError, Responder, Scheme,
};

use crate::server::{Server, granted};
use crate::support::{component, heard, plugin, runtime, with_manifest};

const ANSWER_BYTES_MAX: usize = 64 << 10;

async fn responder_with(opening: Opening) -> Responder {
    plugin("plugins-test", "foreign-respond").await.responder(opening, ANSWER_BYTES_MAX).unwrap()
}

fn opening() -> Opening {
    let limits = CallLimits {
        fuel_per_message: 200_000_000,
        call_timeout: Duration::from_secs(20),
        memory_bytes: 16 << 20,
        ..CallLimits::default()
    };
    Opening { limits, isolation: Isolation::Call, ..Opening::new("web", "", "{}") }
}

async fn responder() -> Responder {
    responder_with(opening()).await
}

fn request(target: &str, body: &'static str) -> Request<Bytes> {
    let request = Request::builder().method("POST").uri(target).header("host", "lab.example");
    request.header("x-one", "a").body(Bytes::from_static(body.as_bytes())).unwrap()
}

async fn respond(responder: &Responder, target: &str) -> Result<Response<Bytes>, RespondError> {
    responder.respond(Scheme::Http, request(target, "the body")).await
}

async fn text(responder: &Responder, target: &str) -> String {
    let answer = respond(responder, target).await.unwrap();
    String::from_utf8(answer.into_body().to_vec()).unwrap()
}

async fn fault_of(responder: &Responder, target: &str) -> Fault {
    match respond(responder, target).await {
        Err(RespondError::Fault(fault)) => *fault,
        other => panic!("{target}: no fault: {other:?}"),
    }
}

#[tokio::test]
async fn a_component_made_for_any_host_runs_unchanged() {
    let plugin = plugin("plugins-test", "foreign-respond").await;
    assert_eq!(plugin.kind(), PluginKind::Respond);
    assert!(plugin.manifest().is_assumed);
    let responder = responder().await;
    responder.check().await.unwrap();
    let answer = respond(&responder, "/").await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["x-foreign"].as_bytes()), (200, &b"yes"[..]));
    assert_eq!(answer.body(), "hello from afar");
    assert_eq!(respond(&responder, "/teapot").await.unwrap().status().as_u16(), 418);
    let echo = text(&responder, "/echo?x=1").await;
    assert!(echo.starts_with("Method::Post Some(Scheme::Http) Some(\"lab.example\")\n"), "{echo}");
    assert!(echo.contains("x-one: a\n") && echo.ends_with("\nthe body"), "{echo}");
}

#[tokio::test]
async fn a_component_with_a_manifest_is_no_other() {
    let hello = plugin("plugins", "respond-hello").await;
    assert!(!hello.manifest().is_assumed);
    let opening = Opening { isolation: Isolation::Call, ..Opening::new("web", "", r#"{"GREETING": "hi"}"#) };
    let responder = hello.responder(opening, ANSWER_BYTES_MAX).unwrap();
    let answer = respond(&responder, "/ward/3").await.unwrap();
    assert_eq!(answer.headers()["content-type"].as_bytes(), b"application/json");
    assert_eq!(answer.body(), r#"{"greeting":"hi","method":"POST","path":"/ward/3"}"#);
    let bare = with_manifest(component("plugins", "respond-hello"), "");
    let bare = runtime().load("bare", &bare).await.unwrap();
    assert!(bare.manifest().is_assumed);
}

#[tokio::test]
async fn its_settings_are_its_environment() {
    let settings = r#"{"GREETING": "hi there", "COUNT": 3}"#;
    let responder = responder_with(Opening { settings: settings.into(), ..opening() }).await;
    assert_eq!(text(&responder, "/env").await, "COUNT=3\nGREETING=hi there\n");
    let refused = responder_with(Opening { settings: r#"{"A=B": 1}"#.into(), ..opening() }).await;
    assert!(refused.check().await.is_err());
    assert!(matches!(respond(&refused, "/env").await, Err(RespondError::Refused(_))));
}

#[tokio::test]
async fn each_request_has_a_fresh_instance_unless_they_are_shared() {
    let fresh = responder().await;
    assert_eq!((text(&fresh, "/count").await, text(&fresh, "/count").await), ("1".into(), "1".into()));
    let shared = responder_with(Opening { isolation: Isolation::Shared, ..opening() }).await;
    assert_eq!((text(&shared, "/count").await, text(&shared, "/count").await), ("1".into(), "2".into()));
    // After a fault the instance is gone.
    fault_of(&shared, "/trap").await;
    assert_eq!(text(&shared, "/count").await, "1");
}

#[tokio::test]
async fn what_it_does_wrong_costs_its_own_request() {
    let (heard, opening) = heard(opening());
    let responder = responder_with(opening).await;
    let deeds = [
        ("/trap", FaultKind::Trap, "this request is poison to me"),
        ("/late-trap", FaultKind::Trap, "too late to be sorry"),
        ("/spin", FaultKind::OutOfFuel, ""),
        ("/memory", FaultKind::OutOfMemory, ""),
        ("/hoard", FaultKind::Trap, ""),
        ("/silent", FaultKind::Lie, "without an answer"),
        ("/half", FaultKind::Lie, "broke off"),
        ("/big", FaultKind::Lie, "more than 65536 bytes"),
    ];
    for (target, kind, says) in deeds {
        let fault = fault_of(&responder, target).await;
        assert_eq!(fault.kind, kind, "{target}: {fault}");
        assert!(fault.text.contains(says), "{target}: {fault}");
        assert_eq!(text(&responder, "/").await, "hello from afar", "after {target}");
    }
    let faults = heard.lines().iter().filter(|line| line.starts_with("fault")).count();
    assert_eq!(faults, deeds.len(), "{:?}", heard.lines());
    let refused = respond(&responder, "/error").await;
    assert!(matches!(&refused, Err(RespondError::Refused(why)) if why.text.contains("ConfigurationError")));
}

#[tokio::test]
async fn one_that_sleeps_is_woken_by_the_end_of_its_time() {
    let limits = CallLimits { call_timeout: Duration::from_millis(300), ..opening().limits };
    let responder = responder_with(Opening { limits, ..opening() }).await;
    let fault = fault_of(&responder, "/sleep").await;
    assert_eq!(fault.kind, FaultKind::TimedOut { in_service: false });
}

#[tokio::test]
async fn a_long_answer_and_a_long_request_pass_in_pieces() {
    let plugin = plugin("plugins-test", "foreign-respond").await;
    let responder = plugin.responder(opening(), 8 << 20).unwrap();
    let body = Bytes::from(vec![b'x'; 3 << 20]);
    let request = Request::builder().method("POST").uri("/echo").body(body.clone()).unwrap();
    let answer = responder.respond(Scheme::Https, request).await.unwrap();
    assert!(answer.body().starts_with(b"Method::Post Some(Scheme::Https) Some(\"localhost\")\n"));
    assert!(answer.body().ends_with(&body));
}

#[tokio::test]
async fn it_reaches_what_is_granted_and_nothing_else() {
    let server = Server::start(|body| if body == "busy" { "503 Busy" } else { "200 OK" }).await;
    let responder = responder_with(Opening { grants: granted(&server.url), ..opening() }).await;
    let asked = |path: &str| format!("/ask?{}{path}", server.url);
    assert_eq!(text(&responder, &asked("/one")).await, "200 ok");
    let origin = server.url.trim_end_matches("/results");
    for denied in [format!("/ask?{origin}/other"), asked("/../other"), "/ask?http://127.0.0.1:1/".into()] {
        assert_eq!(text(&responder, &denied).await, "ErrorCode::HttpRequestDenied", "{denied}");
    }
    let nothing = responder_with(Opening { grants: Grants::default(), ..opening() }).await;
    assert_eq!(text(&nothing, &asked("/one")).await, "ErrorCode::HttpRequestDenied");
    let seen = server.asked();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].starts_with("POST /results/one HTTP/1.1"), "{}", seen[0]);
    assert!(seen[0].to_ascii_lowercase().contains("authorization: bearer s3cret"), "{}", seen[0]);
    assert!(seen[0].ends_with("the body"), "{}", seen[0]);
}

#[tokio::test]
async fn a_peer_of_it_that_hangs_leaves_it_time_to_answer() {
    let server = Server::start(|_| "hang").await;
    let limits = CallLimits { call_timeout: Duration::from_millis(600), ..opening().limits };
    let opening = Opening { limits, grants: granted(&server.url), ..opening() };
    let responder = responder_with(opening).await;
    let said = text(&responder, &format!("/ask?{}/one", server.url)).await;
    assert_eq!(said, "ErrorCode::HttpResponseTimeout");
}
