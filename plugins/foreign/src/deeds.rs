//! What the component does beside answering, well or badly.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingRequest, Method, OutgoingBody, OutgoingRequest, Scheme,
};

/// Bytes of one read or write.
const CHUNK_BYTES: u64 = 4_096;
const A_MINUTE_NS: u64 = 60_000_000_000;

/// Never returns.
pub fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Takes memory until there is none.
pub fn memory() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Waits for nothing, longer than anybody has time.
pub fn sleep() {
    monotonic_clock::subscribe_duration(A_MINUTE_NS).block();
}

/// Has the host keep more for it than it may.
pub fn hoard() {
    let hoard: Vec<Fields> = (0..100_000).map(|_| Fields::new()).collect();
    black_box(&hoard);
}

/// The environment, a variable a line.
pub fn environment() -> Vec<u8> {
    let mut variables: Vec<(String, String)> = std::env::vars().collect();
    variables.sort();
    variables.into_iter().map(|(name, value)| format!("{name}={value}\n")).collect::<String>().into_bytes()
}

/// How many requests this instance has had.
pub fn count() -> Vec<u8> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    (COUNT.fetch_add(1, Ordering::Relaxed) + 1).to_string().into_bytes()
}

/// The request as it was seen.
pub fn echo(request: &IncomingRequest) -> Vec<u8> {
    let mut text = String::new();
    let (scheme, authority) = (request.scheme(), request.authority());
    let _ = writeln!(text, "{:?} {scheme:?} {authority:?}", request.method());
    for (name, value) in request.headers().entries() {
        let _ = writeln!(text, "{name}: {}", String::from_utf8_lossy(&value));
    }
    let mut bytes = text.into_bytes();
    bytes.extend(read(request.consume().unwrap()));
    bytes
}

fn read(body: IncomingBody) -> Vec<u8> {
    let stream = body.stream().unwrap();
    let mut bytes = Vec::new();
    while let Ok(chunk) = stream.blocking_read(CHUNK_BYTES) {
        bytes.extend(chunk);
    }
    bytes
}

/// Asks what the query names, with the body of the request where it has one.
pub fn ask(request: &IncomingRequest, url: &str) -> Vec<u8> {
    let body = read(request.consume().unwrap());
    match fetch(url, &body) {
        Ok((status, body)) => [format!("{status} ").into_bytes(), body].concat(),
        Err(error) => format!("{error:?}").into_bytes(),
    }
}

fn fetch(url: &str, body: &[u8]) -> Result<(u16, Vec<u8>), ErrorCode> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let request = OutgoingRequest::new(Fields::new());
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).unwrap();
    request.set_authority(Some(authority)).unwrap();
    request.set_path_with_query(Some(path)).unwrap();
    if !body.is_empty() {
        request.set_method(&Method::Post).unwrap();
    }
    let outgoing = request.body().unwrap();
    let answer = outgoing_handler::handle(request, None)?;
    {
        let stream = outgoing.write().unwrap();
        for chunk in body.chunks(CHUNK_BYTES as usize) {
            // The host may have refused it already; its answer says so.
            if stream.blocking_write_and_flush(chunk).is_err() {
                break;
            }
        }
    }
    OutgoingBody::finish(outgoing, None)?;
    answer.subscribe().block();
    let response = answer.get().unwrap().unwrap()?;
    Ok((response.status(), read(response.consume().unwrap())))
}
