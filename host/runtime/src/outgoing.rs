//! HTTP requests of guests: under which grant one goes, what it asks, and what came of it.
//!
//! All leave through the one connector of `net`, which checks them against their grant; in a
//! rehearsal they are answered in place, and nothing leaves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_bindings::portway::host::http as wit;
use portway_net::http::{Connector, HttpError, HttpGrant, HttpRequest, HttpResponse};
use tokio::time::Instant as Moment;
use url::Url;

use crate::convert::{Lie, body_in, body_within, small_number_in};
use crate::guest::Guest;
use crate::reach::Reach;
use crate::things::Things;

/// The header of W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// A request that a plugin would have the host make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The slot whose grant it goes under.
    pub slot: String,
    pub method: String,
    /// A path below the grant's URL, or an absolute URL.
    pub path_or_url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Answers requests in place of the network.
pub trait HttpAnswers: fmt::Debug + Send + Sync + 'static {
    /// What a request that its grant lets through is answered.
    fn answer(&self, asked: Asked) -> Result<HttpResponse, HttpError>;
}

/// A granted API.
pub(crate) struct Api {
    pub grant: HttpGrant,
    /// None: the network answers.
    pub answers: Option<Arc<dyn HttpAnswers>>,
}

/// A request and the slot whose grant it goes under.
pub(crate) struct Outgoing {
    pub slot: String,
    pub request: HttpRequest,
}

impl Outgoing {
    pub fn into_asked(self) -> Asked {
        let HttpRequest { method, path_or_url, headers, body, timeout: _ } = self.request;
        Asked { slot: self.slot, method, path_or_url, headers, body }
    }
}

impl Api {
    async fn send(&self, connector: &Connector, outgoing: Outgoing) -> Result<HttpResponse, HttpError> {
        let Some(answers) = &self.answers else {
            return connector.send(&self.grant, outgoing.request).await;
        };
        self.grant.check_request(&outgoing.request)?;
        answers.answer(outgoing.into_asked())
    }
}

impl Reach {
    /// Says which trace a request belongs to, unless the plugin or the grant does.
    pub fn trace(&self, outgoing: &mut Outgoing, parent: &str) {
        let of_grant = self.http.get(&outgoing.slot).into_iter().flat_map(|api| &api.grant.headers);
        let headers = &mut outgoing.request.headers;
        let mut names = of_grant.chain(headers.iter()).map(|(name, _)| name);
        if !names.any(|name| name.eq_ignore_ascii_case(TRACEPARENT)) {
            headers.push((TRACEPARENT.to_owned(), parent.to_owned()));
        }
    }

    /// Makes a request under its grant, and gives it up at the deadline at the latest.
    pub async fn ask(&self, mut outgoing: Outgoing, deadline: Moment) -> Result<HttpResponse, HttpError> {
        let Some(api) = self.http.get(&outgoing.slot) else {
            return Err(HttpError::Denied(format!("`{}` is not granted", outgoing.slot)));
        };
        let left = deadline.saturating_duration_since(Moment::now());
        let wanted = outgoing.request.timeout.unwrap_or(api.grant.timeout);
        outgoing.request.timeout = Some(wanted.min(left));
        api.send(&self.connector, outgoing).await
    }

    /// The slot whose grant an absolute URL is meant for: of those of its host the one with the
    /// longest base. Whether it lies within the grant is checked by the connector.
    pub fn slot_of(&self, url: &str) -> Result<&str, HttpError> {
        let wanted = Url::parse(url).map_err(|error| HttpError::Invalid(error.to_string()))?;
        let of_host = self.http.iter().filter(|(_, api)| api.grant.base.origin() == wanted.origin());
        let fitting = of_host.filter(|(_, api)| wanted.path().starts_with(api.grant.base.path()));
        let longest = fitting.max_by_key(|(_, api)| api.grant.base.path().len());
        let (slot, _) = longest.ok_or_else(|| HttpError::Denied("no granted host is at this URL".into()))?;
        Ok(slot)
    }

    /// The slot a URL names, and what is asked there: `slot:/path?query`, or an absolute URL.
    fn target_of(&self, url: &str) -> Result<(String, String), HttpError> {
        if url.starts_with("http://") || url.starts_with("https://") {
            return Ok((self.slot_of(url)?.to_owned(), url.to_owned()));
        }
        let Some((slot, path)) = url.split_once(':') else {
            return Err(HttpError::Invalid("a URL is `slot:/path` or absolute".into()));
        };
        if !self.http.contains_key(slot) {
            return Err(HttpError::Denied("the slot is not granted".into()));
        }
        if !path.starts_with('/') {
            return Err(HttpError::Invalid("the path after `slot:` begins with `/`".into()));
        }
        Ok((slot.to_owned(), path.to_owned()))
    }
}

