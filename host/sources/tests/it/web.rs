//! The HTTP driver over real sockets: routed, authenticated, stored before answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use portway_engine::ports::Clock;
use portway_model::{Attributes, Cost, Draft, Failure, Later, MessageId, Timestamp};
use portway_net::listen::{ListenSettings, Listener};
use portway_sources::http::ports::{
    Answer, Answering, Decision, Endpoint, Request, RequestIntake, Respond, RespondError,
};
use portway_sources::http::{Auth, HttpDriver, HttpHandle, KeptRefusals, Methods, Route, RoutePath, Serves};
use portway_sources::ports::{Arrival, CodecError, Fate, Item, Receipt};
use portway_sources::{Budget, Counters};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::fakes::FakeIntake;
use crate::house::until;

/// Messages are the lines of a body; a line says what the source does.
#[derive(Clone, Default)]
struct Lines {
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Endpoint for Lines {
    async fn receive(&self, request: Request) -> Result<Decision, CodecError> {
        self.seen.lock().unwrap().push(request.clone());
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let answer = |status| Answer { status, body: "own words".into(), ..Answer::default() };
        match text.as_str() {
            "fault" => return Err(CodecError::Fault("wasm trap: secret details".into())),
            "refuse" => return Ok(Decision::Refuse(answer(422))),
            "challenge" => return Ok(Decision::Answer(answer(200))),
            _ => {}
        }
        let item = |line: &str| Item::Message {
            draft: Draft {
                body: Bytes::copy_from_slice(line.as_bytes()),
                key: None,
                dedupe: None,
                occurred_at: None,
                attributes: Attributes::default(),
                doubt: None,
            },
            ticket: Bytes::copy_from_slice(line.as_bytes()),
        };
        Ok(Decision::Accept {
            items: text.lines().map(item).collect(),
            ticket: "all".into(),
            cost: Cost::default(),
        })
    }

    async fn settle(&self, ticket: Bytes, receipts: Vec<Receipt>) -> Result<Answer, CodecError> {
        assert_eq!(ticket, "all");
        let told = receipts.iter().map(|Receipt { fate, ticket }| {
            let ticket = String::from_utf8_lossy(ticket);
            match fate {
                Fate::Stored { id: MessageId(id), .. } => format!("{ticket}={id}"),
                other => format!("{ticket}={other:?}"),
            }
        });
        let told: Vec<String> = told.collect();
        if told.iter().any(|told| told.starts_with("settle-fault")) {
            return Err(CodecError::Fault("wasm trap".into()));
        }
        let refused = receipts.iter().any(|receipt| matches!(receipt.fate, Fate::NotStored(_)));
        let headers = vec![("x-own".to_owned(), "yes".to_owned())];
        let status = if refused { 503 } else { 202 };
        Ok(Answer { status, headers, body: told.join(",").into() })
    }
}

/// Answers by the last part of the path.
struct Component;

impl Respond for Component {
    fn respond(&self, request: http::Request<Bytes>) -> Answering<'_> {
        let why = Failure::new("plugin-trap", "wasm trap: secret details");
        let outcome = match request.uri().path() {
            "/api/trap" => Err(RespondError::Failed(why)),
            "/api/slow" => Err(RespondError::TimedOut(why)),
            "/api/busy" => Err(RespondError::Busy(why)),
            _ => {
                let mut said = format!("{} {}\n", request.method(), request.uri());
                for (name, value) in request.headers() {
                    said.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
                }
                said.push_str(std::str::from_utf8(request.body()).unwrap());
                Ok(http::Response::builder().status(201).body(said.into()).unwrap())
            }
        };
        Box::pin(std::future::ready(outcome))
    }
}

/// As `FakeIntake`, for whole requests.
#[derive(Clone)]
struct Whole(FakeIntake);

impl RequestIntake for Whole {
    async fn submit(&self, arrival: Arrival, drafts: Vec<Draft>) -> Vec<Fate> {
        portway_sources::ports::Intake::submit(&self.0, arrival, drafts).await
    }
}

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

