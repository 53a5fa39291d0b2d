//! What a request may look like: its target under the grant, its headers, its credentials.
//!
//! Pure. Everything a plugin writes is checked here, before a name is resolved.

use ::http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use ::http::{HeaderMap, Method, Request, Uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use url::Url;
use zeroize::Zeroizing;

use super::{Credentials, HttpError, HttpGrant, HttpRequest};

/// Bytes of a path with its query.
const TARGET_BYTES_MAX: usize = 16 << 10;
/// Bytes of all headers of a request.
const HEADERS_BYTES_MAX: usize = 64 << 10;
/// How often an escaped escape is undone before a path is refused for it.
const DECODE_ROUNDS_MAX: usize = 4;

/// Headers that belong to the connection, which is the host's.
const HOST_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request as it goes over the wire.
pub(super) type WireRequest = Request<Full<Bytes>>;

pub(super) fn check_grant(grant: &HttpGrant) -> Result<(), HttpError> {
    let base = &grant.base;
    let refused = |what: &str| Err(HttpError::Denied(format!("the granted URL {what}")));
    if !matches!(base.scheme(), "http" | "https") {
        return refused("is neither `http` nor `https`");
    }
    if base.host_str().is_none_or(str::is_empty) {
        return refused("has no host");
    }
    if !base.username().is_empty() || base.password().is_some() {
        return refused("holds a user or a password, which belong to the credentials");
    }
    if base.query().is_some() || base.fragment().is_some() {
        return refused("has a query or a fragment");
    }
    granted_headers(grant).map(drop)
}

/// Checks everything and makes the request.
pub(super) fn prepare(grant: &HttpGrant, request: HttpRequest) -> Result<WireRequest, HttpError> {
    check_grant(grant)?;
    let method = method(&request.method)?;
    let target = target(&grant.base, &request.path_or_url)?;
    let mut headers = granted_headers(grant)?;
    add_plugin_headers(&mut headers, &request.headers)?;
    if !headers.contains_key(USER_AGENT) {
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("portway/", env!("CARGO_PKG_VERSION"))));
    }
    headers.insert(HOST, host_header(&grant.base)?);
    let mut prepared = Request::new(Full::new(request.body));
    *prepared.method_mut() = method;
    *prepared.uri_mut() = target;
    *prepared.headers_mut() = headers;
    Ok(prepared)
}

fn method(text: &str) -> Result<Method, HttpError> {
    let method = Method::from_bytes(text.as_bytes());
    let method = method.map_err(|_| HttpError::Invalid(format!("`{}` is no method", text.escape_debug())))?;
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(HttpError::Denied(format!("method `{method}`")));
    }
    Ok(method)
}

/// Path and query of the request, at or below the base.
fn target(base: &Url, path_or_url: &str) -> Result<Uri, HttpError> {
    let path_and_query = if path_or_url.is_empty() || path_or_url.starts_with('/') {
        under_base(base, path_or_url)?
    } else {
        of_granted_host(base, path_or_url)?
    };
    if path_and_query.len() > TARGET_BYTES_MAX {
        return Err(HttpError::Invalid(format!("a path of more than {TARGET_BYTES_MAX} bytes")));
    }
    path_and_query.parse().map_err(|_| HttpError::Invalid("a path that is no path of a URL".into()))
}

fn under_base(base: &Url, text: &str) -> Result<String, HttpError> {
    let (path, query) = split_query(text);
    check_path(path)?;
    check_characters(text)?;
    let base_path = base.path();
    let joined = match path {
        "" | "/" => base_path.to_owned(),
        _ => format!("{}{path}", base_path.trim_end_matches('/')),
    };
    Ok(query.map_or_else(|| joined.clone(), |query| format!("{joined}?{query}")))
}

/// An absolute URL must be of the base's origin and below its path; it is judged as it is
/// written, since what a URL library makes of `..` may not be what a server does.
fn of_granted_host(base: &Url, text: &str) -> Result<String, HttpError> {
    check_characters(text)?;
    let url = Url::parse(text).map_err(|_| HttpError::Invalid("neither a path nor a URL".into()))?;
    let same_origin = url.scheme() == base.scheme()
        && url.host() == base.host()
        && url.port_or_known_default() == base.port_or_known_default();
    let authority_and_path = text.split_once("://").map_or("", |(_, rest)| rest);
    if !same_origin || !url.username().is_empty() || url.password().is_some() {
        return Err(HttpError::Denied("a URL that is not of the granted host".into()));
    }
    let start = authority_and_path.find(['/', '?']);
    let written = start.and_then(|start| authority_and_path.get(start..)).unwrap_or_default();
    let (path, query) = split_query(written);
    let path = if path.is_empty() { "/" } else { path };
    check_path(path)?;
    let prefix = base.path().trim_end_matches('/');
    let below = path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !below {
        return Err(HttpError::Denied("a URL that is not below the granted path".into()));
    }
    Ok(query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")))
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)))
}

