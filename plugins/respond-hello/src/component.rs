//! The glue: a request in, an answer out.

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingRequest, Method, OutgoingBody, OutgoingResponse, ResponseOutparam,
};

use crate::{GREETING, answer};

/// Bytes of one write that waits until it is taken.
const WRITE_BYTES_MAX: usize = 4_096;

struct Hello;

wasip2::http::proxy::export!(Hello);

impl Guest for Hello {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let greeting = std::env::var("GREETING").unwrap_or_else(|_| GREETING.to_owned());
        let path = request.path_with_query().unwrap_or_default();
        let body = answer(&greeting, &method(&request.method()), &path);
        match respond(&body) {
            Ok((response, rest)) => {
                ResponseOutparam::set(out, Ok(response));
                // Whoever asked may be gone: nobody is left to be told.
                let _ = write(rest, &body);
            }
            Err(error) => ResponseOutparam::set(out, Err(error)),
        }
    }
}

fn respond(body: &str) -> Result<(OutgoingResponse, OutgoingBody), ErrorCode> {
    let failed = |what: &str| ErrorCode::InternalError(Some(what.to_owned()));
    let headers = Fields::new();
    let json = [b"application/json".to_vec()];
    headers.set("content-type", &json).map_err(|_| failed("a header was not taken"))?;
    let length = [body.len().to_string().into_bytes()];
    headers.set("content-length", &length).map_err(|_| failed("a header was not taken"))?;
    let response = OutgoingResponse::new(headers);
    let rest = response.body().map_err(|()| failed("there is no body"))?;
    Ok((response, rest))
}

fn write(rest: OutgoingBody, body: &str) -> Result<(), ErrorCode> {
    if let Ok(stream) = rest.write() {
        for chunk in body.as_bytes().chunks(WRITE_BYTES_MAX) {
            if stream.blocking_write_and_flush(chunk).is_err() {
                break;
            }
        }
    }
    OutgoingBody::finish(rest, None)
}

fn method(method: &Method) -> String {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Connect => "CONNECT",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Patch => "PATCH",
        Method::Other(name) => name,
    }
    .to_owned()
}
