//! The HTTP client: what it keeps, what it refuses, and what it never does twice.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use portway_net::AddressPolicy;
use portway_net::http::{Connector, ConnectorSettings, Credentials, HttpError, HttpGrant, HttpRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use crate::peers::{Age, Pair, Server, read_request};

fn grant(server: &Server) -> HttpGrant {
    HttpGrant::new(Url::parse(&format!("http://{}/api", server.address)).unwrap())
}

fn post(path: &str) -> HttpRequest {
    HttpRequest {
        method: "POST".into(),
        path_or_url: path.into(),
        headers: vec![("content-type".into(), "text/plain".into())],
        body: Bytes::from_static(b"hello"),
        timeout: None,
    }
}

/// What a server was asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn add(&self, request: String) {
        self.0.lock().unwrap().push(request);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Answers every request of every connection with the same bytes.
async fn server(asked: &Asked, answer: &'static str) -> Server {
    let asked = asked.clone();
    Server::start(move |_, mut stream| {
        let asked = asked.clone();
        async move {
            while let Some(request) = read_request(&mut stream).await? {
                asked.add(request);
                stream.write_all(answer.as_bytes()).await?;
            }
            Ok(())
        }
    })
    .await
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Two: 1\r\nX-Two: 2\r\n\r\nfine\n";

#[tokio::test]
async fn a_request_arrives_as_it_was_asked_and_the_connection_is_kept() {
    let asked = Asked::default();
    let server = server(&asked, OK).await;
    let connector = Connector::default();
    let grant = HttpGrant { credentials: Some(Credentials::Bearer("s3cret".into())), ..grant(&server) };
    for _ in 0..3 {
        let response = connector.send(&grant, post("/results?x=1")).await.unwrap();
        assert_eq!((response.status, &response.body[..]), (200, &b"fine\n"[..]));
        assert_eq!(response.headers.iter().filter(|(name, _)| name == "x-two").count(), 2);
    }
    assert_eq!((server.accepted(), connector.idle_connections()), (1, 1));
    let request = asked.all().remove(0);
    assert!(request.starts_with("POST /api/results?x=1 HTTP/1.1\r\n"), "{request}");
    for line in ["authorization: Bearer s3cret", "content-length: 5", "content-type: text/plain"] {
        assert!(request.lines().any(|found| found == line), "{line} in {request}");
    }
    assert!(request.contains(&format!("host: {}\r\n", server.address)), "{request}");
    assert!(request.ends_with("\r\n\r\nhello"), "{request}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (asked, elsewhere_asked) = (Asked::default(), Asked::default());
    let elsewhere = server(&elsewhere_asked, OK).await;
    let location = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
        elsewhere.address
    );
    let server = server(&asked, location.leak()).await;
    let response = Connector::default().send(&grant(&server), post("/")).await.unwrap();
    assert_eq!(response.status, 307);
    assert_eq!((asked.all().len(), elsewhere.accepted()), (1, 0));
}

#[tokio::test]
async fn credentials_never_leave_the_granted_scheme_host_port_and_path() {
    let asked = Asked::default();
    let granted = server(&Asked::default(), OK).await;
    let other = server(&asked, OK).await;
    let grant = HttpGrant { credentials: Some(Credentials::Bearer("s3cret".into())), ..grant(&granted) };
    let connector = Connector::default();
    let (here, there) = (granted.address, other.address);
    for url in [
        format!("http://{there}/api/x"),
        format!("http://{here}@{there}/api/x"),
        format!("https://{here}/api/x"),
        format!("http://{here}/other"),
        format!("http://{here}/apix"),
        format!("http://{here}/api/../other"),
        format!("http://{here}/api/%2e%2e/other"),
        "/../other".into(),
        format!("//{there}/x"),
        format!("@{there}/x"),
    ] {
        let result = connector.send(&grant, post(&url)).await;
        assert!(matches!(result, Err(HttpError::Denied(_) | HttpError::Invalid(_))), "{url}: {result:?}");
    }
    assert_eq!((granted.accepted(), other.accepted()), (0, 0));
    let below = format!("http://{here}/api/x");
    assert_eq!(connector.send(&grant, post(&below)).await.unwrap().status, 200);
}

#[tokio::test]
async fn grants_with_other_credentials_share_no_connection() {
    let server = server(&Asked::default(), OK).await;
    let connector = Connector::default();
    for token in ["a", "b", "a"] {
        let grant = HttpGrant { credentials: Some(Credentials::Bearer(token.into())), ..grant(&server) };
        connector.send(&grant, post("/")).await.unwrap();
    }
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn addresses_outside_the_policy_are_denied_however_they_are_written() {
    let connector = Connector::default();
    for host in
        ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:169.254.169.254]", "0.0.0.0", "[fe80::1]"]
    {
        let grant = HttpGrant::new(Url::parse(&format!("http://{host}:1/")).unwrap());
        let result = connector.send(&grant, post("/")).await;
        assert!(matches!(result, Err(HttpError::Denied(_))), "{host}: {result:?}");
    }
    let server = server(&Asked::default(), OK).await;
    for host in ["localhost", "127.0.0.1", "127.1", "[::ffff:127.0.0.1]"] {
        let base = Url::parse(&format!("http://{host}:{}/", server.address.port())).unwrap();
        let grant = HttpGrant { addresses: AddressPolicy::Public, ..HttpGrant::new(base) };
        let result = connector.send(&grant, post("/")).await;
        assert!(matches!(result, Err(HttpError::Denied(_))), "{host}: {result:?}");
    }
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn an_answer_above_the_limit_is_cut_off() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n12345678901",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n5\r\n78901\r\n0\r\n\r\n",
    ] {
        let server = server(&Asked::default(), answer).await;
        let connector = Connector::default();
        let small = HttpGrant { response_bytes_max: 10, ..grant(&server) };
        assert_eq!(connector.send(&small, post("/")).await, Err(HttpError::TooLarge));
        assert_eq!(connector.idle_connections(), 0);
        let enough = HttpGrant { response_bytes_max: 11, ..grant(&server) };
        assert_eq!(connector.send(&enough, post("/")).await.unwrap().body.len(), 11);
    }
}

#[tokio::test]
async fn the_whole_request_has_one_deadline() {
    let silent =
        Server::start(|_, mut stream| async move { stream.read_to_end(&mut Vec::new()).await.map(drop) })
            .await;
    let dripping = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await?;
        let mut drips = tokio::time::interval(Duration::from_millis(5));
        loop {
            drips.tick().await;
            stream.write_all(b"x").await?;
        }
    })
    .await;
    for server in [silent, dripping] {
        let request = HttpRequest { timeout: Some(Duration::from_millis(100)), ..post("/") };
        assert_eq!(Connector::default().send(&grant(&server), request).await, Err(HttpError::Timeout));
        let grant = HttpGrant { timeout: Duration::from_millis(100), ..grant(&server) };
        let asks_for_more = HttpRequest { timeout: Some(Duration::from_secs(3600)), ..post("/") };
        assert_eq!(Connector::default().send(&grant, asks_for_more).await, Err(HttpError::Timeout));
    }
}

