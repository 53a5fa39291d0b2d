//! Messages over HTTP: the body of each POST or PUT is one.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::receive::{BODY_BYTES_MAX, Desk, Reply};

/// One connection until it ends.
pub(super) async fn serve(stream: TcpStream, desk: Arc<Desk>) {
    let service = service_fn(|request| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(answer(request, &desk).await) }
    });
    // A sender that goes away in the middle is its own affair.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, desk: &Desk) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::POST | Method::PUT) {
        return respond(405, "messages are sent with POST or PUT");
    }
    let Ok(body) = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await else {
        return respond(413, "the body is too large, or it ended early");
    };
    match desk.take(&body.to_bytes()).await {
        Reply::Taken => {
            let status = desk.behaviour().status.unwrap_or(200);
            respond(status, "taken")
        }
        Reply::Failed(status) => respond(status, "failed on purpose"),
        Reply::Never => std::future::pending().await,
    }
}

fn respond(status: u16, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