/// What a guest asks for; an error inside: what it names is not granted. `message` gives the body
/// of a message of the batch at hand.
pub(crate) fn outgoing_in(
    guest: &mut Guest,
    asked: wit::Request,
    message: impl FnOnce(&Guest, usize) -> Option<Bytes>,
) -> Result<Result<Outgoing, HttpError>, Lie> {
    let body = match asked.content {
        wit::Content::None => Bytes::new(),
        wit::Content::Body(body) => body_in(guest, body)?,
        wit::Content::OfMessage(index) => message(guest, index as usize)
            .ok_or_else(|| format!("`of-message({index})`, and there is no such message"))?,
    };
    let timeout = asked.timeout_ms.map(|ms| small_number_in(ms, "timeout-ms")).transpose()?;
    Ok(guest.reach.target_of(&asked.url).map(|(slot, path_or_url)| Outgoing {
        slot,
        request: HttpRequest {
            method: asked.method,
            path_or_url,
            headers: asked.headers,
            body,
            timeout: timeout.map(|ms| Duration::from_millis(u64::from(ms))),
        },
    }))
}

/// What came of a request, for the guest; bodies beyond what is left for inline ones are blobs.
pub(crate) fn outcome_of(
    things: &mut Things,
    outcome: Result<HttpResponse, HttpError>,
    inline_left: &mut usize,
) -> Result<wit::Response, wit::Error> {
    let HttpResponse { status, headers, body } = outcome.map_err(error_of)?;
    Ok(wit::Response { status, headers, body: body_within(things, &body, inline_left) })
}

fn error_of(error: HttpError) -> wit::Error {
    match error {
        HttpError::Denied(text) => wit::Error::Denied(text),
        HttpError::Timeout => wit::Error::Timeout,
        HttpError::Unreachable(text) => wit::Error::Unreachable(text),
        HttpError::TooLarge => wit::Error::TooLarge,
        HttpError::Invalid(text) => wit::Error::Invalid(text),
        // What it did to this connection another message may not do: it is no fact of the server.
        HttpError::Broken(text) | HttpError::Other(text) => wit::Error::Other(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(bases: &[(&str, &str)]) -> Reach {
        let api = |base: &str| Api { grant: HttpGrant::new(base.parse().unwrap()), answers: None };
        let http = bases.iter().map(|(slot, base)| ((*slot).to_owned(), api(base))).collect();
        Reach { http, ..Reach::default() }
    }

    #[test]
    fn a_url_goes_under_the_grant_that_means_it_most() {
        let reach = reach(&[("all", "https://h/"), ("v1", "https://h/v1"), ("other", "https://h:8443/")]);
        for (url, slot) in [
            ("https://h/x", "all"),
            ("https://h/v1/x", "v1"),
            ("https://h:443/v1", "v1"),
            ("https://h:8443/v1", "other"),
            ("v1:/x", "v1"),
        ] {
            assert_eq!(reach.target_of(url).map(|(slot, _)| slot), Ok(slot.to_owned()), "{url}");
        }
        for url in ["http://h/x", "https://elsewhere/", "v2:/x", "https://"] {
            assert!(reach.target_of(url).is_err(), "{url}");
        }
        assert!(matches!(reach.target_of("v1:x"), Err(HttpError::Invalid(_))));
        assert!(matches!(reach.target_of("/x"), Err(HttpError::Invalid(_))));
    }

    #[derive(Debug)]
    struct Echo;

    impl HttpAnswers for Echo {
        fn answer(&self, asked: Asked) -> Result<HttpResponse, HttpError> {
            let body = format!("{} {} {}", asked.slot, asked.method, asked.path_or_url);
            Ok(HttpResponse { status: 200, headers: Vec::new(), body: body.into() })
        }
    }

    #[tokio::test]
    async fn in_a_rehearsal_nothing_leaves_and_the_grant_holds() {
        let mut reach = reach(&[("api", "https://h.invalid/v1")]);
        reach.http.get_mut("api").unwrap().answers = Some(Arc::new(Echo));
        let ask = |path: &str| Outgoing {
            slot: "api".into(),
            request: HttpRequest {
                method: "GET".into(),
                path_or_url: path.into(),
                headers: Vec::new(),
                body: Bytes::new(),
                timeout: None,
            },
        };
        let deadline = Moment::now() + Duration::from_secs(60);
        let answer = reach.ask(ask("/a"), deadline).await.unwrap();
        assert_eq!(answer.body, "api GET /a");
        assert!(matches!(reach.ask(ask("/../a"), deadline).await, Err(HttpError::Denied(_))));
    }
}
