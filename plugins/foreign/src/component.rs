//! Requests by their paths.

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};
use wasip2::io::streams::StreamError;

use crate::deeds;

/// Bytes of one write that waits until it is taken.
const WRITE_BYTES_MAX: usize = 4_096;

struct Foreign;

wasip2::http::proxy::export!(Foreign);

impl Guest for Foreign {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let target = request.path_with_query().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        match path {
            "/trap" => panic!("this request is poison to me"),
            "/spin" => deeds::spin(),
            "/memory" => deeds::memory(),
            "/sleep" => deeds::sleep(),
            "/hoard" => deeds::hoard(),
            "/silent" => {}
            "/error" => ResponseOutparam::set(out, Err(ErrorCode::ConfigurationError)),
            "/half" => half(out),
            "/late-trap" => late_trap(out),
            "/big" => big(out),
            "/env" => say(out, 200, &deeds::environment()),
            "/count" => say(out, 200, &deeds::count()),
            "/echo" => say(out, 200, &deeds::echo(&request)),
            "/ask" => say(out, 200, &deeds::ask(&request, query)),
            "/teapot" => say(out, 418, b"short and stout"),
            _ => say(out, 200, b"hello from afar"),
        }
    }
}

/// A good answer.
fn say(out: ResponseOutparam, status: u16, body: &[u8]) {
    let (response, rest) = begin(&[("x-foreign", "yes")]);
    response.set_status_code(status).unwrap();
    ResponseOutparam::set(out, Ok(response));
    write(&rest, body).unwrap();
    OutgoingBody::finish(rest, None).unwrap();
}

fn begin(headers: &[(&str, &str)]) -> (OutgoingResponse, OutgoingBody) {
    let fields = Fields::new();
    for (name, value) in headers {
        fields.append(name, value.as_bytes()).unwrap();
    }
    let response = OutgoingResponse::new(fields);
    let rest = response.body().unwrap();
    (response, rest)
}

fn write(rest: &OutgoingBody, body: &[u8]) -> Result<(), StreamError> {
    let stream = rest.write().unwrap();
    body.chunks(WRITE_BYTES_MAX).try_for_each(|chunk| stream.blocking_write_and_flush(chunk))
}

/// Promises more than it gives.
fn half(out: ResponseOutparam) {
    let (response, rest) = begin(&[("content-length", "10")]);
    ResponseOutparam::set(out, Ok(response));
    write(&rest, b"half").unwrap();
}

/// Has begun to answer when it fails.
fn late_trap(out: ResponseOutparam) {
    let (response, rest) = begin(&[]);
    ResponseOutparam::set(out, Ok(response));
    write(&rest, b"good so far").unwrap();
    panic!("too late to be sorry");
}

/// Never stops talking.
fn big(out: ResponseOutparam) {
    let (response, rest) = begin(&[]);
    ResponseOutparam::set(out, Ok(response));
    let stream = rest.write().unwrap();
    while stream.blocking_write_and_flush(&[b'x'; WRITE_BYTES_MAX]).is_ok() {}
}
