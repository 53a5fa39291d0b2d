//! What every request passes: the Host and Origin checks, the token, a time-out, an id.
//!
//! The Host check is against DNS rebinding: a page in a browser can reach a loopback port under
//! its own name, but cannot make the browser send ours.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use portway_model::code;

use crate::error::ApiError;
use crate::{Token, web};

/// Time for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for a backup.
const BACKUP_TIMEOUT: Duration = Duration::from_secs(600);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the guard compares requests with.
#[derive(Debug)]
pub(crate) struct Guard {
    token: Token,
    /// What Host may be.
    hosts: Vec<String>,
    /// Tells this process's requests from another's in a log.
    prefix: u32,
    count: AtomicU64,
}

impl Guard {
    pub(crate) fn new(token: Token, address: SocketAddr) -> Self {
        Guard { token, hosts: hosts(address), prefix: rand::random(), count: AtomicU64::new(0) }
    }

    fn request_id(&self) -> String {
        format!("{:08x}-{}", self.prefix, self.count.fetch_add(1, Ordering::Relaxed))
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        self.check_host(request)?;
        self.check_origin(request.headers())?;
        match request.uri().path() {
            "/health" => Ok(()),
            // The page itself holds nothing; what it shows it asks for with the token.
            path if web::is_page(path) => Ok(()),
            _ => self.check_token(request.headers()),
        }
    }

    fn check_host(&self, request: &Request) -> Result<(), ApiError> {
        let given = only(request.headers(), header::HOST);
        // A request to a proxy names the host in its URI, too; both have to be ours.
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let ours = |host: &str| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        if given.is_some_and(ours) && authority.is_none_or(ours) {
            return Ok(());
        }
        let text = "the Host header does not name this engine's loopback address";
        Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, code::HOST_NOT_ALLOWED, text))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let origin = only(headers, header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        if origin.is_some_and(|host| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))) {
            return Ok(());
        }
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            code::ORIGIN_NOT_ALLOWED,
            "requests from other sites are not taken",
        ))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let given = only(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if given.is_some_and(|token| self.token.matches(token.as_bytes())) {
            return Ok(());
        }
        let text = "the control token is missing or wrong; it is in the engine's data folder";
        Err(ApiError::new(StatusCode::UNAUTHORIZED, code::TOKEN_WRONG, text))
    }
}

/// The names under which a loopback listener is reached.
fn hosts(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let numeric = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let mut hosts = Vec::new();
    for name in [numeric.as_str(), "localhost"] {
        hosts.push(format!("{name}:{port}"));
        if port == 80 {
            hosts.push(name.to_owned());
        }
    }
    hosts
}

/// The value of a header that is there exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

/// Runs around every handler.
pub(crate) async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let request_id = guard.request_id();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match guard.check(&request) {
        Ok(()) => run(request, next, &method, &path).await,
        Err(error) => error.into_response(),
    };
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        tracing::debug!(request_id, %method, path, status = error.status.as_u16(), code = error.code, "request refused");
        let body = Json(error.body(&request_id));
        response = (error.status, body).into_response();
        if error.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn run(request: Request, next: Next, method: &Method, path: &str) -> Response {
    let is_backup = method == Method::POST && path == "/api/v1/backup";
    let timeout = if is_backup { BACKUP_TIMEOUT } else { REQUEST_TIMEOUT };
    match tokio::time::timeout(timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let text = format!("no answer within {} s", timeout.as_secs());
            ApiError::new(StatusCode::GATEWAY_TIMEOUT, code::TIMED_OUT, text).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)]) -> Result<(), &'static str> {
        let token: Token = serde_json::from_str(&format!("\"{}\"", "t".repeat(64))).unwrap();
        let guard = Guard::new(token, ([127, 0, 0, 1], 8620).into());
        let mut request = http::Request::get("/metrics");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        guard.check(&request.body(axum::body::Body::empty()).unwrap()).map_err(|error| error.code)
    }

    #[test]
    fn a_request_needs_our_host_our_origin_and_the_token() {
        let token = format!("Bearer {}", "t".repeat(64));
        let host = ("host", "127.0.0.1:8620");
        let bearer = ("authorization", token.as_str());
        assert_eq!(check(&[host, bearer]), Ok(()));
        assert_eq!(check(&[("host", "LOCALHOST:8620"), bearer]), Ok(()));
        assert_eq!(check(&[host, bearer, ("origin", "http://localhost:8620")]), Ok(()));
        for host in
            ["evil.example:8620", "127.0.0.1", "127.0.0.1:1", "[::1]:8620", "localhost.evil.example:8620"]
        {
            assert_eq!(check(&[("host", host), bearer]), Err("host-not-allowed"), "{host}");
        }
        assert_eq!(check(&[bearer]), Err("host-not-allowed"));
        assert_eq!(check(&[host, host, bearer]), Err("host-not-allowed"));
        for origin in ["http://evil.example", "null", "https://localhost:8620"] {
            assert_eq!(check(&[host, bearer, ("origin", origin)]), Err("origin-not-allowed"), "{origin}");
        }
        assert_eq!(check(&[host]), Err("token-wrong"));
        assert_eq!(check(&[host, ("authorization", "Bearer t")]), Err("token-wrong"));
        assert_eq!(check(&[host, bearer, bearer]), Err("token-wrong"));
    }
}