struct Web {
    address: std::net::SocketAddr,
    lines: Lines,
    intake: FakeIntake,
    handles: Vec<HttpHandle>,
    stop: Option<oneshot::Sender<()>>,
    driver: tokio::task::JoinHandle<()>,
}

impl Web {
    /// Three routes: `/orders` for everyone, `/lab/*` with a token, and a component below `/api`.
    fn start(frame_timeout: Duration) -> Web {
        let listen = ListenSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            connections_max: 10,
            idle_timeout: Duration::from_secs(20),
            frame_timeout,
            keepalive: None,
            allow: Vec::new(),
            tls: None,
        };
        let listener = Listener::bind(listen).unwrap();
        let (address, lines, intake) = (listener.local_addr(), Lines::default(), FakeIntake::new());
        let route = |path, auth| Route {
            path,
            methods: Methods::These(vec!["POST".into()]),
            auth,
            serves: Serves::Source { endpoint: lines.clone(), intake: Whole(intake.clone()) },
            counters: Counters::new(),
            body_bytes_max: 1_000,
            refusals: KeptRefusals::default(),
            traced: false,
        };
        let token = Auth::Bearer(vec!["t0ken".to_owned().into()]);
        let key = Auth::Header { name: "x-key".into(), values: vec!["k3y".to_owned().into()] };
        let routes = vec![
            route(RoutePath::Exact("/orders".into()), None),
            route(RoutePath::Below("/lab/".into()), Some(token)),
            Route {
                methods: Methods::Any,
                serves: Serves::Component(Arc::new(Component)),
                ..route(RoutePath::Below("/api/".into()), Some(key))
            },
        ];
        let shared = (Budget::new(1 << 20), Arc::new(StandingClock) as Arc<dyn Clock>);
        let (driver, handles) = HttpDriver::new(listener, routes, Duration::from_secs(20), shared);
        let (stop, stopped) = oneshot::channel();
        let driver = tokio::spawn(driver.run(async move {
            stopped.await.ok();
        }));
        Web { address, lines, intake, handles, stop: Some(stop), driver }
    }

    fn usual() -> Web {
        Web::start(Duration::from_secs(20))
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// One request on its own connection: status and body.
    async fn post(&self, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect().await;
        send(&mut stream, path, headers, body).await;
        let answer = read_answer(&mut stream).await;
        (answer.status, answer.body)
    }
}

async fn send(stream: &mut TcpStream, path: &str, headers: &str, body: &str) {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{headers}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

struct Read {
    status: u16,
    head: String,
    body: String,
}

async fn read_answer(stream: &mut TcpStream) -> Read {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = String::from_utf8(bytes[end + 4..end + 4 + length].to_vec()).unwrap();
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return Read { status, head, body };
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "closed: {bytes:?}");
    }
}

#[tokio::test]
async fn a_request_is_answered_when_its_messages_are_stored() {
    let web = Web::usual();
    web.intake.hold();
    let mut stream = web.connect().await;
    send(&mut stream, "/orders?x=1", "X-One: a\r\n", "one\ntwo").await;
    until("the submission", || web.intake.submissions() == 1).await;
    assert!(stream.try_read(&mut [0]).is_err(), "nothing is answered yet");
    web.intake.release();
    let answer = read_answer(&mut stream).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, "one=1,two=2"));
    assert!(answer.head.contains("x-own: yes"));
    // The connection stays.
    send(&mut stream, "/orders", "", "three").await;
    assert_eq!(read_answer(&mut stream).await.body, "three=3");
    let seen = web.lines.seen.lock().unwrap()[0].clone();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/orders?x=1"));
    assert!(seen.headers.contains(&("x-one".into(), "a".into())));
    assert_eq!(seen.peer.get("address"), Some("127.0.0.1"));
    let status = web.handles[0].status();
    assert_eq!((status.messages, status.stored, status.answered), (3, 3, 3));
    assert_eq!(web.handles[1].status().messages, 0);
}