fn check_characters(text: &str) -> Result<(), HttpError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\'));
    plain.then_some(()).ok_or_else(|| {
        HttpError::Invalid(
            "a path with a character that must be escaped: space, control, `#`, `\\` or non-ASCII".into(),
        )
    })
}

/// No way up, no second host, no user: also not behind escapes.
fn check_path(path: &str) -> Result<(), HttpError> {
    let mut decoded = path.to_owned();
    for _ in 0..DECODE_ROUNDS_MAX {
        if decoded.starts_with("//") || path.contains("//") {
            return Err(HttpError::Denied("a path with `//`".into()));
        }
        if path.contains('@') {
            return Err(HttpError::Denied("a path with `@`".into()));
        }
        if decoded.split(['/', '\\']).any(|segment| matches!(segment, "." | "..")) {
            return Err(HttpError::Denied("a path with `.` or `..`".into()));
        }
        let next = decode_once(&decoded);
        if next == decoded {
            return Ok(());
        }
        decoded = next;
    }
    Err(HttpError::Denied("a path escaped many times over".into()))
}

/// Undoes the escapes of the characters that matter here: `%`, `.`, `/` and `\`.
fn decode_once(path: &str) -> String {
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(start) = rest.find('%') {
        let (before, escape) = rest.split_at(start);
        decoded.push_str(before);
        let plain = match escape.get(1..3).map(str::to_ascii_lowercase).as_deref() {
            Some("25") => Some('%'),
            Some("2e") => Some('.'),
            Some("2f") => Some('/'),
            Some("5c") => Some('\\'),
            _ => None,
        };
        decoded.push(plain.unwrap_or('%'));
        rest = escape.get(if plain.is_some() { 3 } else { 1 }..).unwrap_or("");
    }
    decoded.push_str(rest);
    decoded
}

/// What the grant attaches: its headers and its credentials.
fn granted_headers(grant: &HttpGrant) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::with_capacity(grant.headers.iter().len() + 8);
    for (name, value) in &grant.headers {
        headers.append(header_name(name)?, header_value(name, value.as_bytes())?);
    }
    let Some(credentials) = &grant.credentials else {
        return Ok(headers);
    };
    let (name, text) = match credentials {
        Credentials::Bearer(token) => (AUTHORIZATION, format!("Bearer {token}")),
        Credentials::Basic { user, password } => {
            let pair = Zeroizing::new(format!("{user}:{password}"));
            let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
            (AUTHORIZATION, format!("Basic {}", encoded.as_str()))
        }
        Credentials::Header { name, value } => (header_name(name)?, value.clone()),
    };
    let text = Zeroizing::new(text);
    let mut value = header_value(name.as_str(), text.as_bytes())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// A plugin may say a header several times, but none that the grant says.
fn add_plugin_headers(headers: &mut HeaderMap, given: &[(String, String)]) -> Result<(), HttpError> {
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > HEADERS_BYTES_MAX {
        return Err(HttpError::Invalid(format!("headers of more than {HEADERS_BYTES_MAX} bytes")));
    }
    let granted: Vec<HeaderName> = headers.keys().cloned().collect();
    for (name, value) in given {
        let name = header_name(name)?;
        if granted.contains(&name) {
            return Err(HttpError::Denied(format!("header `{name}`, which the grant sets")));
        }
        let value = header_value(name.as_str(), value.as_bytes())?;
        headers.append(name, value);
    }
    Ok(())
}

fn header_name(text: &str) -> Result<HeaderName, HttpError> {
    let name = HeaderName::from_bytes(text.as_bytes());
    let name = name.map_err(|_| HttpError::Invalid(format!("header name `{}`", text.escape_debug())))?;
    if HOST_HEADERS.contains(&name.as_str()) {
        return Err(HttpError::Denied(format!("header `{name}`, which the host sets")));
    }
    Ok(name)
}

fn header_value(name: &str, bytes: &[u8]) -> Result<HeaderValue, HttpError> {
    HeaderValue::from_bytes(bytes)
        .map_err(|_| HttpError::Invalid(format!("the value of header `{name}` holds a control character")))
}

