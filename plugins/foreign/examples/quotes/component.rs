//! Says what a parcel costs: `GET /quote?grams=500`.

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};

struct Quotes;

wasip2::http::proxy::export!(Quotes);

impl Guest for Quotes {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let target = request.path_with_query().unwrap_or_default();
        let (status, text) = match target.split_once("?grams=").map(|(_, grams)| grams.parse::<u32>()) {
            Some(Ok(grams)) => (200, quote(grams)),
            _ => (400, "ask for such as `?grams=500`\n".to_owned()),
        };
        answer(out, status, &text);
    }
}

/// Settings of the interface are variables of the environment.
fn quote(grams: u32) -> String {
    let base = std::env::var("BASE_CENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(300_u32);
    format!("{} cents\n", base.saturating_add(grams / 10))
}

fn answer(out: ResponseOutparam, status: u16, text: &str) {
    let response = OutgoingResponse::new(Fields::new());
    let body = response.set_status_code(status).and_then(|()| response.body());
    let Ok(body) = body else {
        return ResponseOutparam::set(out, Err(ErrorCode::InternalError(None)));
    };
    ResponseOutparam::set(out, Ok(response));
    if let Ok(stream) = body.write() {
        // Whoever asked may be gone.
        let _ = stream.blocking_write_and_flush(text.as_bytes());
    }
    let _ = OutgoingBody::finish(body, None);
}
