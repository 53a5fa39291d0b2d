//! The stream of changes over a real socket.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::Api;

/// One subscriber.
struct Listening {
    lines: tokio::io::Lines<BufReader<TcpStream>>,
}

impl Listening {
    async fn to(api: &Api) -> Listening {
        let mut stream = TcpStream::connect(api.address()).await.unwrap();
        let token = api.file.token.reveal();
        let request = format!(
            "GET /api/v1/stream HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\r\n",
            api.address()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Listening { lines: BufReader::new(stream).lines() }
    }

    /// The status line of the answer.
    async fn status(&mut self) -> String {
        self.lines.next_line().await.unwrap().unwrap()
    }

    /// The next event; none: the stream is over.
    async fn event(&mut self) -> Option<(String, Value)> {
        let mut kind = String::new();
        while let Some(line) = self.lines.next_line().await.ok()? {
            if let Some(name) = line.strip_prefix("event: ") {
                kind = name.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((kind, serde_json::from_str(data).unwrap()));
            }
        }
        None
    }
}

#[tokio::test]
async fn a_subscriber_hears_everything_and_then_what_changes() {
    let api = Api::start().await;
    let mut heard = Listening::to(&api).await;
    assert_eq!(heard.status().await, "HTTP/1.1 200 OK");
    let (kind, engine) = heard.event().await.unwrap();
    assert_eq!((kind.as_str(), engine["intake"]["stored"].as_u64()), ("engine", Some(14)));
    assert!(engine["uptime_s"].is_null(), "what changes without an event is not told");
    for name in ["lab", "inbox"] {
        let (kind, interface) = heard.event().await.unwrap();
        assert_eq!((kind.as_str(), interface["name"].as_str()), ("interface", Some(name)));
    }
    *api.engine.more_stored.lock().unwrap() = 2;
    let (kind, engine) = heard.event().await.unwrap();
    assert_eq!((kind.as_str(), engine["intake"]["stored"].as_u64()), ("engine", Some(16)));
    *api.engine.is_away.lock().unwrap() = true;
    let (kind, trouble) = heard.event().await.unwrap();
    assert_eq!((kind.as_str(), trouble["code"].as_str()), ("trouble", Some("store")));
    *api.engine.is_away.lock().unwrap() = false;
    // As the sign that it is over.
    assert_eq!(heard.event().await.unwrap().0, "engine");
    api.stop().await;
}

#[tokio::test]
async fn many_subscribers_cost_one_look_and_too_many_are_refused() {
    let api = Api::start_with(64).await;
    let mut all = Vec::new();
    for _ in 0..16 {
        let mut heard = Listening::to(&api).await;
        assert_eq!(heard.status().await, "HTTP/1.1 200 OK");
        assert_eq!(heard.event().await.unwrap().0, "engine");
        all.push(heard);
    }
    let began = std::time::Instant::now();
    let looks = *api.engine.looks.lock().unwrap();
    let mut one_more = Listening::to(&api).await;
    assert_eq!(one_more.status().await, "HTTP/1.1 503 Service Unavailable");
    *api.engine.more_stored.lock().unwrap() = 1;
    for heard in &mut all {
        while heard.event().await.unwrap().1["intake"]["stored"] != 15 {}
    }
    // One look a second, however many hear of it.
    let allowed = looks + 2 + began.elapsed().as_secs();
    assert!(*api.engine.looks.lock().unwrap() <= allowed);
    // Who leaves makes room.
    all.clear();
    loop {
        let mut heard = Listening::to(&api).await;
        if heard.status().await == "HTTP/1.1 200 OK" {
            break;
        }
    }
    api.stop().await;
}

#[tokio::test]
async fn streams_end_in_order_when_the_api_stops() {
    let api = Api::start().await;
    let mut heard = Listening::to(&api).await;
    while heard.event().await.unwrap().0 != "interface" {}
    let Api { stop, task, .. } = api;
    let began = std::time::Instant::now();
    stop.send(()).unwrap();
    let rest = async { while heard.event().await.is_some() {} };
    let ((), ended) = tokio::join!(rest, task);
    ended.unwrap();
    assert!(began.elapsed().as_secs() < 2, "it was cut off, not ended");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_has_a_heartbeat_and_an_end() {
    let api = Api::start().await;
    let mut heard = Listening::to(&api).await;
    let began = tokio::time::Instant::now();
    let (mut beats, mut last) = (0, String::new());
    while last != "0" {
        last = heard.lines.next_line().await.unwrap().expect("an end in order, by the empty chunk");
        beats += u32::from(last == ": heartbeat");
    }
    assert!(began.elapsed().as_secs() >= 590, "it ended after {:?}", began.elapsed());
    assert!((35..=45).contains(&beats), "{beats} heartbeats");
    api.stop().await;
}