fn host_header(base: &Url) -> Result<HeaderValue, HttpError> {
    let host = base.host_str().unwrap_or_default();
    let text = base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    header_value("host", text.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a server makes of escapes and dots, it stays at or below the base.
        #[test]
        fn nothing_that_is_let_through_leaves_the_base(
            text in "(http://h(:80)?/api|https?://[a-z@:]{1,5})?([/.@%a-z:?#\\\\]|%2[ef]|%5c|%25|\\.\\.){0,12}"
        ) {
            let Ok(target) = ask("http://h/api", &text) else { return Ok(()) };
            let path = target.split('?').next().unwrap_or_default().to_ascii_lowercase();
            let mut plain = path;
            while plain.contains("%25") {
                plain = plain.replace("%25", "%");
            }
            let plain = plain.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
            let seen_by_a_server = Url::parse(&format!("http://h{plain}")).unwrap();
            prop_assert_eq!(seen_by_a_server.host_str(), Some("h"));
            let below = seen_by_a_server.path();
            prop_assert!(below == "/api" || below.starts_with("/api/"), "{} became {}", text, below);
        }
    }

    fn ask(base: &str, path_or_url: &str) -> Result<String, HttpError> {
        target(&Url::parse(base).unwrap(), path_or_url).map(|uri| uri.to_string())
    }

    #[test]
    fn a_path_is_put_under_the_base() {
        for (base, path, expected) in [
            ("http://h", "/", "/"),
            ("http://h", "", "/"),
            ("http://h/api", "", "/api"),
            ("http://h/api", "/", "/api"),
            ("http://h/api", "/?a=b", "/api?a=b"),
            ("http://h/api/", "/", "/api/"),
            ("http://h/api/", "/x", "/api/x"),
            ("http://h/api", "/x/y%2Fz?q=a@b//c", "/api/x/y%2Fz?q=a@b//c"),
            ("http://h/api", "http://h/api/x", "/api/x"),
            ("http://h/api", "http://H:80/api", "/api"),
            ("http://h", "http://h?x=1", "/?x=1"),
        ] {
            assert_eq!(ask(base, path).unwrap(), expected, "{base} {path}");
        }
    }

    #[test]
    fn a_path_that_would_leave_the_grant_is_refused() {
        for path in [
            "//evil/x",
            "/a//b",
            "/..",
            "/../x",
            "/a/../../x",
            "/%2e%2e/x",
            "/.%2E/x",
            "/a/%2e%2e%2fx",
            "/%252e%252e/x",
            "/a/..%5cx",
            "/./x",
            "/user@evil",
            "/%2f/evil/x",
            "/a\\..\\b",
            "/a b",
            "/a\r\nHost: evil",
            "/a#b",
            "/é",
            "/%25252525252e",
            "x",
            "@evil/x",
            ":80/x",
        ] {
            assert!(ask("http://h/api", path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_url_of_another_scheme_host_port_or_path_is_refused() {
        for url in [
            "https://h/api/x",
            "http://evil/api/x",
            "http://h:81/api/x",
            "http://h/other",
            "http://h/apiary",
            "http://u:p@h/api/x",
            "http://h@evil/api/x",
            "http://h/api/../x",
            "http://h/api/%2e%2e/x",
            "ftp://h/api",
            "http:/h/api/x",
            "http://h.evil/api",
            "http:h/api",
            "http://h/",
            "http://h\\@evil/api",
        ] {
            assert!(ask("http://h/api", url).is_err(), "{url:?}");
        }
    }

    fn prepared(
        headers: &[(&str, &str)],
        credentials: Option<Credentials>,
    ) -> Result<WireRequest, HttpError> {
        let grant = HttpGrant {
            credentials,
            headers: [("x-tenant".to_owned(), "7".to_owned())].into_iter().collect(),
            ..HttpGrant::new(Url::parse("https://h:8443/api").unwrap())
        };
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let request = HttpRequest {
            method: "POST".into(),
            path_or_url: "/x".into(),
            headers,
            body: Bytes::new(),
            timeout: None,
        };
        prepare(&grant, request)
    }

    #[test]
    fn headers_that_break_out_or_belong_to_the_host_are_refused() {
        let bearer = || Some(Credentials::Bearer("secret".into()));
        for (name, value) in [
            ("x-a", "1\r\nx-b: 2"),
            ("x-a", "1\n"),
            ("x-a", "\0"),
            ("x a", "1"),
            ("", "1"),
            ("x-a\r\nx-b", "1"),
            ("Host", "evil"),
            ("Content-Length", "0"),
            ("transfer-encoding", "chunked"),
            ("Connection", "close"),
            ("Authorization", "mine"),
            ("X-Tenant", "8"),
        ] {
            assert!(prepared(&[(name, value)], bearer()).is_err(), "{name:?}: {value:?}");
        }
        assert!(prepared(&[("authorization", "mine")], None).is_ok());
    }

    #[test]
    fn credentials_and_granted_headers_are_attached() {
        let basic = Credentials::Basic { user: "Aladdin".into(), password: "open sesame".into() };
        for (credentials, name, value) in [
            (Credentials::Bearer("t".into()), "authorization", "Bearer t"),
            (basic, "authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            (Credentials::Header { name: "X-Key".into(), value: "k".into() }, "x-key", "k"),
        ] {
            let request = prepared(&[("x-a", "1"), ("x-a", "2")], Some(credentials)).unwrap();
            assert_eq!(request.headers()[name], value);
            assert_eq!(request.headers()["x-tenant"], "7");
            assert_eq!(request.headers()["host"], "h:8443");
            assert_eq!(request.headers().get_all("x-a").iter().count(), 2);
        }
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert!(!format!("{:?}", Credentials::Bearer("hunter2".into())).contains("hunter2"));
        let headers = [("x-key".to_owned(), "hunter2".to_owned())].into_iter().collect();
        let grant = HttpGrant { headers, ..HttpGrant::new(Url::parse("https://h/").unwrap()) };
        let shown = format!("{grant:?}");
        assert!(shown.contains("x-key") && !shown.contains("hunter2"), "{shown}");
    }
}