#[tokio::test]
async fn requests_go_where_their_path_and_method_say() {
    let web = Web::usual();
    assert_eq!(web.post("/elsewhere", "", "x").await.0, 404);
    assert_eq!(web.post("/orders/", "", "x").await.0, 404);
    let mut stream = web.connect().await;
    stream.write_all(b"GET /orders HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert_eq!(answer.status, 405);
    assert!(answer.head.contains("allow: post"), "{}", answer.head);
    assert!(web.lines.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn who_may_not_send_is_refused_before_the_body_is_read() {
    let web = Web::usual();
    let mut stream = web.connect().await;
    // The body never comes.
    let head = b"POST /lab/a HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert_eq!(answer.status, 401);
    assert!(answer.head.contains("www-authenticate: bearer") && answer.body.contains("not-authenticated"));
    assert_eq!(web.post("/lab/a", "Authorization: Bearer wrong\r\n", "x").await.0, 401);
    let (status, body) = web.post("/lab/a", "Authorization: Bearer t0ken\r\n", "x").await;
    assert_eq!((status, body.as_str()), (202, "x=1"));
    let seen = web.lines.seen.lock().unwrap()[0].clone();
    assert!(seen.headers.iter().all(|(name, _)| name != "authorization"));
    let status = web.handles[1].status();
    assert_eq!(status.refused_by["not-authenticated"], 2);
    assert_eq!(web.handles[1].refusals().len(), 2);
}

#[tokio::test]
async fn a_body_has_its_limits() {
    let web = Web::start(Duration::from_millis(300));
    assert_eq!(web.post("/orders", "", &"x".repeat(1_001)).await.0, 413);
    assert_eq!(web.post("/orders", "Content-Encoding: gzip\r\n", "x").await.0, 415);
    // In chunks, where no length is known before.
    let mut stream = web.connect().await;
    let head = "POST /orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("258\r\n{}\r\n", "x".repeat(600));
    stream.write_all(format!("{head}{chunk}{chunk}0\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.status, 413);
    // One that does not end.
    let mut stream = web.connect().await;
    stream.write_all(b"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf").await.unwrap();
    assert_eq!(read_answer(&mut stream).await.status, 408);
    assert!(web.lines.seen.lock().unwrap().is_empty());
    let refused = web.handles[0].status().refused_by;
    assert_eq!((refused["too-large"], refused["frame-timeout"], refused["encoded"]), (2, 1, 1));
}

#[tokio::test]
async fn what_a_source_does_wrong_is_no_word_to_the_peer_and_slows_it() {
    let web = Web::usual();
    let (status, body) = web.post("/orders", "", "fault").await;
    assert_eq!(status, 500);
    assert!(!body.contains("secret details"), "{body}");
    let start = std::time::Instant::now();
    assert_eq!(web.post("/orders", "", "refuse").await, (422, "own words".into()));
    assert!(start.elapsed() > Duration::from_millis(100), "the address waits");
    assert_eq!(web.post("/orders", "", "challenge").await, (200, "own words".into()));
    let (status, _) = web.post("/orders", "", "settle-fault").await;
    assert_eq!(status, 500);
    let status = web.handles[0].status();
    assert_eq!((status.faults, status.stored, status.unanswered, status.control), (2, 1, 1, 1));
}

#[tokio::test]
async fn what_cannot_be_stored_is_for_the_source_to_say() {
    let web = Web::usual();
    web.intake.refuse_with(Some("full"));
    let (status, body) = web.post("/orders", "", "one").await;
    assert_eq!(status, 503);
    let later = Later { failure: Failure::new("full", ""), after_ms: None };
    assert!(body.starts_with("one=NotStored") && body.contains(&later.failure.code), "{body}");
    assert_eq!(web.handles[0].status().not_stored_by["full"], 1);
}

#[tokio::test]
async fn a_stop_lets_requests_in_hand_end() {
    let mut web = Web::usual();
    web.intake.hold();
    let mut stream = web.connect().await;
    send(&mut stream, "/orders", "", "one").await;
    until("the submission", || web.intake.submissions() == 1).await;
    web.stop.take().unwrap().send(()).unwrap();
    until("the end of listening", || {
        std::net::TcpStream::connect_timeout(&web.address, Duration::from_secs(1)).is_err()
    })
    .await;
    web.intake.release();
    let answer = read_answer(&mut stream).await;
    assert_eq!(answer.body, "one=1");
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
    web.driver.await.unwrap();
}

#[tokio::test]
async fn rubbish_ends_its_connection_alone() {
    let web = Web::usual();
    for rubbish in [&b"\x0bMSH|^~\\&|\x1c\r"[..], b"GET", &[0xFF; 70_000], b"POST /orders HTTP/9.9\r\n\r\n"] {
        let mut stream = web.connect().await;
        // The other side may have closed while this is written.
        let _ = stream.write_all(rubbish).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    assert_eq!(web.post("/orders", "", "one").await.0, 202);
}

#[tokio::test]
async fn connections_and_requests_are_counted_where_they_belong() {
    let web = Web::usual();
    for (path, headers, wanted) in
        [("/orders", "", 202), ("/orders", "", 202), ("/lab/x", "", 401), ("/nowhere", "", 404)]
    {
        assert_eq!(web.post(path, headers, "a\n").await.0, wanted, "{path}");
    }
    let (orders, lab) = (web.handles[0].status(), web.handles[1].status());
    assert_eq!(orders.requests_by, [("2xx".to_owned(), 2)].into());
    assert_eq!(lab.requests_by, [("4xx".to_owned(), 1)].into());
    // Those of the listener are seen at each of its interfaces.
    for status in [orders, lab] {
        assert_eq!(status.connections_total, 4);
        assert_eq!(status.connections_refused["unknown-path"], 1);
    }
}

#[tokio::test]
async fn a_component_hears_who_asks_from_the_host_alone() {
    let web = Web::usual();
    let shown =
        "X-Key: k3y\r\nPortway-Peer-Address: forged\r\nPortway-User: root\r\nContent-Encoding: gzip\r\n";
    let (status, said) = web.post("/api/a?b=c", shown, "the body").await;
    assert_eq!(status, 201);
    assert!(said.starts_with("POST /api/a?b=c\n") && said.ends_with("\nthe body"), "{said}");
    assert!(said.contains("portway-peer-address: 127.0.0.1\n"), "{said}");
    assert!(said.contains("content-encoding: gzip\n"), "{said}");
    for kept in ["forged", "root", "k3y"] {
        assert!(!said.contains(kept), "{kept}: {said}");
    }
    assert_eq!(web.post("/api/a", "", "x").await.0, 401);
    assert_eq!(web.post("/api/a", shown, &"x".repeat(1_001)).await.0, 413);
    let mut stream = web.connect().await;
    stream.write_all(b"PURGE /api HTTP/1.1\r\nHost: x\r\nX-Key: k3y\r\n\r\n").await.unwrap();
    assert!(read_answer(&mut stream).await.body.starts_with("PURGE /api\n"));
    assert_eq!(web.handles[2].status().requests_by, [("2xx".to_owned(), 2), ("4xx".to_owned(), 2)].into());
}

#[tokio::test]
async fn a_component_without_an_answer_is_told_in_the_hosts_words_and_slows_nobody() {
    let web = Web::usual();
    let start = std::time::Instant::now();
    for (path, wanted) in [("/api/trap", 502), ("/api/slow", 504), ("/api/busy", 503), ("/api/trap", 502)] {
        let (status, said) = web.post(path, "X-Key: k3y\r\n", "").await;
        assert_eq!(status, wanted, "{path}");
        assert!(said.contains("plugin-trap") && !said.contains("secret details"), "{said}");
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(web.handles[2].status().refused_by["plugin-trap"], 4);
    assert!(web.handles[2].refusals()[0].failure.text.contains("secret details"), "for the operator");
    assert_eq!(web.post("/orders", "", "one").await.0, 202);
}