#[tokio::test]
async fn time_that_ends_before_the_request_began_is_no_time_out_of_an_answer() {
    // It takes connections and never speaks TLS.
    let silent =
        Server::start(|_, mut stream| async move { stream.read_to_end(&mut Vec::new()).await.map(drop) })
            .await;
    let base = Url::parse(&format!("https://localhost:{}/", silent.address.port())).unwrap();
    let request = HttpRequest { timeout: Some(Duration::from_millis(100)), ..post("/") };
    let error = Connector::default().send(&HttpGrant::new(base), request).await.unwrap_err();
    assert_eq!(error, HttpError::Unreachable("no connection to `localhost` in time".into()));
    assert!(!error.may_have_arrived());
}

#[tokio::test]
async fn a_connection_that_broke_while_idle_is_replaced_without_a_word() {
    let asked = Asked::default();
    let theirs = asked.clone();
    let closed = Arc::new(tokio::sync::Notify::new());
    let said = closed.clone();
    let server = Server::start(move |_, mut stream| {
        let (asked, said) = (theirs.clone(), said.clone());
        async move {
            // Keeps the connection by its word, then closes it all the same.
            if let Some(request) = read_request(&mut stream).await? {
                asked.add(request);
                stream.write_all(OK.as_bytes()).await?;
            }
            drop(stream);
            said.notify_one();
            Ok(())
        }
    })
    .await;
    let connector = Connector::default();
    for _ in 0..5 {
        assert_eq!(connector.send(&grant(&server), post("/")).await.unwrap().status, 200);
        closed.notified().await;
    }
    assert_eq!((asked.all().len(), server.accepted()), (5, 5));
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_not_sent_again() {
    let asked = Asked::default();
    let theirs = asked.clone();
    let server = Server::start(move |_, mut stream| {
        let asked = theirs.clone();
        async move {
            let mut answered = false;
            while let Some(request) = read_request(&mut stream).await? {
                asked.add(request);
                if answered {
                    return Err(io::ErrorKind::Other.into());
                }
                stream.write_all(OK.as_bytes()).await?;
                answered = true;
            }
            Ok(())
        }
    })
    .await;
    let connector = Connector::default();
    assert!(connector.send(&grant(&server), post("/1")).await.is_ok());
    let second = connector.send(&grant(&server), post("/2")).await;
    assert!(matches!(second, Err(HttpError::Broken(_))), "{second:?}");
    assert_eq!((asked.all().len(), server.accepted()), (2, 1));
}

#[tokio::test]
async fn half_an_answer_is_no_answer_and_noise_is_none_either() {
    for (answer, is_broken) in [
        ("", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true),
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", false),
    ] {
        let server = Server::start(move |_, mut stream: TcpStream| async move {
            read_request(&mut stream).await?;
            stream.write_all(answer.as_bytes()).await
        })
        .await;
        let result = Connector::default().send(&grant(&server), post("/")).await;
        match result {
            Err(HttpError::Broken(_)) => assert!(is_broken, "{answer:?}"),
            Err(HttpError::Other(_)) => assert!(!is_broken, "{answer:?}"),
            other => panic!("{answer:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_without_end_of_its_head_is_limited() {
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
        loop {
            stream.write_all(format!("x: {}\r\n", "y".repeat(8000)).as_bytes()).await?;
        }
    })
    .await;
    let result = Connector::default().send(&grant(&server), post("/")).await;
    assert!(matches!(result, Err(HttpError::Other(_) | HttpError::Broken(_))), "{result:?}");
}

#[tokio::test]
async fn a_grant_has_its_connections_and_others_wait_their_turn() {
    let server = server(&Asked::default(), OK).await;
    let settings = ConnectorSettings { connections_per_grant_max: 2, ..ConnectorSettings::default() };
    let connector = Connector::new(settings);
    let requests = (0..20).map(|_| {
        let (connector, grant) = (connector.clone(), grant(&server));
        async move { connector.send(&grant, post("/")).await.unwrap().status }
    });
    assert!(futures::future::join_all(requests).await.iter().all(|status| *status == 200));
    assert!(server.accepted() <= 2, "{}", server.accepted());
}

#[tokio::test]
async fn idle_connections_end_also_without_further_requests() {
    let server = server(&Asked::default(), OK).await;
    let settings =
        ConnectorSettings { idle_timeout: Duration::from_millis(30), ..ConnectorSettings::default() };
    let connector = Connector::new(settings);
    connector.send(&grant(&server), post("/")).await.unwrap();
    assert_eq!(connector.idle_connections(), 1);
    while connector.idle_connections() > 0 {
        tokio::task::yield_now().await;
    }
}

async fn tls_server(pair: Arc<Pair>) -> Server {
    Server::start(move |_, stream| {
        let pair = pair.clone();
        async move {
            let mut stream = pair.accept(stream).await?;
            while read_request(&mut stream).await?.is_some() {
                stream.write_all(OK.as_bytes()).await?;
                stream.flush().await?;
            }
            Ok(())
        }
    })
    .await
}

#[tokio::test]
async fn tls_trusts_the_given_roots_alone() {
    let pair = Arc::new(Pair::new("localhost", Age::Fresh));
    let server = tls_server(pair.clone()).await;
    let base = Url::parse(&format!("https://localhost:{}/", server.address.port())).unwrap();
    let good = HttpGrant { tls_roots: Some(pair.certificate()), ..HttpGrant::new(base.clone()) };
    let connector = Connector::default();
    for _ in 0..3 {
        assert_eq!(connector.send(&good, post("/")).await.unwrap().status, 200);
    }
    assert_eq!(server.accepted(), 1);

    let other = Pair::new("localhost", Age::Fresh);
    let wrong_name = Url::parse(&format!("https://127.0.0.1:{}/", server.address.port())).unwrap();
    let bad = [
        HttpGrant::new(base.clone()),
        HttpGrant { tls_roots: Some(other.certificate()), ..HttpGrant::new(base.clone()) },
        HttpGrant { base: wrong_name, ..good.clone() },
    ];
    for grant in bad {
        let result = connector.send(&grant, post("/")).await;
        assert!(matches!(result, Err(HttpError::Unreachable(_))), "{result:?}");
    }
    let nothing = HttpGrant { tls_roots: Some("/nowhere".into()), ..HttpGrant::new(base) };
    assert!(matches!(connector.send(&nothing, post("/")).await, Err(HttpError::Unreachable(_))));
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let pair = Arc::new(Pair::new("localhost", Age::Expired));
    let server = tls_server(pair.clone()).await;
    let base = Url::parse(&format!("https://localhost:{}/", server.address.port())).unwrap();
    let grant = HttpGrant { tls_roots: Some(pair.certificate()), ..HttpGrant::new(base) };
    let result = Connector::default().send(&grant, post("/")).await;
    assert!(matches!(result, Err(HttpError::Unreachable(text)) if text.contains("TLS")));
}
