//! HTTP to granted APIs. The host makes the request: it attaches the credentials, which
//! a plugin never sees, and follows no redirect.
//!
//! A URL is `slot:/path?query` for the API that is granted to a slot, or an absolute URL of
//! a granted host. Waiting for an answer is not charged for; it ends in time for the plugin
//! to say what follows.

use crate::host;
pub use crate::http_sender::{HttpError as Error, Request, RequestContent as Content, Response};

/// One request, and its answer. A status such as 404 or 500 is an answer.
pub fn send(request: Request) -> Result<Response, Error> {
    host::http_send(request)
}

/// Several requests at once, at most 256; answers in the order of the requests.
pub fn send_all(requests: Vec<Request>) -> Vec<Result<Response, Error>> {
    host::http_send_all(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Event};

    #[test]
    fn what_is_granted_answers_in_order_and_all_else_is_denied() {
        testing::reset();
        testing::api("people", Ok(Response::new(200, "one")));
        testing::api("people", Err(Error::Unreachable("away".into())));
        let answer = send(Request::get("people:/1").with_header("accept", "text/plain")).unwrap();
        assert_eq!((answer.status, answer.body.text().unwrap().as_ref()), (200, "one"));
        let both = send_all(vec![Request::post("people:/2", "{}"), Request::get("other:/")]);
        assert_eq!(both[0].as_ref().unwrap_err(), &Error::Unreachable("away".into()));
        assert!(matches!(both[1], Err(Error::Denied(_))));
        assert_eq!(send(Request::get("people:/3")).unwrap_err(), Error::Timeout, "it stays silent");
        let ask = |method: &str, url: &str, headers: &[(&str, &str)], body: &str| Event::Ask {
            method: method.into(),
            url: url.into(),
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: Some(body.into()),
        };
        assert_eq!(
            testing::events(),
            [
                ask("GET", "people:/1", &[("accept", "text/plain")], ""),
                ask("POST", "people:/2", &[], "{}"),
                ask("GET", "people:/3", &[], ""),
            ]
        );
    }
}
